# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and vocabularies read from disk; what is wrong is named."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sentencepiece

from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x.networks import preparation
from tests import tiny


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('model')
  checkpoints.save(folder, 3, tiny.params(tiny.config()))
  return folder


class TestReadConfig:

  def test_is_the_networks(self, folder):
    config = loading.read_config(folder, jnp.bfloat16)
    assert config == tiny.config(dtype=jnp.bfloat16)

  def test_another_network(self, tmp_path):
    checkpoints.save(tmp_path, 1, {'bert': {'kernel': jnp.zeros((2, 3))}})
    with pytest.raises(checkpoints.CheckpointError, match='so this is no T5'):
      loading.read_config(tmp_path)


class TestLoadModel:

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
  def test_is_prepared_and_in_the_dtype_of_the_network(self, folder, dtype):
    config = tiny.config(dtype=dtype)
    model = loading.load_model(config, folder)
    params = jax.tree.map(lambda x: x.astype(dtype), tiny.params(config))
    expected_config, expected = preparation.merge(
        *preparation.prepare(config, params)
    )
    assert model.config == expected_config
    jax.tree.map(np.testing.assert_array_equal, model.params, expected)
    dtypes = {x.dtype for x in jax.tree.leaves(model.params)}
    assert dtypes == {jnp.dtype(dtype)}

  def test_a_head_that_is_the_embedding_counts_once(self):
    config = tiny.config(logits_via_embedding=True)
    params = tiny.params(config)
    model = loading.make_model(config, params)
    assert model.num_params == sum(x.size for x in jax.tree.leaves(params))

  def test_where_it_came_from_and_how_large_it_is(self, folder):
    config = tiny.config()
    model = loading.load_model(config, folder)
    assert model.checkpoint == str(folder / 'checkpoint_3')
    sizes = [np.size(x) for x in jax.tree.leaves(tiny.params(config))]
    assert model.num_params == sum(sizes)

  @pytest.mark.parametrize(
      'overrides, message',
      [
          (dict(num_decoder_layers=1), 'also holds decoder/layers_1'),
          (dict(num_encoder_layers=3), 'lacks encoder/layers_2'),
          (dict(emb_dim=16), 'instead of'),
          (dict(num_heads=4), 'instead of'),
          (dict(head_dim=8), 'instead of'),
      ],
  )
  def test_sizes_that_are_not_the_checkpoint_s(
      self, folder, overrides, message
  ):
    with pytest.raises(checkpoints.CheckpointError, match=message) as error:
      loading.load_model(tiny.config(**overrides), folder)
    assert 'Set the sizes of the network' in str(error.value)

  def test_mistyped_path(self, tmp_path):
    """One error, and no folder comes to be."""
    with pytest.raises(checkpoints.CheckpointError, match='mistyped'):
      loading.load_model(tiny.config(), tmp_path / 'mistyped')
    assert list(tmp_path.iterdir()) == []


def test_shapes_without_weights():
  """Base size at no cost: names and shapes, no arrays."""
  config = tiny.config(emb_dim=4096, mlp_dim=10240, vocab_size=32128)
  leaves = jax.tree.leaves(loading.abstract_params(config))
  assert {type(leaf) for leaf in leaves} == {jax.ShapeDtypeStruct}


def train_vocabulary(
    path, *, pad_id=0, eos_id=1, unk_id=2, text='a man walks'
):
  """A SentencePiece model of a few pieces."""
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(['ein Mann geht', text] * 5),
      model_writer=model,
      vocab_size=24,
      hard_vocab_limit=False,
      pad_id=pad_id,
      eos_id=eos_id,
      unk_id=unk_id,
      bos_id=-1,
      minloglevel=2,
  )
  path.write_bytes(model.getvalue())
  return path


class TestLoadVocabulary:

  def test_t5_s_special_ids(self, tmp_path):
    vocabulary = loading.load_vocabulary(train_vocabulary(tmp_path / 'a.model'))
    assert vocabulary.decode(vocabulary.encode('a man')) == 'a man'

  @pytest.mark.parametrize(
      'ids, message',
      [
          (dict(pad_id=1, eos_id=0), 'pad id 1 and end-of-sequence id 0'),
          (dict(pad_id=0, eos_id=2, unk_id=1), 'end-of-sequence id 2'),
          (dict(pad_id=-1, eos_id=1, unk_id=0), 'pad id -1'),
      ],
  )
  def test_other_special_ids(self, tmp_path, ids, message):
    path = train_vocabulary(tmp_path / 'other.model', **ids)
    with pytest.raises(loading.VocabularyError, match=message) as error:
      loading.load_vocabulary(path)
    assert 'other.model' in str(error.value)
    assert 'pad_id=0 eos_id=1' in str(error.value)

  def test_missing(self, tmp_path):
    with pytest.raises(loading.VocabularyError, match='no.model'):
      loading.load_vocabulary(tmp_path / 'no.model')
    assert list(tmp_path.iterdir()) == []

  @pytest.mark.parametrize('content', [b'', b'not a model'])
  def test_no_sentencepiece_model(self, tmp_path, content):
    path = tmp_path / 'text.model'
    path.write_bytes(content)
    with pytest.raises(loading.VocabularyError, match='text.model'):
      loading.load_vocabulary(path)

  def test_a_folder(self, tmp_path):
    with pytest.raises(loading.VocabularyError, match='no vocabulary'):
      loading.load_vocabulary(tmp_path)


class _Pieces(list):
  """The part of a SentencePiece model that tells its pieces."""

  get_piece_size = list.__len__
  id_to_piece = list.__getitem__


class TestSameVocabulary:

  def load(self, path, **kwargs):
    return loading.load_vocabulary(train_vocabulary(path, **kwargs))

  def test_the_same_pieces(self, tmp_path):
    one = self.load(tmp_path / 'a.model')
    loading.check_same_vocabulary(one, self.load(tmp_path / 'b.model'))

  def test_another_size(self, tmp_path):
    one = self.load(tmp_path / 'a.model')
    other = self.load(tmp_path / 'b.model', text='a man walks on')
    sizes = one.get_piece_size(), other.get_piece_size()
    assert sizes[0] != sizes[1]
    with pytest.raises(loading.VocabularyError) as error:
      loading.check_same_vocabulary(one, other)
    assert f"has {sizes[0]} pieces, the draft's {sizes[1]}" in str(error.value)

  @pytest.mark.parametrize('index', range(5))
  def test_any_piece(self, index):
    one, other = _Pieces('abcde'), _Pieces('abcde')
    loading.check_same_vocabulary(one, other)
    other[index] = 'z'
    with pytest.raises(loading.VocabularyError, match=f'Id {index} is'):
      loading.check_same_vocabulary(one, other)

  def test_another_piece(self, tmp_path):
    """Of one size, but trained on other letters."""
    one = self.load(tmp_path / 'a.model', text='a man walks')
    other = self.load(tmp_path / 'b.model', text='a man valks')
    with pytest.raises(loading.VocabularyError, match="Id [0-9]+ is '"):
      loading.check_same_vocabulary(one, other)


class TestVocabularyFits:

  def test_as_many_logits_or_more(self):
    model = tiny.model(tiny.config(vocab_size=64))
    loading.check_vocabulary_fits(64, 'target', model)
    loading.check_vocabulary_fits(60, 'target', model)

  def test_more_pieces_than_logits(self):
    model = tiny.model(tiny.config(vocab_size=64))
    with pytest.raises(
        loading.VocabularyError, match='65 pieces, the draft only 64 logits'
    ):
      loading.check_vocabulary_fits(65, 'draft', model)
