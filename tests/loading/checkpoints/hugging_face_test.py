# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Hugging Face folders: T5 1.0 and 1.1, whole, sharded and damaged."""

import json
import pathlib
import tempfile

from etils import epath
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.checkpoints import trees
from tests import checkpoints_by_hand as by_hand
from tests import memory_files
from tests import tiny
from tests.loading.checkpoints import steps

T5_1_1 = tiny.config(num_decoder_layers=1)
T5_1_0 = tiny.config(
    num_encoder_layers=1, mlp_activations=('relu',), logits_via_embedding=True
)
T5_1_0_EARLY = tiny.config(mlp_activations=('relu',), logits_via_embedding=True)
MT5 = dict(model_type='mt5', feed_forward_proj=...)
UL2 = tiny.config(num_encoder_layers=1, mlp_activations=('silu', 'linear'))
UMT5 = tiny.config(bias_per_layer=True)
BIAS_OF_1 = (
    'encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight'
)
WO = 'encoder.block.1.layer.1.DenseReluDense.wo.weight'


def tensors_of(config, dtype=jnp.float32):
  params = by_hand.cast(tiny.params(config), dtype)
  return by_hand.hugging_face_tensors(config, params)


def fields_of(config, **overrides):
  return by_hand.hugging_face_config(config, **overrides)


def write(folder, config=T5_1_1, tensors=None, shards=1, **overrides):
  return by_hand.write_hugging_face(
      folder,
      fields_of(config, **overrides),
      tensors or tensors_of(config),
      shards,
  )


def write_config(folder, **overrides):
  fields = fields_of(T5_1_1, **overrides)
  (folder / 'config.json').write_text(json.dumps(fields))


@pytest.fixture
def folder(tmp_path):
  """Return a folder of a T5 1.1 that a test may damage."""
  return write(tmp_path / 'hf')


def restore(path, config=T5_1_1, **arguments):
  return checkpoints.flatten(
      checkpoints.open(path).restore_params(
          models.abstract_params(config), **arguments
      )
  )


def assert_holds(path, config, dtype=jnp.float32):
  params = by_hand.cast(tiny.params(config), dtype)
  steps.assert_holds(path, params, config)


class TestVariants:

  @pytest.mark.parametrize(
      'config, shards', [(T5_1_1, 1), (T5_1_0, 3), (UL2, 1), (UMT5, 2)]
  )
  def test_network(self, tmp_path, config, shards):
    assert_holds(write(tmp_path, config, shards=shards), config)
    checkpoint = checkpoints.open(tmp_path)
    assert checkpoint.layout is checkpoints.Layout.HUGGING_FACE
    assert checkpoint.folder == tmp_path
    assert checkpoint.step == 0
    assert checkpoint.network() == config

  @pytest.mark.parametrize('dtype', [jnp.bfloat16, jnp.float16])
  def test_narrow(self, tmp_path, dtype):
    write(tmp_path, tensors=tensors_of(T5_1_1, dtype))
    assert_holds(tmp_path, T5_1_1, dtype)
    specs = checkpoints.open(tmp_path).specs
    assert {x.dtype for x in specs.values()} == {jnp.dtype(dtype)}
    kept = restore(tmp_path, dtype=None)
    assert {x.dtype for x in kept.values()} == {jnp.dtype(dtype)}

  def test_copies_of_the_embedding(self, tmp_path):
    """Flan-T5's files have copies, and any may be the only one."""
    tensors = tensors_of(T5_1_0)
    names = ('encoder.embed_tokens', 'decoder.embed_tokens', 'lm_head')
    copies = {f'{name}.weight': tensors['shared.weight'] for name in names}
    assert_holds(write(tmp_path, T5_1_0, tensors | copies), T5_1_0)
    del tensors['shared.weight']
    for name, copy in copies.items():
      assert_holds(write(tmp_path, T5_1_0, tensors | {name: copy}), T5_1_0)

  def test_unused_bias(self, tmp_path):
    """The first checkpoints of T5 1.0 have one."""
    tensors = tensors_of(T5_1_0)
    name = 'layer.1.EncDecAttention.relative_attention_bias.weight'
    tensors[f'decoder.block.0.{name}'] = np.ones((32, 2), np.float32)
    assert_holds(write(tmp_path, T5_1_0, tensors), T5_1_0)

  @pytest.mark.parametrize(
      'config, overrides',
      [
          # Early files lack some fields.
          (T5_1_0_EARLY, dict(feed_forward_proj=..., num_decoder_layers=...)),
          # transformers 5 writes tie_word_embeddings true for all of these.
          (T5_1_1, dict(tie_word_embeddings=True, scale_decoder_outputs=False)),
          (T5_1_0, dict(tie_word_embeddings=True, scale_decoder_outputs=True)),
          # The defaults of mT5 are those of T5 1.1.
          (T5_1_1, MT5 | dict(tie_word_embeddings=True)),
          (T5_1_1, MT5 | dict(tie_word_embeddings=False)),
          (T5_1_1, MT5 | dict(tie_word_embeddings=None)),
      ],
  )
  def test_configs(self, tmp_path, config, overrides):
    """A field that is given as ... is left out."""
    fields = fields_of(config, **overrides)
    fields = {name: x for name, x in fields.items() if x is not ...}
    by_hand.write_hugging_face(tmp_path, fields, tensors_of(config))
    assert checkpoints.open(tmp_path).network() == config
    assert_holds(tmp_path, config)

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
    checkpoint = checkpoints.open(write(tmp_path, T5_1_1, tensors, **overrides))
    assert checkpoint.network() == T5_1_1
    found = restore(tmp_path)
    embedding = tensors['shared.weight']
    np.testing.assert_array_equal(found['token_embedder/embedding'], embedding)
    np.testing.assert_array_equal(
        found['decoder/logits_dense/kernel'], embedding.T
    )

  def test_bucket(self, monkeypatch):
    """Shapes are read without weights."""
    with memory_files.enabled():
      folder = epath.Path('memory://model')
      with tempfile.TemporaryDirectory() as local:
        for file in write(pathlib.Path(local), shards=2).iterdir():
          (folder / file.name).write_bytes(file.read_bytes())
      with monkeypatch.context() as patch:
        patch.delattr(trees.StoredTensor, 'read')
        assert checkpoints.open(folder).network() == T5_1_1
      assert_holds(folder, T5_1_1)


