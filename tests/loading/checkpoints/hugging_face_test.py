# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Hugging Face folders: T5 1.0 and 1.1, whole, sharded and damaged."""

import dataclasses
import json
import struct

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from tests import checkpoints_by_hand as by_hand
from tests import tiny

T5_1_1 = tiny.config(num_decoder_layers=1)
T5_1_0 = tiny.config(
    num_encoder_layers=1, mlp_activations=('relu',), logits_via_embedding=True
)
UL2 = tiny.config(num_encoder_layers=1, mlp_activations=('silu', 'linear'))
WO = 'encoder.block.1.layer.1.DenseReluDense.wo.weight'


def tensors_of(config, dtype=jnp.float32):
  params = by_hand.cast(tiny.params(config), dtype)
  return by_hand.hugging_face_tensors(config, params)


def fields_of(config, **overrides):
  return by_hand.hugging_face_config(config, **overrides)


@pytest.fixture
def folder(tmp_path):
  """Returns a folder of a T5 1.1 that a test may damage."""
  return by_hand.write_hugging_face(
      tmp_path / 'hf', fields_of(T5_1_1), tensors_of(T5_1_1)
  )


def restore(path, config=T5_1_1, **arguments):
  return checkpoints.flatten(
      checkpoints.open(path).restore_params(
          models.abstract_params(config), **arguments
      )
  )


def assert_holds(path, config, dtype=jnp.float32):
  found = restore(path, config)
  wanted = checkpoints.flatten(by_hand.cast(tiny.params(config), dtype))
  assert found.keys() == wanted.keys()
  for name, array in wanted.items():
    np.testing.assert_array_equal(found[name], np.float32(array), name)


