# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the convert job: what it writes, and its errors."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.jobs import convert
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.checkpoints import trees
from tests import checkpoints_by_hand as by_hand
from tests import full_disk
from tests import tiny
from tests.loading.checkpoints import steps

CONFIG = tiny.config(
    num_encoder_layers=1,
    num_decoder_layers=1,
    mlp_activations=('relu',),
    logits_via_embedding=True,
)
LAYOUTS = pytest.mark.parametrize('layout', checkpoints.Layout)


@pytest.fixture(scope='module')
def params():
  return by_hand.cast(tiny.params(CONFIG), jnp.float32)


def write(layout, path, params):
  steps.write(layout, path, params, CONFIG, shards=2)


def run(tmp_path, **arguments):
  convert.convert(
      checkpoint_path=tmp_path / 'model',
      output_dir=tmp_path / 'new' / 'converted',
      **arguments,
  )


def written(tmp_path, dtype=None):
  folder = tmp_path / 'new' / 'converted'
  assert checkpoints.open(folder).layout is checkpoints.Layout.ORBAX
  expected = models.abstract_params(CONFIG)
  return checkpoints.flatten(
      checkpoints.open(folder).restore_params(expected, dtype)
  )


def assert_same(found, params):
  """Check equal names, dtypes and bits."""
  wanted = checkpoints.flatten(params)
  assert found.keys() == wanted.keys()
  for name, array in wanted.items():
    assert found[name].dtype == array.dtype, name
    np.testing.assert_array_equal(found[name], array, name)


def tree_on_disk(step_folder):
  """Return how each leaf is stored, by name, from Orbax's metadata."""
  metadata = json.loads((step_folder / 'state' / '_METADATA').read_text())
  tree = metadata.pop('tree_metadata')
  return {
      '/'.join(part['key'] for part in leaf['key_metadata']): (
          [part['key_type'] for part in leaf['key_metadata']],
          leaf['value_metadata'],
      )
      for leaf in tree.values()
  }, metadata


class TestWritten:

  @LAYOUTS
  def test_equals_a_saved_checkpoint(self, tmp_path, params, layout):
    """It has parameters and step, but no optimizer state."""
    write(layout, tmp_path / 'model', params)
    run(tmp_path)
    step = 0 if layout is checkpoints.Layout.HUGGING_FACE else 7
    arrays = {n: jnp.asarray(x) for n, x in checkpoints.flatten(params).items()}
    same = checkpoints.save(tmp_path / 'same', step, checkpoints.nest(arrays))
    converted = tmp_path / 'new' / 'converted' / same.name
    assert tree_on_disk(converted) == tree_on_disk(same)
    assert checkpoints.open(converted).step == step
    files = [file for file in converted.rglob('*') if file.is_file()]
    assert not [f for f in files if bytes(tmp_path) in f.read_bytes()]

  @LAYOUTS
  @pytest.mark.parametrize('dtype', [None, 'bfloat16'])
  def test_several_dtypes_in_several_batches(
      self, tmp_path, params, layout, dtype, monkeypatch
  ):
    """Mixed-precision checkpoints have several dtypes."""
    monkeypatch.setattr(trees, '_BATCH', 20_000)
    mixed = by_hand.cast(params, jnp.bfloat16)
    mixed['token_embedder'] = params['token_embedder']
    write(layout, tmp_path / 'model', mixed)
    run(tmp_path, dtype=dtype)
    cast = by_hand.cast(params, jnp.bfloat16)
    assert_same(written(tmp_path), cast if dtype else mixed)

  def test_one_of_a_pair(self, tmp_path, params):
    pair = {'target': params, 'draft': jax.tree.map(lambda x: x + 1, params)}
    checkpoints.save(tmp_path / 'model', 7, jax.tree.map(jnp.asarray, pair))
    run(tmp_path, role='draft')
    assert_same(written(tmp_path), pair['draft'])

  def test_equals_a_checkpoint_of_t5x(self, shared, tmp_path):
    """Only T5X's optimizer and data state are missing."""
    draft = shared / 't5x_oracle' / 'draft'
    convert.convert(checkpoint_path=draft / 't5x_legacy', output_dir=tmp_path)
    ours, our_format = tree_on_disk(tmp_path / 'checkpoint_1500')
    theirs, format = tree_on_disk(draft / 't5x_orbax' / 'checkpoint_1500')
    states = {n for n in theirs if n.startswith('state/param_states/')}
    assert states and ours.keys() == theirs.keys() - states
    assert ours == {name: theirs[name] for name in ours}
    assert our_format == format


class TestRefused:
  """Nothing is written, and existing files remain."""

  def refuse(self, tmp_path, match, **arguments):
    before = self.files(tmp_path)
    with pytest.raises(checkpoints.CheckpointError, match=match) as error:
      run(tmp_path, **arguments)
    assert len(str(error.value).splitlines()) == 1
    assert self.files(tmp_path) == before

  def files(self, tmp_path):
    """Return all but what TensorStore may write after an error, at any load."""
    paths = sorted(tmp_path.rglob('*'))
    return [p for p in paths if '.orbax-checkpoint-tmp' not in str(p)]

  def test_checkpoints(self, tmp_path, params):
    legacy = checkpoints.Layout.LEGACY
    self.refuse(tmp_path, 'there is no such folder')
    other = {'bert': {'kernel': np.zeros((2, 3), np.float32)}}
    write(legacy, tmp_path / 'model', other)
    self.refuse(tmp_path, 'model.*so this is not a T5')
    shutil.rmtree(tmp_path / 'model')
    write(legacy, tmp_path / 'model', params)
    with full_disk.full_disk(1000) as reason:
      self.refuse(tmp_path, rf'checkpoint_7 cannot be written \({reason}\)')
    (tmp_path / 'new' / 'converted' / 'checkpoint_7').mkdir(parents=True)
    self.refuse(tmp_path, 'checkpoint_7 already')

  @LAYOUTS
  def test_non_finite_numbers(self, tmp_path, params, layout):
    """They are found last, after other parameters were written."""
    broken = by_hand.cast(params, jnp.float32)
    broken['token_embedder']['embedding'][2, 3] = np.nan
    write(layout, tmp_path / 'model', broken)
    self.refuse(tmp_path, 'not finite .*token_embedder/embedding')
