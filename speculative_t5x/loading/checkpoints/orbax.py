# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the layout that T5X saves today, through Orbax.

`checkpoint_<step>/state` holds one array a leaf under `target/...` (the
parameters), with the optimizer's state and the step beside it.
"""

from collections.abc import Iterator, Mapping
import functools
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import trees


class OrbaxCheckpoint(checkpoint.Checkpoint):
  """A checkpoint of this layout."""

  layout = layouts.Layout.ORBAX

  @property
  def _state_folder(self) -> epath.Path:
    return self.folder / 'state'

  @functools.cached_property
  def _stored_specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    return self._specs('target')

  def _specs(self, *group: str) -> dict[str, jax.ShapeDtypeStruct]:
    """Return names, shapes and stored dtypes of what lies under a group."""
    part = self._metadata
    for name in group:
      part = part.get(name, {})
    specs = {}
    for name, array in trees.flatten(part).items():
      with errors.reading(f'{name} of {self._state_folder}'):
        trees.check_chunks(array.shape, array.storage.chunk_shape)
        specs[name] = jax.ShapeDtypeStruct(tuple(array.shape), array.dtype)
    return specs

  @functools.cached_property
  def _stored_step(self) -> Any:
    return self._number('step')

  @functools.cached_property
  def exit_layer(self) -> Any:
    return self._number('exit_layer')

  def _number(self, name: str) -> Any:
    """Return a number that is stored beside the parameters; None if it is not.
    """
    spec = self._specs('state').get(name)
    if spec is None:
      return None
    # A training that T5X resumes has a step of the parameters' dtype.
    is_integer = jnp.issubdtype(spec.dtype, jnp.integer)
    wanted = jax.ShapeDtypeStruct(
        (),
        jnp.int32 if is_integer else jnp.float32,
        sharding=checkpoint.first_device(),
    )
    number = self._restore({'state': {name: wanted}})['state'][name].tolist()
    is_whole = isinstance(number, float) and number.is_integer()
    return int(number) if is_whole else number

  def _read(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct], at_once: bool
  ) -> Iterator[tuple[str, jax.Array]]:
    # Some 64 MB are read side by side if not all.
    batches = [wanted] if at_once else trees.batches(wanted.items())
    for batch in batches:
      named = {self._prefix + name: spec for name, spec in batch.items()}
      # T5X names all parameters the target.
      tree = self._restore({'target': trees.nest(named)})['target']
      for name, array in trees.flatten(tree).items():
        yield name.removeprefix(self._prefix), array
        del array
      del tree

  def _read_array(self, name: str) -> np.ndarray:
    # Without a sharding, Orbax leaves it on the host.
    wanted = {'target': trees.nest({name: self._stored_specs[name]})}
    return trees.flatten(self._restore(wanted)['target'])[name]

  def restore_state(
      self, params: trees.Params, param_states: trees.Params
  ) -> tuple[int, trees.Params, trees.Params]:
    self.check_shapes(params)
    found = checkpoint.shapes(self._specs('state', 'param_states'))
    states = trees.flatten(param_states)
    if not found or found != checkpoint.shapes(states):
      return super().restore_state(params, param_states)  # which refuses
    step = jax.ShapeDtypeStruct((), jnp.int32)
    device = checkpoint.first_device()
    wanted = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device),
        {
            'target': params,
            'state': {'param_states': param_states, 'step': step},
        },
    )
    restored = self._restore(wanted)
    self.check_finite(restored)
    state = restored['state']
    return int(state['step']), restored['target'], state['param_states']

  def _restore(self, wanted: trees.Params) -> trees.Params:
    """Return the named leaves of the training state.

    Each gets the dtype and the sharding of its `jax.ShapeDtypeStruct`, and is
    NumPy's without a sharding.
    """
    import orbax.checkpoint as ocp  # slow to import: only where it is needed

    def arguments(spec: jax.ShapeDtypeStruct) -> ocp.RestoreArgs:
      if spec.sharding is None:
        return ocp.RestoreArgs(restore_type=np.ndarray, dtype=spec.dtype)
      return ocp.ArrayRestoreArgs(sharding=spec.sharding, dtype=spec.dtype)

    restore_args = jax.tree.map(arguments, wanted)
    with (
        errors.reading(self._state_folder),
        ocp.PyTreeCheckpointer() as checkpointer,
    ):
      return checkpointer.restore(
          self._state_folder,
          args=ocp.args.PyTreeRestore(
              item=jax.tree.map(lambda _: 0, wanted),
              restore_args=restore_args,
              partial_restore=True,
          ),
      )

  @functools.cached_property
  def _metadata(self) -> Any:
    """The tree of what Orbax knows of each array."""
    with errors.reading(self._state_folder):
      return _read_metadata(self._state_folder)


def _read_metadata(folder: epath.Path) -> Any:
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  # Orbax asks the arrays themselves. Its metadata file alone would not do: it
  # gives the shape of a shard, and in older checkpoints none at all.
  return ocp.PyTreeCheckpointHandler().metadata(folder).tree
