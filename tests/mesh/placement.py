# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the placement of arrays on eight devices, and of communication."""

import collections
import functools
import re

from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.policies import schedule
from speculative_t5x.research import whole_batches
from tests import checkpoints_by_hand as by_hand
from tests import live_bytes
from tests import tiny
from tests.loading.checkpoints import steps
from tests.mesh import pairs
from tests.optimized import compiled_loop

_COLLECTIVES = (
    'all-gather', 'all-reduce', 'all-to-all', 'collective-permute',
    'reduce-scatter',
)  # fmt: skip


def shard_shapes(params):
  """Return the shapes of the first device's shards, by name."""
  return {
      name: x.addressable_shards[0].data.shape
      for name, x in checkpoints.flatten(params).items()
  }


class TestParameters:

  @pytest.fixture(scope='class')
  @classmethod
  def folder(cls, tmp_path_factory):
    folder = tmp_path_factory.mktemp('target')
    checkpoints.save(folder, 1, pairs.params(pairs.TARGET))
    return folder

  def load(self, folder, rules):
    mesh = pairs.mesh_of((2, 4))
    return models.load_model(folder, pairs.TARGET, mesh=mesh, rules=rules)

  @pytest.mark.parametrize('layout', checkpoints.Layout)
  def test_each_device_reads_its_shard(self, tmp_path, layout):
    """Saved again, arrays are whole; what is not finite in a shard is named."""
    params = by_hand.cast(tiny.params(steps.CONFIG), jnp.float32)
    shardings = models.param_shardings(steps.CONFIG, pairs.mesh_of((4, 2)))
    steps.write(layout, tmp_path / 'written', params)
    restored = checkpoints.open(tmp_path / 'written').restore_params(
        steps.expected(), jnp.bfloat16, shardings
    )
    wanted = checkpoints.flatten(by_hand.cast(params, jnp.bfloat16))
    expected = checkpoints.flatten(shardings)
    for name, x in checkpoints.flatten(restored).items():
      assert x.sharding == expected[name]
      for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, wanted[name][shard.index])
    head = restored['decoder']['logits_dense']['kernel']
    assert head.addressable_shards[0].data.shape == (32, 64 // 2)
    checkpoints.save(tmp_path / 'again', 1, restored)
    again = checkpoints.open(tmp_path / 'again')
    jax.tree.map(
        np.testing.assert_array_equal,
        again.restore_params(steps.expected(), None),
        restored,
    )
    params['encoder']['layers_0']['mlp']['wo']['kernel'][-1] = np.nan
    steps.write(layout, tmp_path / 'broken', params)
    with pytest.raises(checkpoints.CheckpointError, match='mlp/wo/kernel'):
      checkpoints.open(tmp_path / 'broken').restore_params(
          steps.expected(), shardings=shardings
      )

  @pytest.mark.parametrize(
      'rules', [sharding.MODEL_PARALLEL, sharding.REPLICATED]
  )
  def test_parameters_are_read_onto_the_mesh(self, folder, rules):
    """No device needs memory for more than its shards."""
    with live_bytes.follow() as peak:
      model = self.load(folder, rules)
    leaves = jax.tree.leaves(model.params)
    held = sum(x.addressable_shards[0].data.nbytes for x in leaves)
    assert len(peak) == 8
    # One flag says whether all are finite.
    assert set(peak.values()) == {held + 1}

  def test_transposed_head_is_partitioned(self):
    config = tiny.config(
        num_heads=8, logits_via_embedding=True, num_encoder_layers=1
    )
    model = models.make_model(
        config, pairs.params(config), mesh=pairs.mesh_of((2, 4))
    )
    found = shard_shapes(model.params)
    assert found['decoder/logits_dense/kernel'] == (32, 16)


@pytest.mark.usefixtures('unchecked_types')
class TestCompiledLoop:
  """What the partitioned program does inside the loop."""

  @staticmethod
  @functools.cache
  def inside(shape, **options):
    decoder = pairs.decoder(shape, **options)
    compiled = whole_batches.compiled(decoder, pairs.request())
    return compiled_loop.loop_instructions(compiled.as_text())

  def shapes(self, shape, dtype):
    """Return the shapes of all arrays of a dtype."""
    return {
        array.shape
        for each in self.inside(shape)
        for array in each.arrays
        if array.dtype == dtype
    }

  def collectives(self, shape, **options):
    """Return the kind and the shape of what is exchanged."""
    found = [
        (each.opcode.removesuffix('-start'), each.arrays[0].shape)
        for each in self.inside(shape, **options)
    ]
    return [each for each in found if each[0] in _COLLECTIVES]

  def test_caches_are_partitioned(self):
    slots = pairs.LENGTH + pairs.GAMMA + 1
    data, model = shape = 4, 2
    found = {
        each[:-2]
        for each in self.shapes(shape, 'f32')
        if each[-2:] == (16, slots)
    }
    rows = pairs.BATCH // data
    # The target's are partitioned, the draft model's are not. The program may
    # omit an axis of one head.
    expected = {(rows, 8 // model), (rows, 2)}
    assert expected <= found <= {*expected, (rows,)}

  def test_rows_are_partitioned(self):
    shape = 4, 2
    sequences = {
        each
        for each in self.shapes(shape, 's32')
        if len(each) == 2 and each[1] == pairs.LENGTH
    }
    assert sequences == {(pairs.BATCH // shape[0], pairs.LENGTH)}

  def test_collectives(self):
    """They occur at the embedding, thrice per layer and for the logits.

    The draft model is replicated, and so is the distribution of a row, so
    nothing is exchanged there. Nor is anything exchanged at a cache. Scalars
    are: how long drafts are, and whether any row wants another draft token.
    """
    shape = 4, 2
    rows = pairs.BATCH // shape[0]
    found = collections.Counter(
        each for each in self.collectives(shape) if each[1]
    )
    assert found == {
        ('all-reduce', (rows, pairs.GAMMA + 1, 32)): 4,
        ('all-gather', (rows, pairs.GAMMA + 1, 64)): 1,
    }

  def test_data_parallelism_exchanges_scalars_only(self):
    """Where a draft model catches up, too."""
    policy = schedule.Schedule((pairs.GAMMA, 1))
    found = self.collectives((8, 1), policy=policy)
    assert set(found) == {('all-reduce', ())}


class TestT5XContext:
  """T5X uses JAX's older mesh context, and flax's rules."""

  def constraints(self, function, *args):
    """Return the shardings of the constrained arrays, in order."""
    rules = partitioning.axis_rules(sharding.MODEL_PARALLEL)
    with pairs.mesh_of((4, 2)), rules:
      lowered = jax.jit(function).lower(*args).as_text()
    return re.findall(r'sharding_constraint .*<@mesh, \[(.*)\]>', lowered)

  @pytest.mark.filterwarnings('ignore:.*with mesh:DeprecationWarning')
  def test_constrain(self):
    assert self.constraints(
        lambda *xs: [sharding.constrain(x, ('batch', 'heads')) for x in xs],
        jnp.zeros((8, 6)),
        jnp.zeros((8, 3)),
        jnp.zeros((6, 2)),
    ) == ['{"data"}, {"model"}', '{"data"}, {}', '{}, {"model"}']

  @pytest.mark.filterwarnings('ignore:.*with mesh:DeprecationWarning')
  def test_network(self):
    """Caches, inputs and logits have the shardings of T5X's rules."""
    model = network_lib.NetworkModel(pairs.TARGET, t5.SPECIAL_IDS)

    def step(params, tokens):
      context = pairs.TARGET.start(params, tokens, 8, 1).memory
      cache = model.network.init_cache(8, 5)
      first = jnp.zeros((8, 1), jnp.int32)
      return model.decode(params, context, cache, first, first[:, 0], None)

    found = self.constraints(
        step, pairs.params(pairs.TARGET), tiny.encoder_tokens(8, 9)
    )
    assert found == [
        '{"data"}, {}',  # tokens
        '{"data"}, {}, {}',  # the encoder's output
        # Keys and values of the inputs, of the cache, and of what is written.
        *4 * ['{"data"}, {"model"}, {}, {}'],
        '{"data"}, {}, {"model"}',  # logits, partitioned and then complete
        '{"data"}, {}, {}',
        *2 * ['{"data"}, {"model"}, {}, {}'],
    ]
