# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of any layout, checked before weights are read."""

import abc
from collections.abc import Iterator, Mapping
import copy
import dataclasses
import functools
from typing import Any, ClassVar

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import scanned
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts

# The two models that a distillation in T5X saves together.
_PAIR = {'target', 'draft'}


class Checkpoint(abc.ABC):
  """One finished checkpoint, whose folder and layout are known.

  Metadata are read when they are first needed and then kept, so a checkpoint
  that changes on disk must be opened again. Every error of a damaged file is
  raised by the attribute or the method that needs the file.

  Attributes:
    layout: How the checkpoint lies in its folder.
    folder: The `checkpoint_<step>` folder, or the Hugging Face folder.
    source: What opens it again: the folder, or of a model of the Hugging Face
      hub its name with the commit.
    unapplied_settings: A line on settings of decoding that only transformers
      applies; None without any.
    special_ids: Those of the vocabulary; None for T5X's, which stores none.
    exit_layer: Of a head for the first layers of a target, how many layers it
      was trained for; None if that is not stored.
  """

  layout: ClassVar[layouts.Layout]
  special_ids: contracts.SpecialIds | None = None
  unapplied_settings: str | None = None
  exit_layer: int | None = None

  def __init__(self, folder: epath.Path, source: str | None = None):
    self.folder = folder
    self.source = source or str(folder)
    self._prefix = ''  # of the names of a model that is one of a pair

  @property
  @abc.abstractmethod
  def _stored_specs(self) -> Mapping[str, jax.ShapeDtypeStruct]:
    """Shapes and stored dtypes of the parameters, by name; read once."""

  @property
  @abc.abstractmethod
  def _stored_step(self) -> Any:
    """The training step as it is stored; None if none is."""

  @abc.abstractmethod
  def _read(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct]
  ) -> Iterator[tuple[str, jax.Array]]:
    """Read stored parameters with the dtypes and shardings that are wanted."""

  @abc.abstractmethod
  def _read_array(self, name: str) -> np.ndarray:
    """Read a parameter on the host, by its stored name."""

  def _read_all(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct]
  ) -> Iterator[tuple[str, jax.Array]]:
    """Read parameters as `_read` does, also parts of what is stored."""
    whole, of_array = {}, {}
    for name, spec in wanted.items():
      if name in self._parts:
        of_array.setdefault(self._parts[name].array, []).append(name)
      else:
        whole[name] = spec
    yield from self._read(whole)
    for array, names in of_array.items():
      stored = self._read_array(self._prefix + array)
      for name in names:
        yield name, place(self._parts[name].take(stored), wanted[name])
      del stored  # or it would stay while the next one is read

  @property
  def is_pair(self) -> bool:
    """True if it holds a target and a draft model, which `of` tells apart."""
    return {name.partition('/')[0] for name in self.specs} == _PAIR

  def of(self, role: str) -> 'Checkpoint':
    """Return the 'target' or 'draft' of a pair; one model is itself."""
    if not self.is_pair:
      return self
    model = copy.copy(self)  # with the metadata that are read already
    model._prefix = f'{role}/'
    for name in ('specs', '_model_specs', '_parts', '_network'):
      vars(model).pop(name, None)
    return model

  def check_is_one_model(self) -> None:
    """Raise CheckpointError for a pair, of which a model must be chosen."""
    if self.is_pair:
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} holds a target and a draft model, and'
          " one is needed. Choose it by checkpoints.open(path).of('draft'), or"
          ' write it alone by `speculative-t5x convert`.'
      )

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and stored dtypes of the parameters, by T5X's names.

    A name is e.g. `decoder/layers_0/mlp/wo/kernel`. No weights are read.
    """
    arrays, parts = self._model_specs, self._parts
    split = {part.array for part in parts.values()}
    whole = {name: x for name, x in arrays.items() if name not in split}
    return whole | {
        name: jax.ShapeDtypeStruct(part.shape, arrays[part.array].dtype)
        for name, part in parts.items()
    }

  @functools.cached_property
  def _parts(self) -> dict[str, scanned.Part]:
    """The parameters that are parts of stored arrays."""
    return scanned.parts(self.folder, self._model_specs)

  @functools.cached_property
  def _model_specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the model's stored arrays."""
    specs = {
        name.removeprefix(self._prefix): spec
        for name, spec in self._stored_specs.items()
        if name.startswith(self._prefix)
    }
    if other := sorted(
        f'{name} {spec.dtype} {spec.shape}'
        for name, spec in specs.items()
        if not jnp.issubdtype(spec.dtype, jnp.floating)
    ):
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} holds parameters that are not'
          f' floating-point numbers: {errors.listing(other)}. Pass the'
          ' checkpoint that they were quantized from.'
      )
    return specs

  @functools.cached_property
  def step(self) -> int:
    """The training step; 0 for Hugging Face, which does not store it."""
    with errors.reading(f'The training step of {self.folder}'):
      step = self._stored_step
      return int(
          layouts.step_in_name(self.folder) or 0 if step is None else step
      )

  @functools.cached_property
  def _network(self) -> network.Network:
    self.check_is_one_model()
    with errors.prefixed(self.folder, errors.CheckpointError):
      return t5_checkpoints.of_shapes(self.specs)

  def network(self, dtype: Any = jnp.float32) -> network.Network:
    """Return the network that the checkpoint states; read no weights.

    Its sizes are those that a Hugging Face folder's config.json says, or that
    the shapes of T5X's parameters tell, as `families` says. It computes in
    `dtype`.
    """
    return dataclasses.replace(self._network, dtype=dtype)

  def check_shapes(self, expected: trees.Params) -> None:
    """Compare the parameters with a network's tree of shapes, both ways.

    Orbax restores a smaller tree or another size without an error, so nothing
    is read before this check has passed.
    """
    self.check_is_one_model()
    wanted = shapes(trees.flatten(expected))
    if problems := differences(shapes(self.specs), wanted):
      raise errors.CheckpointError(
          f'The checkpoint {self.folder} is of another network than the'
          f' configured one: {"; ".join(problems)}. Set the sizes of the'
          " network to the checkpoint's, or leave them to the checkpoint; in a"
          ' Hugging Face folder config.json says them.'
      )

  def restore_params(
      self,
      expected: trees.Params,
      dtype: jnp.dtype | None = jnp.float32,
      shardings: trees.Params | None = None,
  ) -> trees.Params:
    """Read the parameters, each straight to its devices.

    Args:
      expected: The network's parameter tree, as arrays or
        `jax.ShapeDtypeStruct`s. The result is nested dicts like it.
      dtype: Dtype of the result, float32 or bfloat16; None for the stored one.
      shardings: Tree like `expected` of `jax.sharding.Sharding`s; None for the
        first local device.
    Raises:
      CheckpointError: if the parameters differ from `expected` in name or
        shape, cannot be read or are not finite.
    """
    self.check_shapes(expected)
    return trees.nest(dict(self.read_params(dtype, shardings)))

  def read_params(
      self,
      dtype: jnp.dtype | None = None,
      shardings: trees.Params | None = None,
  ) -> Iterator[tuple[str, jax.Array]]:
    """Yield names and parameters one at a time.

    Arguments and errors are those of `restore_params`, but for the stored dtype
    by default; some parameters may have been read before an error.
    """
    sharding_of = dict.fromkeys(self.specs, first_device())
    if shardings is not None:
      sharding_of = trees.flatten(shardings)
    wanted = {
        name: jax.ShapeDtypeStruct(
            spec.shape, dtype or spec.dtype, sharding=sharding_of[name]
        )
        for name, spec in self.specs.items()
    }
    for name, param in self._read_all(wanted):
      self.check_finite({name: param})
      yield name, param
      del param  # or it would stay while the next one is read

  def restore_state(
      self, params: trees.Params, param_states: trees.Params
  ) -> tuple[int, trees.Params, trees.Params]:
    """Read the step, the parameters and the optimizer's state, to resume.

    Parameters and states are given as arrays or `jax.ShapeDtypeStruct`s, whose
    dtypes the result has. Errors are those of `restore_params`, also where the
    state is of another optimizer, or in another layout than `save` writes.
    """
    raise errors.CheckpointError(
        f'The checkpoint {self.folder} ({self.layout.value}) does not hold the'
        ' state of this optimizer as it is saved here, so the training cannot'
        ' resume from it. Train in a folder of its own.'
    )

  def check_finite(self, params: trees.Params) -> None:
    flat = trees.flatten(jax.tree.map(trees.is_finite, params))
    if bad := sorted(name for name, value in flat.items() if not bool(value)):
      raise errors.CheckpointError(
          f'{self.folder} holds numbers that are not finite (NaN or infinity)'
          f' in {errors.listing(bad)}. Use a checkpoint from before training'
          ' diverged.'
      )


def differences(
    found: dict[str, tuple[int, ...]], wanted: dict[str, tuple[int, ...]]
) -> list[str]:
  """Return in which names and shapes parameters differ, as clauses."""
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


def first_device() -> jax.sharding.Sharding:
  return jax.sharding.SingleDeviceSharding(jax.local_devices()[0])


def shapes(
    specs: dict[str, jax.ShapeDtypeStruct],
) -> dict[str, tuple[int, ...]]:
  return {name: tuple(spec.shape) for name, spec in specs.items()}


def place(array: np.ndarray, wanted: jax.ShapeDtypeStruct) -> jax.Array:
  """Put an array where it is wanted; each device gets its part alone."""
  array = np.asarray(array, wanted.dtype, order='C')
  return jax.make_array_from_callback(
      wanted.shape, wanted.sharding, lambda index: array[index]
  )
