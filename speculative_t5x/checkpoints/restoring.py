# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a checkpoint of any layout, checked before weights are read."""

from collections.abc import Iterator, Mapping
import re

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.checkpoints import errors
from speculative_t5x.checkpoints import hugging_face
from speculative_t5x.checkpoints import layouts
from speculative_t5x.checkpoints import legacy
from speculative_t5x.checkpoints import orbax
from speculative_t5x.checkpoints import trees

_READERS = {
    layouts.Layout.ORBAX: orbax,
    layouts.Layout.LEGACY: legacy,
    layouts.Layout.HUGGING_FACE: hugging_face,
}
_MAX_SIZE = 2**31  # along an axis; some 10,000 times what any T5 has
_DTYPES = ('float32', 'bfloat16')  # what the networks compute in
# T5X's scalable_t5 stacks its layers in one array, whose name then bears the
# stack's twice, and has a position bias in every layer.
_SCALABLE = re.compile(r'(encoder|decoder)/(\1|layers_\d+/relpos_bias)/.+')


def read_specs(path: layouts.Path) -> dict[str, jax.ShapeDtypeStruct]:
  """Names, shapes and stored dtypes of the parameters; reads no weights.

  Args:
    path: as for `find`.
  Returns:
    By T5X's names, e.g. `decoder/layers_0/mlp/wo/kernel`.
  Raises:
    CheckpointError: if there is no finished checkpoint or it is damaged.
  """
  return _specs(*layouts.resolve(path))


def _specs(
    folder: epath.Path, layout: layouts.Layout
) -> dict[str, jax.ShapeDtypeStruct]:
  """What `read_specs` says of a folder; its sizes are sure to be sizes."""
  specs = _READERS[layout].read_specs(folder)
  if other := sorted(
      f'{name} {spec.shape}'
      for name, spec in specs.items()
      if not all(0 < size < _MAX_SIZE for size in spec.shape)
  ):
    raise errors.CheckpointError(
        f'The checkpoint {folder} holds parameters of sizes that no network'
        f' has: {errors.listing(other)}. Copy or save it again.'
    )
  return specs


def read_step(path: layouts.Path) -> int:
  """The training step of a checkpoint; 0 for Hugging Face.

  Raises:
    CheckpointError: if there is no finished checkpoint, or none that says its
      step, or says one that no training has.
  """
  folder, layout = layouts.resolve(path)
  step = _READERS[layout].read_step(folder)
  if step is None:
    step = layouts.step_in_name(folder)
  if step is None:
    raise errors.CheckpointError(
        f'{folder} does not say of which training step it is. Name the folder'
        ' checkpoint_<step>.'
    )
  if type(step) is not int or not 0 <= step <= layouts.MAX_STEP:
    raise errors.CheckpointError(
        f'{folder} says that it is of training step {errors.shown(step)}, which'
        f' is no whole number from 0 to {layouts.MAX_STEP}. Copy or save the'
        ' checkpoint again.'
    )
  return step


def check_shapes(path: layouts.Path, expected: trees.Params) -> None:
  """Compares a checkpoint's parameters with a network's, both ways.

  Orbax restores a smaller tree or another size without a word, so nothing is
  read before this has passed.

  Args:
    path: as for `find`.
    expected: tree of arrays or `jax.ShapeDtypeStruct`s.
  Raises:
    CheckpointError: naming the parameters that differ and the likely remedy.
  """
  _check_specs(layouts.find(path), read_specs(path), expected)