class TestSpecialIds:

  def read(self, folder, generation=None, **overrides):
    """Read the ids of config.json and of generation_config.json."""
    write_config(folder, **overrides)
    if generation is not None:
      file = folder / 'generation_config.json'
      file.write_text(json.dumps(generation))
    ids = checkpoints.open(folder).special_ids
    return ids.end, ids.padding, ids.start

  @pytest.mark.parametrize(
      'overrides, generation, expected',
      [
          (dict(), None, (1, 0, 0)),
          (dict(pad_token_id=3), None, (1, 3, 3)),
          (dict(pad_token_id=3, bos_token_id=5), None, (1, 3, 5)),
          (dict(model_type='mt5', pad_token_id=3), None, (1, 3, 0)),
          (dict(decoder_start_token_id=None, pad_token_id=3), {}, (1, 3, 3)),
          (dict(eos_token_id=63), {'eos_token_id': None}, (63, 0, 0)),
          (dict(eos_token_id=2), {'eos_token_id': 7}, (7, 0, 0)),
          (dict(eos_token_id=[2]), None, (2, 0, 0)),
          (dict(), {'eos_token_id': [2]}, (2, 0, 0)),
          (dict(pad_token_id=1), {'pad_token_id': 8}, (1, 8, 8)),
          (dict(bos_token_id=4), {'decoder_start_token_id': 9}, (1, 0, 9)),
          (dict(decoder_start_token_id=0), {'bos_token_id': 9}, (1, 0, 0)),
          # Without the other file, forced tokens would be an error.
          (dict(forced_bos_token_id=5), {}, (1, 0, 0)),
      ],
  )
  def test_config(self, folder, overrides, generation, expected):
    """generation_config.json comes first, as in transformers."""
    assert self.read(folder, generation, **overrides) == expected

  @pytest.mark.parametrize(
      'name, value',
      [
          ('pad_token_id', [1, 2]), ('pad_token_id', False),
          ('pad_token_id', -1), ('eos_token_id', 64),
          ('forced_bos_token_id', 5),
      ],
  )  # fmt: skip
  @pytest.mark.parametrize('file', ['config', 'generation_config'])
  def test_refused(self, folder, file, name, value):
    given = {name: value}
    with pytest.raises(checkpoints.CheckpointError) as error:
      self.read(folder, given) if file != 'config' else self.read(
          folder, **given
      )
    assert f'{folder / file}.json has {name} {value!r}' in str(error.value)

  @pytest.mark.parametrize('generation', [None, {'eos_token_id': [2, 7, 2]}])
  def test_several_ends(self, folder, generation):
    self.read(folder, generation, eos_token_id=[2, 7])
    assert checkpoints.open(folder).special_ids.ends == (2, 7)
    with pytest.raises(checkpoints.CheckpointError, match='has 7 as end'):
      self.read(folder, generation, eos_token_id=[2, 7], pad_token_id=7)