class TestVariants:

  @pytest.mark.parametrize('shards', [1, 3])
  @pytest.mark.parametrize('config', [T5_1_1, T5_1_0, UL2])
  def test_network(self, tmp_path, config, shards):
    by_hand.write_hugging_face(
        tmp_path, fields_of(config), tensors_of(config), shards
    )
    assert_holds(tmp_path, config)
    checkpoint = checkpoints.open(tmp_path)
    assert checkpoint.layout is checkpoints.Layout.HUGGING_FACE
    assert checkpoint.folder == tmp_path
    assert checkpoint.step == 0

  @pytest.mark.parametrize('config', [T5_1_1, T5_1_0, UL2])
  def test_config(self, tmp_path, config):
    by_hand.write_hugging_face(tmp_path, fields_of(config), tensors_of(config))
    found = checkpoints.open(tmp_path).config_fields
    assert t5.T5Config(**found) == config

  @pytest.mark.parametrize('dtype', [jnp.bfloat16, jnp.float16])
  def test_narrow(self, tmp_path, dtype):
    tensors = tensors_of(T5_1_1, dtype)
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    assert_holds(tmp_path, T5_1_1, dtype)
    specs = checkpoints.open(tmp_path).specs
    assert {x.dtype for x in specs.values()} == {jnp.dtype(dtype)}
    kept = restore(tmp_path, dtype=None)
    assert {x.dtype for x in kept.values()} == {jnp.dtype(dtype)}

  def test_specs(self, folder):
    expected = checkpoints.flatten(models.abstract_params(T5_1_1))
    assert {n: x.shape for n, x in checkpoints.open(folder).specs.items()} == {
        n: x.shape for n, x in expected.items()
    }

  def test_copies_of_the_embedding(self, tmp_path):
    """Flan-T5's files have copies; T5 1.0 can have a head as well."""
    tensors = tensors_of(T5_1_0)
    for name in ('encoder.embed_tokens', 'decoder.embed_tokens', 'lm_head'):
      tensors[f'{name}.weight'] = tensors['shared.weight']
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_0), tensors)
    assert_holds(tmp_path, T5_1_0)

  @pytest.mark.parametrize(
      'name', ['encoder.embed_tokens', 'decoder.embed_tokens', 'lm_head']
  )
  def test_one_copy_under_another_name(self, tmp_path, name):
    tensors = tensors_of(T5_1_0)
    tensors[f'{name}.weight'] = tensors.pop('shared.weight')
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_0), tensors)
    assert_holds(tmp_path, T5_1_0)

  def test_separate_head_and_embedding(self, tmp_path):
    """MADLAD-400's files have two matrices."""
    tensors = tensors_of(T5_1_1)
    tensors['decoder.embed_tokens.weight'] = tensors.pop('shared.weight')
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    assert_holds(tmp_path, T5_1_1)

  def test_unused_bias(self, tmp_path):
    """The first checkpoints of T5 1.0 have one."""
    tensors = tensors_of(T5_1_0)
    name = 'layer.1.EncDecAttention.relative_attention_bias.weight'
    tensors[f'decoder.block.0.{name}'] = np.ones((32, 2), np.float32)
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_0), tensors)
    assert_holds(tmp_path, T5_1_0)

  def test_old_config(self, tmp_path):
    """Early files lack some fields."""
    fields = fields_of(T5_1_0)
    config = tiny.config(mlp_activations=('relu',), logits_via_embedding=True)
    del fields['feed_forward_proj'], fields['num_decoder_layers']
    by_hand.write_hugging_face(
        tmp_path, fields | {'num_layers': 2}, tensors_of(config)
    )
    found = checkpoints.open(tmp_path).config_fields
    assert t5.T5Config(**found) == config
    assert_holds(tmp_path, config)

  @pytest.mark.parametrize('config', [T5_1_1, T5_1_0])
  def test_config_of_transformers_5(self, tmp_path, config):
    """It writes tie_word_embeddings true for T5 1.0 and 1.1."""
    fields = fields_of(
        config,
        tie_word_embeddings=True,
        scale_decoder_outputs=config.logits_via_embedding,
    )
    by_hand.write_hugging_face(tmp_path, fields, tensors_of(config))
    assert_holds(tmp_path, config)

  @pytest.mark.parametrize('tied', [None, True, False])
  def test_mt5(self, tmp_path, tied):
    """The defaults of mT5 are those of T5 1.1; transformers 5 writes true."""
    fields = fields_of(T5_1_1, model_type='mt5', tie_word_embeddings=tied)
    del fields['feed_forward_proj']
    by_hand.write_hugging_face(tmp_path, fields, tensors_of(T5_1_1))
    assert_holds(tmp_path, T5_1_1)

  @pytest.mark.parametrize(
      'overrides',
      [
          dict(tie_word_embeddings=True, scale_decoder_outputs=False),
          dict(tie_word_embeddings=False),
          dict(tie_word_embeddings=True, model_type='mt5'),
      ],
  )
  def test_unscaled_head_that_is_the_embedding(self, tmp_path, overrides):
    """transformers 5 reads it so, and stores no head."""
    tensors = tensors_of(T5_1_1)
    del tensors['lm_head.weight']
    by_hand.write_hugging_face(
        tmp_path, fields_of(T5_1_1, **overrides), tensors
    )
    checkpoint = checkpoints.open(tmp_path)
    assert t5.T5Config(**checkpoint.config_fields) == T5_1_1
    found = restore(tmp_path)
    embedding = tensors['shared.weight']
    np.testing.assert_array_equal(found['token_embedder/embedding'], embedding)
    np.testing.assert_array_equal(
        found['decoder/logits_dense/kernel'], embedding.T
    )

  def test_other_files_are_ignored(self, folder):
    for name in ('pytorch_model.bin', 'tf_model.h5', 'flax_model.msgpack'):
      (folder / name).write_bytes(b'x')
    assert_holds(folder, T5_1_1)

  def test_a_copy_that_the_index_does_not_name_is_ignored(self, tmp_path):
    """Shards that are used again can hold earlier versions of a tensor."""
    by_hand.write_hugging_face(
        tmp_path, fields_of(T5_1_1), tensors_of(T5_1_1), shards=2
    )
    index = json.loads((tmp_path / 'model.safetensors.index.json').read_text())
    file_of = index['weight_map']
    for file in set(file_of.values()):
      shard = safetensors.numpy.load_file(tmp_path / file)
      earlier = {
          name: np.zeros_like(tensor)
          for name, tensor in tensors_of(T5_1_1).items()
          if file_of[name] != file
      }
      safetensors.numpy.save_file(shard | earlier, tmp_path / file)
    assert_holds(tmp_path, T5_1_1)

  def test_safetensors_library_reads_the_same(self, tmp_path):
    """It does so for every dtype of a weight."""
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
      tensors = tensors_of(T5_1_1, dtype)
      by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
      theirs = safetensors.numpy.load_file(tmp_path / 'model.safetensors')
      ours = restore(tmp_path, dtype=None)
      np.testing.assert_array_equal(
          ours['encoder/layers_1/mlp/wo/kernel'], theirs[WO].T
      )