def _check_specs(
    folder: epath.Path,
    specs: dict[str, jax.ShapeDtypeStruct],
    expected: trees.Params,
) -> None:
  if scalable := sorted(filter(_SCALABLE.fullmatch, specs)):
    raise errors.CheckpointError(
        f'The checkpoint {folder} is of another network, scalable_t5 with its'
        ' scanned layers or a position bias in each of them:'
        f' {errors.listing(scalable)}. Pass one of T5X\'s examples/t5.'
    )
  _check_floating(folder, specs)
  found = {name: spec.shape for name, spec in specs.items()}
  wanted = {n: tuple(x.shape) for n, x in trees.flatten(expected).items()}
  problems = []
  if missing := sorted(wanted.keys() - found.keys()):
    problems.append(f'it lacks {errors.listing(missing)}')
  if extra := sorted(found.keys() - wanted.keys()):
    problems.append(f'it also holds {errors.listing(extra)}')
  common = wanted.keys() & found.keys()
  if other := sorted(n for n in common if wanted[n] != found[n]):
    shapes = [f'{n} {found[n]} instead of {wanted[n]}' for n in other]
    problems.append(f'it holds {errors.listing(shapes)}')
  if problems:
    raise errors.CheckpointError(
        f'The checkpoint {folder} is of another network than the configured'
        f' one: {"; ".join(problems)}. Set the sizes of the network (layers,'
        ' emb_dim, num_heads, head_dim, mlp_dim, vocab_size, and whether'
        " logits_via_embedding) to the checkpoint's."
    )


def _check_floating(
    folder: epath.Path, specs: dict[str, jax.ShapeDtypeStruct]
) -> None:
  if other := sorted(
      f'{name} {spec.dtype}'
      for name, spec in specs.items()
      if not jnp.issubdtype(spec.dtype, jnp.floating)
  ):
    raise errors.CheckpointError(
        f'The checkpoint {folder} holds parameters that are no floating-point'
        f' numbers: {errors.listing(other)}. Quantized ones are not read here;'
        ' pass the checkpoint that they were made from.'
    )


def restore_params(
    path: layouts.Path,
    expected: trees.Params,
    dtype: jnp.dtype | None = jnp.float32,
    shardings: trees.Params | None = None,
) -> trees.Params:
  """Reads the parameters of a checkpoint, each straight to its devices.

  Args:
    path: a checkpoint's folder, or a folder of several (the newest).
    expected: the network's parameter tree, as arrays or
      `jax.ShapeDtypeStruct`s.
    dtype: what the parameters are cast to, float32 or bfloat16; None for what
      is stored.
    shardings: tree like `expected` of `jax.sharding.Sharding`s; None for the
      first local device.
  Returns:
    The parameters, as a tree of nested dicts like `expected`.
  Raises:
    CheckpointError: if there is no finished checkpoint, if its parameters
      differ from `expected` in name or shape, if it cannot be read, if it
      holds numbers that are not finite, or if dtype is another.
  """
  folder, layout = layouts.resolve(path)
  specs = _specs(folder, layout)
  _check_specs(folder, specs, expected)
  wanted = _wanted(specs, dtype, _shardings(expected, shardings))
  if layout is layouts.Layout.ORBAX:
    tree = {'target': trees.nest(wanted)}
    params = orbax.restore(folder, tree)['target']
  else:
    params = trees.nest(dict(_read_each(folder, layout, wanted)))
  _check_finite(params, folder)
  return params


def read_params(
    path: layouts.Path, dtype: jnp.dtype | None = None
) -> Iterator[tuple[str, jax.Array]]:
  """Reads the parameters one at a time, to the first local device.

  Args:
    path: a checkpoint's folder, or a folder of several (the newest).
    dtype: as for `restore_params`; None for what is stored.
  Yields:
    Names and parameters.
  Raises:
    CheckpointError: as `restore_params`; some parameters may have been read.
  """
  folder, layout = layouts.resolve(path)
  specs = _specs(folder, layout)
  _check_floating(folder, specs)
  wanted = _wanted(specs, dtype, dict.fromkeys(specs, _first_device()))
  read = _restore_each if layout is layouts.Layout.ORBAX else _read_each
  for name, param in read(folder, layout, wanted):
    _check_finite({name: param}, folder)
    yield name, param
    del param  # or it would stay while the next one is read