@pytest.mark.parametrize(
    'config, generation, expected',
    [
        ({'num_beams': 1, 'do_sample': False, 'min_length': 0}, None, None),
        ({'num_beams': 4}, {}, None),  # the other file counts
        ({'num_beams': 4}, None, 'num_beams 4'),
        (
            {},
            {
                'begin_suppress_tokens': [5], 'temperature': 0.7,
                'max_length': 200, 'suppress_tokens': [6],
            },
            'begin_suppress_tokens [5]',
        ),
        ({}, {'do_sample': True, 'top_k': 50}, 'do_sample True; top_k 50'),
        (
            {'task_specific_params': {'summary': {'num_beams': 4}}}, {},
            "task_specific_params {'summary': {'num_beams': 4}}",
        ),
        ({'prefix': 'summarize: '}, {}, "prefix 'summarize: '"),
        ({'stop_strings': '.'}, None, "stop_strings '.'"),
        ({}, {'force_words_ids': [[5]]}, 'force_words_ids [[5]]'),
        ({}, {'max_time': 1.5, 'token_healing': False}, 'max_time 1.5'),
        ({}, {'a_setting_to_come': 7}, 'a_setting_to_come 7'),
        (
            {'a_size': 7, 'prefix': ''},
            {
                'eos_token_id': [1], 'use_cache': True, 'max_length': 20,
                'transformers_version': '5.24.0', '_from_model_config': True,
                'output_scores': True, 'num_assistant_tokens': 20,
                'early_stopping': False, 'length_penalty': 1.0,
            },
            None,
        ),
    ],
)  # fmt: skip
def test_unapplied_settings_are_named(
    folder, capsys, config, generation, expected
):
  write_config(folder, **config)
  if generation is not None:
    file = folder / 'generation_config.json'
    file.write_text(json.dumps(generation))
  models.find_model(checkpoints.open(folder)).load()
  said = capsys.readouterr().err
  if expected is None:
    assert not said
  else:
    (line,) = said.splitlines()
    assert line.startswith(str(folder)) and line.endswith(f': {expected}.')


class TestRefused:
  """Each error is one line with the folder and what is wrong in it."""

  def refuse(self, path, *named, config=T5_1_1):
    def read(path):
      restore(path, config)
      checkpoints.open(path).network()

    steps.refuse(read, path, *named)

  @pytest.mark.parametrize(
      'overrides',
      [
          dict(model_type='long_t5'), dict(model_type=['t5']),
          dict(feed_forward_proj={}),
          dict(num_layers=None), dict(d_ff=True), dict(vocab_size=0),
      ],
  )  # fmt: skip
  def test_config(self, folder, overrides):
    write_config(folder, **overrides)
    (name,) = overrides
    self.refuse(folder, 'config.json', name.removeprefix('model_'))

  @pytest.mark.parametrize(
      'overrides, named',
      [
          (dict(d_ff=49), "encoder/layers_0/mlp/wi_0/kernel (32, 48) instead"),
          (dict(num_layers=3), 'encoder/layers_2/'),
      ],
  )
  def test_sizes_beyond_the_tensors(self, folder, overrides, named):
    """They are refused with what is found, before memory is counted."""
    write_config(folder, **overrides)
    find = lambda path: models.find_model(checkpoints.open(path))
    steps.refuse(find, folder, named, 'config.json')

  @pytest.mark.parametrize(
      'change, named',
      [
          (lambda x: x.update(lora_A=x[WO]), 'lora_A'),
          (lambda x: x.pop(WO), 'encoder/layers_1/mlp/wo/kernel'),
          (lambda x: x.pop('shared.weight'), 'token_embedder/embedding'),
          (lambda x: x.update({BIAS_OF_1: x[WO]}), 'layers_1/relpos_bias'),
          (lambda x: x.update({WO: x[WO].astype(np.int8)}), 'wo/kernel int8'),
      ],
  )
  def test_tensors(self, tmp_path, change, named):
    tensors = tensors_of(T5_1_1)
    change(tensors)
    self.refuse(write(tmp_path, T5_1_1, tensors), named)

  @pytest.mark.parametrize(
      'name', ['encoder.embed_tokens', 'decoder.embed_tokens', 'lm_head']
  )
  def test_differing_copy_of_the_embedding(self, tmp_path, name):
    tensors = tensors_of(T5_1_0)
    tensors[f'{name}.weight'] = np.array(tensors['shared.weight'])
    tensors[f'{name}.weight'][-1, -1] += 1e-6
    write(tmp_path, T5_1_0, tensors)
    self.refuse(tmp_path, f'{name}.weight that differs', config=T5_1_0)