class TestSpecialIds:

  def read(self, folder, generation=None, **overrides):
    """Reads the ids of config.json and of generation_config.json."""
    fields = fields_of(T5_1_1, **overrides)
    (folder / 'config.json').write_text(json.dumps(fields))
    if generation is not None:
      file = folder / 'generation_config.json'
      file.write_text(json.dumps(generation))
    ids = checkpoints.open(folder).special_ids
    return ids.end, ids.padding, ids.start

  @pytest.mark.parametrize(
      'overrides, expected',
      [
          (dict(), (1, 0, 0)),
          (dict(model_type='mt5'), (1, 0, 0)),
          (dict(pad_token_id=3), (1, 3, 3)),
          (dict(pad_token_id=3, bos_token_id=5), (1, 3, 5)),
          (dict(model_type='mt5', pad_token_id=3), (1, 3, 0)),
          (dict(decoder_start_token_id=None, pad_token_id=3), (1, 3, 3)),
          (
              dict(eos_token_id=2, pad_token_id=1, decoder_start_token_id=0),
              (2, 1, 0),
          ),
          (dict(eos_token_id=63), (63, 0, 0)),
      ],
  )
  def test_config(self, folder, overrides, expected):
    assert self.read(folder, **overrides) == expected

  @pytest.mark.parametrize(
      'generation, expected',
      [
          (dict(), (2, 1, 0)),
          (dict(eos_token_id=7), (7, 1, 0)),
          (dict(pad_token_id=8, eos_token_id=None), (2, 8, 0)),
          (dict(decoder_start_token_id=9), (2, 1, 9)),
          (dict(bos_token_id=9), (2, 1, 0)),
      ],
  )
  def test_generation_config_comes_first(self, folder, generation, expected):
    config = dict(eos_token_id=2, pad_token_id=1, decoder_start_token_id=0)
    assert self.read(folder, generation, **config) == expected

  def test_generation_config_names_what_config_does_not(self, folder):
    ids = self.read(folder, dict(eos_token_id=4), eos_token_id=None)
    assert ids == (4, 0, 0)

  @pytest.mark.parametrize('layout', ['orbax', 'legacy'])
  def test_t5x_stores_no_special_ids(self, tmp_path, layout):
    params = by_hand.cast(tiny.params(T5_1_1), jnp.float32)
    write = checkpoints.save if layout == 'orbax' else _write_legacy
    write(tmp_path, 7, params)
    checkpoint = checkpoints.open(tmp_path)
    assert checkpoint.special_ids is None
    assert checkpoint.config_fields is None

  @pytest.mark.parametrize(
      'overrides, match',
      [
          (dict(eos_token_id=[1, 2]), r'several ids as eos_token_id, \[1, 2\]'),
          (dict(eos_token_id=[1]), 'several ids as eos_token_id'),
          (dict(eos_token_id='1'), "eos_token_id '1', which is no id"),
          (dict(pad_token_id=0.0), 'pad_token_id 0.0, which is no id'),
          (dict(pad_token_id=False), 'pad_token_id False, which is no id'),
          (dict(pad_token_id=-1), 'pad_token_id -1, which is no id'),
          (dict(eos_token_id=64), 'eos_token_id 64, .* vocabulary of 64'),
          (dict(decoder_start_token_id=10**30), 'decoder_start_token_id 1000'),
          (dict(decoder_start_token_id={}), 'decoder_start_token_id {}'),
      ],
  )
  @pytest.mark.parametrize('file', ['config', 'generation_config'])
  def test_refused(self, folder, file, overrides, match):
    with pytest.raises(checkpoints.CheckpointError, match=match) as error:
      if file == 'config':
        self.read(folder, **overrides)
      else:
        self.read(folder, overrides)
    assert len(str(error.value).splitlines()) == 1
    assert str(folder / f'{file}.json') in str(error.value)

  @pytest.mark.parametrize('file', ['config', 'generation_config'])
  @pytest.mark.parametrize(
      'name', ['forced_bos_token_id', 'forced_eos_token_id']
  )
  def test_forced_tokens(self, folder, file, name):
    forcing, nothing = {name: 5}, {name: None}
    given = dict(generation=forcing) if file != 'config' else forcing
    with pytest.raises(checkpoints.CheckpointError, match=f'{name} 5') as error:
      self.read(folder, **given)
    assert str(folder / f'{file}.json') in str(error.value)
    # As in transformers, config.json counts without the other file only.
    assert self.read(folder, nothing, **forcing) == (1, 0, 0)

  def test_end_that_is_padding(self, folder):
    with pytest.raises(checkpoints.CheckpointError, match='has 0 as end of se'):
      self.read(folder, eos_token_id=0)

  @pytest.mark.parametrize('generation', [None, {}, {'eos_token_id': None}])
  @pytest.mark.parametrize('name', ['eos_token_id', 'pad_token_id'])
  def test_no_special_ids(self, folder, name, generation):
    with pytest.raises(
        checkpoints.CheckpointError, match=f'no {name} .*into config.json'
    ) as error:
      self.read(folder, generation, **{name: None})
    assert str(folder) in str(error.value)

  def test_a_damaged_generation_config(self, folder):
    (folder / 'generation_config.json').write_text('{')
    with pytest.raises(
        checkpoints.CheckpointError,
        match='generation_config.json cannot be read as JSON',
    ):
      self.read(folder)

  def test_weights_load_without_special_ids(self, folder):
    """A job can take the ids from its vocabulary."""
    fields = fields_of(T5_1_1, eos_token_id=None)
    (folder / 'config.json').write_text(json.dumps(fields))
    assert_holds(folder, T5_1_1)


