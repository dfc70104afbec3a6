# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters read from, and training states written to, T5X checkpoints.

The layout is what T5X saves today through Orbax: `checkpoint_<step>/state`
holds one array a leaf under `target/...` (the parameters), with the optimizer's
state and the step beside it. Decoding reads the parameters alone, a training
that resumes reads all.
"""

from collections.abc import Mapping
import os
import re
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp

Params = Any
Path = str | epath.Path

_STEP_FOLDER = re.compile(r'checkpoint_(\d+)')
_MAX_LISTED = 6  # a message names so many parameters and counts the rest


class CheckpointError(ValueError):
  """A checkpoint that is missing, unfinished or of another network."""


def find(path: Path) -> epath.Path:
  """The folder of one step: the path itself, or the newest step below it.

  Args:
    path: a `checkpoint_<step>` folder, or a folder that holds several.
  Raises:
    CheckpointError: if there is no finished checkpoint.
  """
  path = _absolute(path)
  if not path.is_dir():
    raise CheckpointError(
        f'No checkpoint at {path}: there is no such folder. Pass a'
        ' checkpoint_<step> folder or the folder that holds them.'
    )
  if (path / 'state').is_dir():
    return _check_finished(path)
  steps = step_folders(path)
  if not steps:
    raise CheckpointError(
        f'No checkpoint in {path}: it holds neither a folder named state nor'
        ' any checkpoint_<step> folder.'
    )
  return _check_finished(steps[max(steps)])


def step_folders(path: Path) -> dict[int, epath.Path]:
  """The `checkpoint_<step>` folders in an existing folder, by step."""
  return {
      int(match.group(1)): child
      for child in epath.Path(path).iterdir()
      if (match := _STEP_FOLDER.fullmatch(child.name))
  }


def _absolute(path: Path) -> epath.Path:
  """Orbax takes no relative path; a remote one (`gs://`) stays as it is."""
  path = epath.Path(path)
  return path if '://' in os.fspath(path) else path.absolute()


def _check_finished(step_folder: epath.Path) -> epath.Path:
  # Orbax writes the metadata last, so a save that was cut off lacks it.
  if not (step_folder / 'state' / '_METADATA').exists():
    raise CheckpointError(
        f'The checkpoint {step_folder} is unfinished or of another layout: it'
        ' has no state/_METADATA. Pass an earlier step, or save it again.'
    )
  return step_folder


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
  """Names and shapes of a checkpoint's parameters, without reading weights.

  Returns:
    Shape by name, e.g. `decoder/layers_0/mlp/wo/kernel`.
  """
  return _read_shapes(path, ('target',))


def _read_shapes(
    path: Path, group: tuple[str, ...]
) -> dict[str, tuple[int, ...]]:
  """Shapes of what lies under a group, by the rest of the name."""
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  state_folder = find(path) / 'state'
  try:
    # Orbax asks the arrays themselves. Its metadata file alone would not do:
    # it gives the shape of a shard, and in older checkpoints none at all.
    part = ocp.PyTreeCheckpointHandler().metadata(state_folder).tree
    for name in group:
      part = part.get(name, {})
    return {name: tuple(x.shape) for name, x in _flatten(part).items()}
  except Exception as error:  # Orbax and TensorStore raise many kinds.
    raise CheckpointError(
        f'The metadata in {state_folder} is damaged: {_first_line(error)}.'
        ' Copy or save the checkpoint again.'
    ) from error


def check_shapes(path: Path, expected: Params) -> None:
  """Compares a checkpoint's parameters with a network's, both ways.

  Orbax restores a smaller tree or another size without a word, so nothing is
  read before this has passed.

  Args:
    path: as for `find`.
    expected: tree of arrays or `jax.ShapeDtypeStruct`s.
  Raises:
    CheckpointError: naming the parameters that differ and the likely remedy.
  """
  found = read_shapes(path)
  wanted = {name: tuple(x.shape) for name, x in _flatten(expected).items()}
  problems = []
  if missing := sorted(wanted.keys() - found.keys()):
    problems.append(f'it lacks {_listing(missing)}')
  if extra := sorted(found.keys() - wanted.keys()):
    problems.append(f'it also holds {_listing(extra)}')
  common = wanted.keys() & found.keys()
  if other := sorted(n for n in common if wanted[n] != found[n]):
    shapes = [f'{n} {found[n]} instead of {wanted[n]}' for n in other]
    problems.append(f'it holds {_listing(shapes)}')
  if problems:
    raise CheckpointError(
        f'The checkpoint {find(path)} is of another network than the'
        f' configured one: {"; ".join(problems)}. Set the sizes of the network'
        ' (layers, emb_dim, num_heads, head_dim, mlp_dim, vocab_size) to the'
        " checkpoint's."
    )


def restore_params(
    path: Path, expected: Params, dtype: jnp.dtype = jnp.float32
) -> Params:
  """Reads the parameters of a T5X checkpoint.

  Args:
    path: a `checkpoint_<step>` folder, or a folder of several (the newest).
    expected: the network's parameter tree, as arrays or
      `jax.ShapeDtypeStruct`s.
    dtype: what the parameters are cast to.
  Returns:
    The parameters, as a tree of nested dicts like `expected`.
  Raises:
    CheckpointError: if there is no finished checkpoint, if its parameters
      differ from `expected` in name or shape, if it cannot be read, or if it
      holds numbers that are not finite.
  """
  check_shapes(path, expected)
  state_folder = find(path) / 'state'
  dtypes = {'target': jax.tree.map(lambda _: dtype, expected)}
  params = _restore(state_folder, dtypes)['target']
  _check_finite(params, state_folder)
  return params


def restore_state(
    path: Path, params: Params, param_states: Params
) -> tuple[int, Params, Params]:
  """Reads all of a checkpoint, for a training that resumes.

  Args:
    path: a `checkpoint_<step>` folder, or a folder of several (the newest).
    params: the network's parameter tree, as arrays or
      `jax.ShapeDtypeStruct`s.
    param_states: the optimizer's, likewise.
  Returns:
    The step, the parameters and the optimizer's state, in the given dtypes.
  Raises:
    CheckpointError: as `restore_params`, and if the optimizer's state is
      missing or differs from `param_states` in name or shape.
  """
  check_shapes(path, params)
  step_folder = find(path)
  wanted = {name: x.shape for name, x in _flatten(param_states).items()}
  if _read_shapes(path, ('state', 'param_states')) != wanted:
    raise CheckpointError(
        f'The checkpoint {step_folder} does not hold the state of this'
        ' optimizer, so the training cannot resume from it. Train in a folder'
        ' of its own.'
    )
  expected = {'target': params, 'state': {'param_states': param_states}}
  dtypes = jax.tree.map(lambda x: x.dtype, expected)
  dtypes['state']['step'] = jnp.int32
  restored = _restore(step_folder / 'state', dtypes)
  _check_finite(restored['target'], step_folder / 'state')
  state = restored['state']
  return int(state['step']), restored['target'], state['param_states']


def _restore(state_folder: epath.Path, dtypes: Params) -> Params:
  """Reads the named leaves, each in its dtype."""
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  restore_args = jax.tree.map(
      lambda dtype: ocp.ArrayRestoreArgs(sharding=device, dtype=dtype), dtypes
  )
  try:
    with ocp.PyTreeCheckpointer() as checkpointer:
      return checkpointer.restore(
          state_folder,
          args=ocp.args.PyTreeRestore(
              item=jax.tree.map(lambda _: 0, dtypes),
              restore_args=restore_args,
              partial_restore=True,
          ),
      )
  except Exception as error:  # Orbax and TensorStore raise many kinds.
    raise CheckpointError(
        f'{state_folder} cannot be read: {_first_line(error)}. The checkpoint'
        ' is damaged or incomplete; copy or save it again.'
    ) from error


def _check_finite(params: Params, folder: epath.Path) -> None:
  is_bad = jax.tree.map(lambda x: ~jnp.isfinite(x).all(), params)
  bad = sorted(n for n, value in _flatten(is_bad).items() if bool(value))
  if bad:
    raise CheckpointError(
        f'{folder} holds numbers that are not finite (NaN or infinity) in'
        f' {_listing(bad)}. Use a checkpoint from before training diverged.'
    )


def save(
    path: Path, step: int, params: Params, param_states: Params | None = None
) -> epath.Path:
  """Writes `checkpoint_<step>` in T5X's Orbax layout.

  Args:
    path: folder that will hold `checkpoint_<step>`.
    step: training step.
    params: parameter tree of arrays.
    param_states: optimizer state, a tree with one mapping a parameter; None
      for parameters only.
  Returns:
    The folder written. It appears whole or not at all.
  """
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  step_folder = _absolute(path) / f'checkpoint_{step}'
  state = {
      'state': {'step': jnp.asarray(step, jnp.int32)},
      'target': params,
  }
  if param_states is not None:
    state['state']['param_states'] = param_states
  with ocp.Checkpointer(
      ocp.CompositeCheckpointHandler(state=ocp.PyTreeCheckpointHandler())
  ) as checkpointer:
    checkpointer.save(
        step_folder,
        args=ocp.args.Composite(state=ocp.args.PyTreeSave(state)),
        force=True,
    )
  return step_folder


def _flatten(tree: Params, prefix: str = '') -> dict[str, Any]:
  flat = {}
  for name, part in tree.items():
    if isinstance(part, Mapping):
      flat.update(_flatten(part, f'{prefix}{name}/'))
    else:
      flat[prefix + name] = part
  return flat


def _listing(items: list[str]) -> str:
  shown = ', '.join(items[:_MAX_LISTED])
  rest = len(items) - _MAX_LISTED
  return f'{shown} and {rest} more' if rest > 0 else shown


def _first_line(error: Exception) -> str:
  lines = str(error).strip().splitlines()
  if not lines:
    return type(error).__name__
  # TensorStore appends its whole configuration to a message.
  return lines[0].partition(' [tensorstore_spec')[0][:300]
