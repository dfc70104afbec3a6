# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of any layout, checked before weights are read."""

from collections.abc import Iterator, Mapping
import functools
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import hugging_face
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import legacy
from speculative_t5x.loading.checkpoints import orbax
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.speculation import contracts

_READERS = {
    layouts.Layout.ORBAX: orbax.Reader,
    layouts.Layout.LEGACY: legacy.Reader,
    layouts.Layout.HUGGING_FACE: hugging_face.Reader,
}
# The two models that a distillation in T5X saves together.
_PAIR = {'target', 'draft'}
_MAX_SIZE = 2**31  # along an axis; some 10,000 times what any T5 has
_DTYPES = ('float32', 'bfloat16')  # what the networks compute in


class Checkpoint:
  """One finished checkpoint, whose folder and layout are known.

  Metadata are read when they are first needed and then kept, so a checkpoint
  that changes on disk must be opened again. Every error of a damaged file is
  raised by the attribute or the method that needs the file.

  Attributes:
    folder: the `checkpoint_<step>` folder, or the Hugging Face folder.
    layout: how the checkpoint lies in it.
  """

  def __init__(self, folder: epath.Path, layout: layouts.Layout):
    self.folder = folder
    self.layout = layout
    self._reader = _READERS[layout](folder)
    self._prefix = ''  # of the names of a model that is one of a pair

  @property
  def is_pair(self) -> bool:
    """Whether it holds a target and a draft model, which `of` tells apart.

    Raises:
      CheckpointError: if the metadata are damaged.
    """
    return {name.partition('/')[0] for name in self.specs} == _PAIR

  def of(self, role: str) -> 'Checkpoint':
    """Returns one model of a pair; of one model, the checkpoint itself.

    Args:
      role: 'target' or 'draft'.
    Raises:
      CheckpointError: if the metadata are damaged.
    """
    if not self.is_pair:
      return self
    model = Checkpoint(self.folder, self.layout)
    model._reader = self._reader  # whose metadata are read already
    model._prefix = f'{role}/'
    return model

  def check_is_one_model(self) -> None:
    """Raises CheckpointError for a pair, of which a model must be chosen."""
    if self.is_pair:
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} holds a target and a draft model, and'
          " one is needed. Choose it by checkpoints.open(path).of('draft'), or"
          ' write it alone by `speculative-t5x convert --gin.ROLE=draft`.'
      )

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and stored dtypes of the parameters, by T5X's names.

    A name is e.g. `decoder/layers_0/mlp/wo/kernel`. No weights are read.

    Raises:
      CheckpointError: if the metadata are damaged or the parameters quantized.
    """
    specs = {
        name.removeprefix(self._prefix): spec
        for name, spec in self._reader.specs.items()
        if name.startswith(self._prefix)
    }
    if other := sorted(
        f'{name} {spec.dtype} {spec.shape}'
        for name, spec in specs.items()
        if not jnp.issubdtype(spec.dtype, jnp.floating)
        or not all(0 < size < _MAX_SIZE for size in spec.shape)
    ):
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} holds parameters that are not'
          ' floating-point numbers or of sizes that no network has:'
          f' {errors.listing(other)}. Quantized ones are not read here; pass'
          ' the checkpoint that they were made from, or copy it again.'
      )
    return specs

  @functools.cached_property
  def step(self) -> int:
    """The training step; 0 for Hugging Face, which does not store it.

    Raises:
      CheckpointError: if neither the checkpoint nor its folder's name gives a
        step that a training can have.
    """
    step = self._reader.step
    if step is None:
      step = layouts.step_in_name(self.folder)
    if type(step) is not int or not 0 <= step <= layouts.MAX_STEP:
      raise errors.CheckpointError(
          f'{self.folder} has the training step {errors.shown(step)}, which is'
          f' not a whole number from 0 to {layouts.MAX_STEP}. Name the folder'
          ' checkpoint_<step>, or save it again.'
      )
    return step

  @property
  def config_fields(self) -> dict[str, Any] | None:
    """Fields of the network's config from config.json; None for T5X's layouts.

    None is larger than the stored tensors, so the network can be built.

    Raises:
      CheckpointError: if config.json is damaged or of another network.
    """
    return self._reader.config_fields

  @property
  def special_ids(self) -> contracts.SpecialIds | None:
    """The special ids of the vocabulary; None for the layouts of T5X.

    Each is read from generation_config.json, else from config.json, else it is
    the default of the model type in transformers: 1 for the end of sequence, 0
    for padding. The decoder starts from padding where no start is named.

    Raises:
      CheckpointError: if a file is damaged or forces tokens, or if an id is
        null, is one of several, or is not an id of the vocabulary.
    """
    return self._reader.special_ids

  @property
  def unapplied_settings(self) -> str | None:
    """A line on settings of decoding that only transformers follows, if any.

    Raises:
      CheckpointError: if a file is damaged.
    """
    return self._reader.unapplied_settings

  def check_shapes(self, expected: trees.Params) -> None:
    """Compares the parameters with a network's, both ways.

    Orbax restores a smaller tree or another size without an error, so nothing
    is read before this check has passed.

    Args:
      expected: tree of arrays or `jax.ShapeDtypeStruct`s.
    Raises:
      CheckpointError: naming the parameters that differ and the likely remedy.
    """
    self.check_is_one_model()
    wanted = _shapes(trees.flatten(expected))
    if problems := _differences(_shapes(self.specs), wanted):
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} is of another network than the'
          f' configured one: {"; ".join(problems)}. Set the sizes of the'
          ' network (layers, emb_dim, num_heads, head_dim, mlp_dim,'
          " vocab_size, and whether logits_via_embedding) to the checkpoint's."
      )

  def restore_params(
      self,
      expected: trees.Params,
      dtype: jnp.dtype | None = jnp.float32,
      shardings: trees.Params | None = None,
  ) -> trees.Params:
    """Reads the parameters, each straight to its devices.

    Args:
      expected: the network's parameter tree, as arrays or
        `jax.ShapeDtypeStruct`s.
      dtype: of the result, float32 or bfloat16; None for the stored one.
      shardings: tree like `expected` of `jax.sharding.Sharding`s; None for the
        first local device.
    Returns:
      The parameters, as a tree of nested dicts like `expected`.
    Raises:
      CheckpointError: if the parameters differ from `expected` in name or
        shape, cannot be read or are not finite, or if dtype is another.
    """
    self.check_shapes(expected)
    if shardings is None:
      shardings = jax.tree.map(lambda _: _first_device(), expected)
    wanted = self._wanted(dtype, trees.flatten(shardings))
    params = trees.nest(dict(self._read(wanted, at_once=True)))
    self._check_finite(params)
    return params

  def read_params(
      self, dtype: jnp.dtype | None = None
  ) -> Iterator[tuple[str, jax.Array]]:
    """Reads the parameters one at a time, to the first local device.

    Args:
      dtype: as for `restore_params`; None for the stored one.
    Yields:
      Names and parameters.
    Raises:
      CheckpointError: as `restore_params`; some parameters may have been read.
    """
    wanted = self._wanted(dtype, dict.fromkeys(self.specs, _first_device()))
    for name, param in self._read(wanted, at_once=False):
      self._check_finite({name: param})
      yield name, param
      del param  # or it would stay while the next one is read

  def restore_state(
      self, params: trees.Params, param_states: trees.Params
  ) -> tuple[int, trees.Params, trees.Params]:
    """Reads the whole training state, for a training that resumes.

    Args:
      params: the network's parameter tree, as arrays or
        `jax.ShapeDtypeStruct`s.
      param_states: the optimizer's, likewise.
    Returns:
      The step, the parameters and the optimizer's state, in the given dtypes.
    Raises:
      CheckpointError: as `restore_params`, and if the optimizer's state is
        missing, is not finite, differs from `param_states` in name or shape,
        or lies in another layout than `save` writes.
    """
    self.check_shapes(params)
    found = {}
    if self.layout is layouts.Layout.ORBAX:
      found = self._reader.read_specs('state', 'param_states')
    if not found or _shapes(found) != _shapes(trees.flatten(param_states)):
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} ({self.layout.value}) does not hold'
          ' the state of this optimizer as it is saved here, so the training'
          ' cannot resume from it. Train in a folder of its own.'
      )
    device = _first_device()
    step = jax.ShapeDtypeStruct((), jnp.int32)
    states = {'param_states': param_states, 'step': step}
    wanted = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device),
        {'target': params, 'state': states},
    )
    restored = self._reader.restore(wanted)
    self._check_finite(restored)
    state = restored['state']
    return int(state['step']), restored['target'], state['param_states']

  def _wanted(
      self,
      dtype: jnp.dtype | None,
      sharding_of: Mapping[str, jax.sharding.Sharding],
  ) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns the shape, dtype and sharding to read each parameter with."""
    try:
      name = dtype if dtype is None else jnp.dtype(dtype).name
    except TypeError:
      name = str(dtype)
    if name not in (*_DTYPES, None):
      raise errors.CheckpointError(
          f'Parameters cannot be read as {name}. Pass {" or ".join(_DTYPES)}.'
      )
    return {
        each: jax.ShapeDtypeStruct(
            spec.shape, name or spec.dtype, sharding=sharding_of[each]
        )
        for each, spec in self.specs.items()
    }

  def _check_finite(self, params: trees.Params) -> None:
    flat = trees.flatten(jax.tree.map(trees.is_finite, params))
    if bad := sorted(name for name, value in flat.items() if not bool(value)):
      raise errors.CheckpointError(
          f'{self.folder} holds numbers that are not finite (NaN or infinity)'
          f' in {errors.listing(bad)}. Use a checkpoint from before training'
          ' diverged.'
      )

  def _read(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct], at_once: bool
  ) -> Iterator[tuple[str, jax.Array]]:
    stored = {self._prefix + name: spec for name, spec in wanted.items()}
    for stored_name, array in self._reader.read(stored, at_once):
      name = stored_name.removeprefix(self._prefix)
      placed = _place(array, wanted[name])
      del array  # neither of both is to stay while the next one is read
      yield name, placed
      del placed