class TestUnappliedSettings:

  @pytest.mark.parametrize(
      'config, generation, expected',
      [
          ({}, None, None),
          ({'num_beams': 1, 'do_sample': False, 'min_length': 0}, None, None),
          ({'num_beams': 4}, {}, None),  # the other file counts
          ({'num_beams': 4}, None, 'num_beams 4'),
          (
              {},
              {
                  'num_beams': 4, 'no_repeat_ngram_size': 3, 'temperature': 0.7,
                  'suppress_tokens': [5], 'repetition_penalty': 1.0,
                  'max_length': 200,
              },
              'num_beams 4; no_repeat_ngram_size 3; suppress_tokens [5]',
          ),
          (
              {}, {'do_sample': True, 'top_k': 50},
              'do_sample True; top_k 50',
          ),
          (
              {'task_specific_params': {'summarization': {'num_beams': 4}}}, {},
              'task_specific_params of summarization',
          ),
      ],
  )  # fmt: skip
  def test_are_named(self, folder, capsys, config, generation, expected):
    (folder / 'config.json').write_text(json.dumps(fields_of(T5_1_1, **config)))
    if generation is not None:
      file = folder / 'generation_config.json'
      file.write_text(json.dumps(generation))
    models.find_model(checkpoints.open(folder))
    said = capsys.readouterr().err
    if expected is None:
      assert not said
    else:
      (line,) = said.splitlines()
      assert line.startswith(str(folder)) and line.endswith(f': {expected}.')


def _write_legacy(folder, step, params):
  by_hand.write_legacy(folder, params, step=step)


