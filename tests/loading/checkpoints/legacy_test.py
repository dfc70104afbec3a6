# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of T5X's older layout, in its variants for disks and buckets."""

from etils import epath
from flax import serialization
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.checkpoints import legacy
from speculative_t5x.loading.checkpoints import zarr_arrays
from tests import checkpoints_by_hand as by_hand
from tests import tiny
from tests.loading.checkpoints import steps

CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
WO_FOLDER = 'target.decoder.layers_0.mlp.wo.kernel'


@pytest.fixture(scope='module')
def params():
  return by_hand.cast(tiny.params(CONFIG), jnp.float32)


def assert_holds(path, params):
  steps.assert_holds(path, params, CONFIG)


class TestVariants:

  @pytest.mark.parametrize('driver', by_hand.DRIVERS)
  def test_moved_checkpoint(self, tmp_path, params, driver):
    """The spec names the original path."""
    by_hand.write_legacy(tmp_path, params, driver=driver)
    assert_holds(tmp_path, params)

  def test_arrays_that_flax_splits(self, tmp_path, params, monkeypatch):
    """Flax splits arrays at 1 GB; here at 256 bytes."""
    monkeypatch.setattr(serialization, 'MAX_CHUNK_SIZE', 256)
    folder = by_hand.write_legacy(
        tmp_path, params, inline=checkpoints.flatten(params)
    )
    assert b'__msgpack_chunked_array__' in (folder / 'checkpoint').read_bytes()
    assert_holds(tmp_path, params)

  def test_several_chunks(self, tmp_path, params):
    """5 does not divide the number of rows, so the last chunk is padded."""
    folder = by_hand.write_legacy(
        tmp_path, params, max_chunk=5 * CONFIG.emb_dim
    )
    assert len(list((folder / WO_FOLDER).iterdir())) > 2
    assert_holds(tmp_path, params)

  @pytest.mark.parametrize('inline', [(), None])
  def test_bfloat16(self, tmp_path, params, inline):
    narrow = by_hand.cast(params, jnp.bfloat16)
    by_hand.write_legacy(tmp_path, narrow, inline=inline)
    assert_holds(tmp_path, narrow)
    specs = checkpoints.open(tmp_path).specs
    assert {x.dtype for x in specs.values()} == {jnp.dtype('bfloat16')}

  @pytest.mark.parametrize(
      'wrap',
      [
          lambda tree: {'version': 2, 'optimizer': tree},
          lambda tree: {'optimizer': tree},
          lambda tree: {'target': tree['target']},
      ],
  )
  def test_variants_of_the_tree_around_the_parameters(
      self, tmp_path, params, wrap
  ):
    by_hand.write_legacy(tmp_path, params, wrap=wrap)
    assert_holds(tmp_path, params)
    assert checkpoints.open(tmp_path).step == 7

  def test_optimizer_state_is_not_read(self, tmp_path, params):
    def with_states(tree):
      tree['state']['param_states'] = {
          'wo': {'v': {'driver': 'zarr', 'kvstore': {'driver': 'lost'}}},
          'wi': {'v': np.full(4, np.nan), 'm': None},
      }
      return {'version': 3, 'optimizer': tree}

    by_hand.write_legacy(tmp_path, params, wrap=with_states)
    assert_holds(tmp_path, params)

  def test_bucket(self):
    """The bucket's name in the spec is a placeholder; the path has the name."""
    spec = by_hand.DRIVERS['gcs']('target.wo')
    path = legacy._zarr_path({'driver': 'zarr', **spec})
    folder = epath.Path('gs://bucket/model/checkpoint_7')
    assert zarr_arrays.files(folder / path) == {
        'driver': 'gcs',
        'bucket': 'bucket',
        'path': 'model/checkpoint_7/target.wo/',
    }

  def test_newest_step_of_several_layouts(self, tmp_path, params):
    """After an update of T5X, layouts lie side by side."""
    by_hand.write_legacy(tmp_path, params, step=9)
    checkpoints.save(tmp_path, 10, params)
    assert checkpoints.open(tmp_path).layout is checkpoints.Layout.ORBAX
    by_hand.write_legacy(tmp_path, params, step=11)
    assert checkpoints.open(tmp_path).layout is checkpoints.Layout.LEGACY
    assert checkpoints.open(tmp_path).step == 11

  def test_training_cannot_resume(self, tmp_path, params):
    by_hand.write_legacy(tmp_path, params)
    with pytest.raises(checkpoints.CheckpointError, match='cannot resume'):
      checkpoints.open(tmp_path).restore_state(params, {})