def open(path: layouts.Path) -> Checkpoint:
  """Finds a checkpoint; reads no metadata yet.

  Args:
    path: a `checkpoint_<step>` folder of T5X, a folder of several (the newest
      step is taken), or a Hugging Face folder (config.json and safetensors).
  Raises:
    CheckpointError: if there is no finished checkpoint of a known layout.
  """
  return Checkpoint(*layouts.resolve(path))


def _differences(
    found: dict[str, tuple[int, ...]], wanted: dict[str, tuple[int, ...]]
) -> list[str]:
  """Returns in which names and shapes parameters differ, as clauses."""
  problems = []
  if missing := sorted(wanted.keys() - found.keys()):
    problems.append(f'it lacks {errors.listing(missing)}')
  if extra := sorted(found.keys() - wanted.keys()):
    problems.append(f'it also holds {errors.listing(extra)}')
  common = wanted.keys() & found.keys()
  if other := sorted(n for n in common if wanted[n] != found[n]):
    shapes = [f'{n} {found[n]} instead of {wanted[n]}' for n in other]
    problems.append(f'it holds {errors.listing(shapes)}')
  return problems


def _first_device() -> jax.sharding.Sharding:
  return jax.sharding.SingleDeviceSharding(jax.local_devices()[0])


def _shapes(
    specs: dict[str, jax.ShapeDtypeStruct],
) -> dict[str, tuple[int, ...]]:
  return {name: tuple(spec.shape) for name, spec in specs.items()}


def _place(
    array: np.ndarray | jax.Array, wanted: jax.ShapeDtypeStruct
) -> jax.Array:
  """Puts an array where it is wanted; each device gets its part alone."""
  if isinstance(array, jax.Array):  # Orbax has put it there
    return array
  array = np.asarray(array, wanted.dtype, order='C')
  return jax.make_array_from_callback(
      wanted.shape, wanted.sharding, lambda index: array[index]
  )