class TestRefused:
  """An error of one line names the problem, before weights are read."""

  def refuse(self, path, match, config=T5_1_1):
    with pytest.raises(checkpoints.CheckpointError, match=match) as error:
      restore(path, config)
    assert len(str(error.value).splitlines()) == 1
    assert str(path) in str(error.value)

  @pytest.mark.parametrize(
      'overrides, match',
      [
          (dict(model_type='umt5'), "type 'umt5'"),
          (dict(model_type='longt5'), "type 'longt5'"),
          (dict(model_type='switch_transformers'), 'switch_transformers'),
          (dict(model_type='bart'), "type 'bart'"),
          (dict(model_type=None), 'type None'),
          (dict(feed_forward_proj='gated-relu'), 'gated-relu'),
          (dict(relative_attention_num_buckets=64), 'num_buckets 64'),
          (dict(relative_attention_max_distance=256), 'max_distance 256'),
          (dict(layer_norm_epsilon=1e-5), 'layer_norm_epsilon 1e-05'),
          (dict(dense_act_fn='gelu'), "dense_act_fn 'gelu'"),
          (dict(quantization_config={}), 'quantized'),
          (dict(d_model='wide'), "d_model 'wide'"),
          (dict(num_layers=None), 'num_layers None'),
          (dict(d_ff=True), 'd_ff True'),
          (dict(num_heads=2.0), 'num_heads 2.0'),
          (dict(vocab_size=0), 'vocab_size 0'),
          (dict(model_type=['t5']), r"type \['t5'\]"),
          (dict(feed_forward_proj={}), 'feed_forward_proj {}'),
          (dict(tie_word_embeddings='no'), "tie_word_embeddings 'no'"),
          (dict(scale_decoder_outputs=1), 'scale_decoder_outputs 1'),
          (dict(num_heads=[9] * 10**4), 'num_heads .9, 9, .*[.]{3},'),
      ],
  )
  def test_config(self, folder, overrides, match):
    fields = fields_of(T5_1_1, **overrides)
    (folder / 'config.json').write_text(json.dumps(fields))
    self.refuse(folder, match)

  @pytest.mark.parametrize(
      'overrides, match',
      [
          (dict(num_layers=10**7), '0 layers, .* lacks encoder/layers_2'),
          (dict(num_decoder_layers=2), '2 layers, .* lacks decoder/layers_1'),
          (dict(vocab_size=10**9), '1000000000 as vocab_size, .* than 64'),
          (dict(d_model=10**30), '0 as emb_dim, .* than 64'),
          (dict(d_kv=65), '65 as head_dim, .* than 64'),
          (dict(num_heads=10**40), '0 as num_heads, .* than 64'),
          (dict(d_ff=2**63), '9223372036854775808 as mlp_dim, .* than 64'),
      ],
  )
  def test_sizes_that_differ_from_the_tensors(self, folder, overrides, match):
    """Constructing a network of such sizes would take minutes or fail."""
    fields = fields_of(T5_1_1, **overrides)
    (folder / 'config.json').write_text(json.dumps(fields))
    with pytest.raises(checkpoints.CheckpointError, match=match):
      models.read_config(checkpoints.open(folder))

  @pytest.mark.parametrize(
      'text',
      ['{"model_type": "t5"', '', '[]', '\xff', '[' * 10**5, '{"a":1, "a":1}'],
  )
  def test_config_is_invalid_json(self, folder, text):
    (folder / 'config.json').write_text(text, encoding='latin-1')
    self.refuse(folder, 'config.json cannot be read as JSON')

  def test_no_config(self, folder):
    (folder / 'config.json').unlink()
    self.refuse(folder, 'without a config.json')

  def test_only_pickles(self, folder):
    for name in ('pytorch_model.bin', 'pytorch_model-00001-of-00002.bin'):
      (folder / 'model.safetensors').rename(folder / name)
      self.refuse(folder, f'{name} alone.*never loaded.*safe_serialization')
      (folder / name).rename(folder / 'model.safetensors')

  @pytest.mark.parametrize('keep', [0, 4, 8, 100, 5000, -1])
  def test_cut_short(self, folder, keep):
    file = folder / 'model.safetensors'
    file.write_bytes(file.read_bytes()[:keep])
    self.refuse(folder, 'model.safetensors is damaged .*(header|ends within)')

  @pytest.mark.parametrize(
      'header',
      [
          b'[]',
          b'{"a": 1}',
          b'{"a": {"dtype": "F32", "shape": [2]}}',
          b'{"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 8]}}',
          b'{"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}',
          b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, "8"]}}',
          b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}',
          b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}',
          b'{"a": ',
          b'\xff\xfe',
      ],
  )
  def test_wrong_header(self, folder, header):
    (folder / 'model.safetensors').write_bytes(
        struct.pack('<Q', len(header)) + header + bytes(8)
    )
    self.refuse(folder, 'model.safetensors is damaged')

  def test_missing_shard(self, tmp_path):
    by_hand.write_hugging_face(
        tmp_path, fields_of(T5_1_1), tensors_of(T5_1_1), shards=3
    )
    shard = 'model-00002-of-00003.safetensors'
    (tmp_path / shard).unlink()
    index = json.loads((tmp_path / 'model.safetensors.index.json').read_text())
    first = min(k for k, v in index['weight_map'].items() if v == shard)
    self.refuse(tmp_path, f'lacks the file {shard}.*{first}')

  @pytest.mark.parametrize(
      'change, match',
      [
          (lambda text: text[:50], 'index.json is damaged'),
          (lambda text: '{}', 'index.json is damaged'),
          (lambda text: text.replace('00001-of', '00002-of'), 'does not hold'),
          (lambda text: text.replace('model-00001', '../x'), 'no file of the'),
          (lambda text: '{"weight_map": {}}', 'has no weight_map'),
          (lambda text: '{"weight_map": ["a"]}', 'has no weight_map'),
          (lambda text: '{"weight_map": {"a": 1}}', '1 is no file of the'),
          (lambda text: '{"weight_map": {"a": ".."}}', 'lacks the file ..'),
          (lambda text: '{"weight_map": {"a": ""}}', 'lacks the file'),
      ],
  )
  def test_index(self, tmp_path, change, match):
    by_hand.write_hugging_face(
        tmp_path, fields_of(T5_1_1), tensors_of(T5_1_1), shards=2
    )
    index = tmp_path / 'model.safetensors.index.json'
    index.write_text(change(index.read_text()))
    self.refuse(tmp_path, match)

  def test_tensors_of_another_network(self, tmp_path):
    tensors = tensors_of(T5_1_1)
    tensors['encoder.block.0.layer.0.SelfAttention.q.lora_A'] = tensors[WO]
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    self.refuse(tmp_path, 'SelfAttention.q.lora_A')

  @pytest.mark.parametrize(
      'lost, match',
      [
          (WO, 'lacks encoder/layers_1/mlp/wo/kernel'),
          ('shared.weight', 'no embedding: none of shared.weight'),
      ],
  )
  def test_missing_tensor(self, tmp_path, lost, match):
    tensors = tensors_of(T5_1_1)
    del tensors[lost]
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    self.refuse(tmp_path, match)

  @pytest.mark.parametrize(
      'name', ['encoder.embed_tokens', 'decoder.embed_tokens', 'lm_head']
  )
  @pytest.mark.parametrize('place', [(0, 0), (9000, 4), (-1, -1)])
  def test_differing_copy_of_the_embedding(self, tmp_path, name, place):
    """The copies are compared in parts of 1 MiB, and any part can differ."""
    config = dataclasses.replace(T5_1_0, vocab_size=10_000)
    tensors = tensors_of(T5_1_0)
    rng = np.random.default_rng(0)
    shared = rng.random((config.vocab_size, config.emb_dim), np.float32)
    tensors['shared.weight'] = shared
    tensors[f'{name}.weight'] = shared.copy()
    tensors[f'{name}.weight'][place] += 1e-6
    by_hand.write_hugging_face(tmp_path, fields_of(config), tensors)
    self.refuse(tmp_path, f'{name}.weight that differs', config)

  def test_quantized_tensors(self, tmp_path):
    tensors = tensors_of(T5_1_1)
    tensors[WO] = tensors[WO].astype(np.int8)
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    self.refuse(tmp_path, 'mlp/wo/kernel int8.*Quantized')
    with pytest.raises(checkpoints.CheckpointError, match='Quantized'):
      next(checkpoints.open(tmp_path).read_params())

  def test_non_finite_numbers(self, tmp_path):
    tensors = tensors_of(T5_1_1)
    tensors[WO][1, 2] = np.nan
    by_hand.write_hugging_face(tmp_path, fields_of(T5_1_1), tensors)
    self.refuse(tmp_path, 'not finite .* in encoder/layers_1/mlp/wo/kernel')