def restore_state(
    path: layouts.Path, params: trees.Params, param_states: trees.Params
) -> tuple[int, trees.Params, trees.Params]:
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
      missing, differs from `param_states` in name or shape, or lies in another
      layout than `save` writes.
  """
  folder, layout = layouts.resolve(path)
  if layout is not layouts.Layout.ORBAX:
    raise errors.CheckpointError(
        f'The checkpoint {folder} is in the layout {layout.value}; a training'
        f' resumes only from {layouts.Layout.ORBAX.value}. Train in a folder'
        ' of its own.'
    )
  _check_specs(folder, orbax.read_specs(folder), params)
  found = orbax.read_specs(folder, ('state', 'param_states'))
  if _shapes(found) != _shapes(trees.flatten(param_states)):
    raise errors.CheckpointError(
        f'The checkpoint {folder} does not hold the state of this optimizer,'
        ' so the training cannot resume from it. Train in a folder of its own.'
    )
  device = _first_device()
  step = jax.ShapeDtypeStruct((), jnp.int32)
  wanted = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device),
      {'target': params, 'state': {'param_states': param_states, 'step': step}},
  )
  restored = orbax.restore(folder, wanted)
  _check_finite(restored['target'], folder)
  state = restored['state']
  return int(state['step']), restored['target'], state['param_states']


def _wanted(
    specs: Mapping[str, jax.ShapeDtypeStruct],
    dtype: jnp.dtype | None,
    sharding_of: Mapping[str, jax.sharding.Sharding],
) -> dict[str, jax.ShapeDtypeStruct]:
  """How each parameter is to be read."""
  if dtype is not None:
    dtype = _check_dtype(dtype)
  return {
      name: jax.ShapeDtypeStruct(
          specs[name].shape, dtype or specs[name].dtype, sharding=sharding
      )
      for name, sharding in sharding_of.items()
  }


def _check_dtype(dtype: jnp.dtype) -> np.dtype:
  try:
    name = jnp.dtype(dtype).name
  except TypeError:
    name = str(dtype)
  if name not in _DTYPES:
    raise errors.CheckpointError(
        f'Parameters cannot be read as {name}. Pass {" or ".join(_DTYPES)}.'
    )
  return jnp.dtype(name)


def _shardings(
    expected: trees.Params, shardings: trees.Params | None
) -> dict[str, jax.sharding.Sharding]:
  """A sharding by the name of each parameter."""
  names = trees.flatten(expected)
  if shardings is None:
    return dict.fromkeys(names, _first_device())
  flat = trees.flatten(shardings)
  if other := sorted(flat.keys() ^ names.keys()):
    raise ValueError(
        'shardings must be a tree like the parameters; one of both lacks'
        f' {errors.listing(other)}.'
    )
  return flat


def _first_device() -> jax.sharding.Sharding:
  return jax.sharding.SingleDeviceSharding(jax.local_devices()[0])


def _shapes(specs: dict[str, jax.ShapeDtypeStruct]) -> dict[str, tuple]:
  return {name: tuple(spec.shape) for name, spec in specs.items()}


def _read_each(
    folder: epath.Path,
    layout: layouts.Layout,
    wanted: Mapping[str, jax.ShapeDtypeStruct],
) -> Iterator[tuple[str, jax.Array]]:
  """The parameters of a layout whose arrays are read one at a time."""
  for name, array in _READERS[layout].read(folder, wanted):
    placed = _place(array, wanted[name])
    del array  # neither of both is to stay while the next one is read
    yield name, placed
    del placed


def _restore_each(
    folder: epath.Path,
    layout: layouts.Layout,
    wanted: Mapping[str, jax.ShapeDtypeStruct],
) -> Iterator[tuple[str, jax.Array]]:
  """The parameters of Orbax's layout, some at a time."""
  for batch in trees.batches(wanted.items()):
    tree = orbax.restore(folder, {'target': trees.nest(batch)})
    yield from trees.flatten(tree['target']).items()
    del tree


def _place(array: np.ndarray, wanted: jax.ShapeDtypeStruct) -> jax.Array:
  """Puts an array where it is wanted; each device gets its part alone."""
  array = np.asarray(array, wanted.dtype, order='C')
  return jax.make_array_from_callback(
      wanted.shape, wanted.sharding, lambda index: array[index]
  )


def _check_finite(params: trees.Params, folder: epath.Path) -> None:
  is_finite = jax.tree.map(_is_finite, params)
  flat = trees.flatten(is_finite)
  if bad := sorted(name for name, value in flat.items() if not bool(value)):
    raise errors.CheckpointError(
        f'{folder} holds numbers that are not finite (NaN or infinity) in'
        f' {errors.listing(bad)}. Use a checkpoint from before training'
        ' diverged.'
    )


@jax.jit
def _is_finite(x: jax.Array) -> jax.Array:
  return jnp.isfinite(x).all()
