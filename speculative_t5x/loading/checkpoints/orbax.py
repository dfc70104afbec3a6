# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the layout that T5X saves today, through Orbax.

`checkpoint_<step>/state` holds one array a leaf under `target/...` (the
parameters), with the optimizer's state and the step beside it.
"""

from collections.abc import Callable, Iterator
import contextlib
import functools
import gc
import logging
import sys
import types
from typing import Any
import warnings

from etils import epath
import jax
import jax.numpy as jnp

from speculative_t5x.loading.checkpoints import array_chunks
from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import trees


class Reader:
  """Reads one checkpoint.

  Attributes:
    specs: shapes and stored dtypes of the parameters, by name.
    step: the training step that is stored, None if it is not.
  """

  def __init__(self, folder: epath.Path):
    """Binds the folder of a step; reads nothing yet."""
    self._folder = folder

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    return self.read_specs('target')

  def read_specs(self, *group: str) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns names, shapes and stored dtypes of what lies under a group.

    Raises:
      errors.CheckpointError: if the metadata are damaged.
    """
    part = self._metadata
    with self._one_metadata_error():
      for name in group:
        part = part.get(name, {})
      return {name: _spec(name, x) for name, x in trees.flatten(part).items()}

  @functools.cached_property
  def step(self) -> int | None:
    metadata = self._metadata
    with self._one_metadata_error():
      array = metadata.get('state', {}).get('step')
      if array is None:
        return None
      spec = _spec('step', array)
      if spec.shape or not jnp.issubdtype(spec.dtype, jnp.number):
        raise ValueError(f'step is {spec.dtype}{list(spec.shape)}, no number')
    # A training that T5X resumes has a step of the parameters' dtype.
    is_integer = jnp.issubdtype(spec.dtype, jnp.integer)
    dtype = jnp.int32 if is_integer else jnp.float32
    device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    wanted = jax.ShapeDtypeStruct((), dtype, sharding=device)
    step = self.restore({'state': {'step': wanted}})['state']['step'].item()
    with self._one_metadata_error():
      if not float(step).is_integer():
        raise ValueError(f'step is {step}, no whole number')
    return int(step)

  def restore(self, wanted: trees.Params) -> trees.Params:
    """Reads the named leaves of the training state.

    Args:
      wanted: tree of `jax.ShapeDtypeStruct`s with a sharding, which each leaf
        gets with the dtype as it is read.
    Raises:
      errors.CheckpointError: if a leaf cannot be read.
    """
    import orbax.checkpoint as ocp  # slow to import: only where it is needed

    restore_args = jax.tree.map(
        lambda x: ocp.ArrayRestoreArgs(sharding=x.sharding, dtype=x.dtype),
        wanted,
    )
    state_folder = self._folder / 'state'
    with (
        _one_error(f'{state_folder} is damaged or incomplete'),
        ocp.PyTreeCheckpointer() as checkpointer,
    ):
      return checkpointer.restore(
          state_folder,
          args=ocp.args.PyTreeRestore(
              item=jax.tree.map(lambda _: 0, wanted),
              restore_args=restore_args,
              partial_restore=True,
          ),
      )

  @functools.cached_property
  def _metadata(self) -> Any:
    """The tree of what Orbax knows of each array."""
    with self._one_metadata_error():
      return _read_metadata(self._folder / 'state')

  def _one_metadata_error(self) -> contextlib.AbstractContextManager[None]:
    return _one_error(f'The metadata in {self._folder / "state"} is damaged')


def _read_metadata(state_folder: epath.Path) -> Any:
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  # Orbax asks the arrays themselves. Its metadata file alone would not do: it
  # gives the shape of a shard, and in older checkpoints none at all.
  return ocp.PyTreeCheckpointHandler().metadata(state_folder).tree


def _spec(name: str, array: Any) -> jax.ShapeDtypeStruct:
  try:
    array_chunks.check(array.shape, array.storage.chunk_shape)
  except ValueError as error:
    raise ValueError(f'{name}: {error}') from None
  return jax.ShapeDtypeStruct(tuple(array.shape), array.dtype)


@contextlib.contextmanager
def _one_error(what: str) -> Iterator[None]:
  """Turns what Orbax and TensorStore raise and report into one error.

  They read arrays side by side. Where one fails, the others are given up, and
  each would be reported on stderr as something that nobody waited for.
  """
  logging.getLogger('asyncio').addFilter(_is_of_no_abandoned_read)
  hook = sys.unraisablehook
  if not isinstance(hook, _AbandonedReadsHook):
    sys.unraisablehook = _AbandonedReadsHook(hook)
  try:
    yield
    sys.unraisablehook = hook
    return
  except Exception as error:  # of many kinds, wrapped in others
    while error.__cause__ is not None:
      error = error.__cause__
    reason = errors.first_line(error)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', RuntimeWarning)  # coroutine not awaited
    gc.collect()
  raise errors.CheckpointError(
      f'{what}: {reason}. Copy or save the checkpoint again.'
  )


def _is_of_no_abandoned_read(record: logging.LogRecord) -> bool:
  """Returns whether a message of asyncio is shown: not of abandoned reads.

  It stays, as the hook below, for these messages may come much later.
  """
  message = record.getMessage()
  is_read = 'TensorStore' in message or 'OCDBT' in message
  return not (is_read and 'exception was never retrieved' in message)


class _AbandonedReadsHook:
  """Reports exceptions that nobody can catch, but for those of such reads.

  It stays after the error: TensorStore ends what it has begun later, in threads
  of its own.
  """

  def __init__(self, report: Callable[[Any], object]):
    self._report = report

  def __call__(self, unraisable: Any) -> None:
    is_abandoned = isinstance(unraisable.object, types.CoroutineType)
    if not is_abandoned and str(unraisable.exc_value) != 'Event loop is closed':
      self._report(unraisable)
