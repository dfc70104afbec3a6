# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders, under T5X's names.

A folder holds config.json and model.safetensors, or several files of tensors
and model.safetensors.index.json, which says what lies in which. A kernel is
transposed: PyTorch stores [out, in], Flax [in, out].
"""

from collections.abc import Iterable, Iterator
import functools
import pathlib
import shutil
import tempfile
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.families import t5_hugging_face
from speculative_t5x.loading.files import json_file
from speculative_t5x.loading.files import regular_files
from speculative_t5x.speculation import contracts

# The module that knows the networks of a model type.
_FAMILIES = dict.fromkeys(t5_hugging_face.MODEL_TYPES, t5_hugging_face)
_SINGLE = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'
_GENERATION = 'generation_config.json'
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip
_BLOCK = 2**20  # bytes of a remote file that are copied at a time


class Reader:
  """Reads one Hugging Face folder.

  Attributes:
    step: 0, because these folders do not say how long the model was trained.
  """

  step = 0

  def __init__(self, folder: epath.Path):
    """Binds the folder; reads nothing yet."""
    self._folder = folder

  @functools.cached_property
  def config_fields(self) -> dict[str, Any]:
    """What config.json says, as fields of the network's config.

    Raises:
      errors.CheckpointError: if the folder is damaged, is of another network,
        or has a size that is larger than what is stored.
    """
    longest = max(max(x.shape, default=1) for x in self.specs.values())
    largest = max(longest, len(self.specs))
    for name, value in self._fields.items():
      # A network of such a size would take minutes to construct, or fail.
      if type(value) is int and value > largest:
        raise errors.CheckpointError(
            f'{self._folder / "config.json"} gives {errors.shown(value)} as'
            f' {name}, which is more than the tensors of the folder have.'
            ' Download both again.'
        )
    return self._fields

  @functools.cached_property
  def special_ids(self) -> contracts.SpecialIds:
    """The ids of config.json and of generation_config.json."""
    return self._family.special_ids(
        self._folder,
        self._config,
        self._generation,
        self.config_fields['vocab_size'],
    )

  @functools.cached_property
  def unapplied_settings(self) -> str | None:
    """A line on settings of decoding that only transformers follows."""
    return self._family.unapplied_settings(
        self._folder, self._config, self._generation
    )

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and stored dtypes of the parameters, by T5X's names.

    Raises:
      errors.CheckpointError: if the folder is damaged or of another network.
    """
    specs = {}
    for name, tensor in self._names[0].items():
      found = self._files[tensor].get_slice(tensor)
      shape, dtype = found.get_shape(), found.get_dtype()
      if dtype not in _DTYPES:
        raise errors.CheckpointError(
            f'{self._folder} holds {tensor} as {dtype}, which is quantized.'
            ' Pass the model that it was made from.'
        )
      if self._family.is_transposed(name):
        shape = shape[::-1]
      specs[name] = jax.ShapeDtypeStruct(shape, jnp.dtype(_DTYPES[dtype]))
    return specs

  def read(
      self, names: Iterable[str], at_once: bool = False
  ) -> Iterator[tuple[str, np.ndarray]]:
    """Reads parameters one at a time, in the dtype that is stored.

    Args:
      names: names of the parameters.
      at_once: not used; Orbax alone reads them side by side.
    Raises:
      errors.CheckpointError: naming the tensor that cannot be read, or one that
        is stored as the embedding and is another matrix.
    """
    del at_once
    tensor_of, copies = self._names
    for copy, tensor in copies.items():
      self._check_copy(copy, tensor)
    for name in names:
      # Not kept here, or it would stay while the next one is read.
      yield name, self._read(name, tensor_of[name])

  def _read(self, name: str, tensor: str) -> np.ndarray:
    array = self._read_tensor(tensor)
    return array.T if self._family.is_transposed(name) else array

  def _read_tensor(self, tensor: str) -> np.ndarray:
    with errors.reading(f'{tensor} of {self._folder}'):
      return self._files[tensor].get_tensor(tensor)

  def _check_copy(self, copy: str, tensor: str) -> None:
    one, other = (self._read_tensor(x) for x in (copy, tensor))
    is_alike = (one.shape, one.dtype) == (other.shape, other.dtype)
    # Compared as bytes, because `np.array_equal` would need a third array.
    if not is_alike or one.view(np.uint8).data != other.view(np.uint8).data:
      raise errors.CheckpointError(
          f'{self._folder} holds a {copy} that differs from the embedding,'
          ' though the network has one for both stacks, and for the head too'
          ' where config.json does not say otherwise (scale_decoder_outputs, or'
          ' without it tie_word_embeddings, is false). Correct config.json, or'
          ' pass another model.'
      )

  @functools.cached_property
  def _config(self) -> dict[str, Any]:
    config = self._read_json('config.json')
    family = config.get('model_type')
    if family not in list(_FAMILIES):  # which may be no text
      raise errors.CheckpointError(
          f'{self._folder / "config.json"} is of a network of type'
          f' {errors.shown(family)}; only {" and ".join(map(repr, _FAMILIES))}'
          ' are known here. Pass a model of one of them.'
      )
    return _FAMILIES[family].with_defaults(config)

  @property
  def _family(self) -> Any:
    return _FAMILIES[self._config['model_type']]

  @functools.cached_property
  def _generation(self) -> dict[str, Any] | None:
    is_there = _GENERATION in self._listing
    return self._read_json(_GENERATION) if is_there else None

  @functools.cached_property
  def _fields(self) -> dict[str, Any]:
    """What config.json says, before it is compared with the tensors."""
    file = self._folder / 'config.json'
    return self._family.network_fields(file, self._config)

  @functools.cached_property
  def _names(self) -> tuple[dict[str, str], dict[str, str]]:
    """The tensor of each parameter, and the copies of the embedding."""
    return self._family.tensor_names(self._folder, self._files, self._fields)

  @functools.cached_property
  def _listing(self) -> set[str]:
    return {child.name for child in self._folder.iterdir()}

  @functools.cached_property
  def _files(self) -> dict[str, Any]:
    """The open file that holds each tensor, by the tensor's name."""
    if _SINGLE in self._listing:
      file = self._open(_SINGLE)
      return dict.fromkeys(file.keys(), file)
    with errors.reading(self._folder / _INDEX):
      file_of = dict(self._read_json(_INDEX)['weight_map'])
      for name in file_of.values():
        if pathlib.PurePath(name).name != name:
          raise ValueError(f'{errors.shown(name)} is not a file of the folder')
    files = {file: self._open(file) for file in sorted({*file_of.values()})}
    held = {file: set(each.keys()) for file, each in files.items()}
    if lost := sorted(x for x in file_of if x not in held[file_of[x]]):
      raise errors.CheckpointError(
          f'{self._folder} does not hold {errors.listing(lost)}, though its'
          f' {_INDEX} says so. Download all its files again.'
      )
    return {name: files[file] for name, file in file_of.items()}

  def _open(self, name: str) -> Any:
    """Opens a file of tensors, whose library reads local files alone."""
    import safetensors  # not needed by other layouts

    path = self._folder / name
    regular_files.check(path)
    with errors.reading(path):
      if regular_files.is_remote(path):
        with path.open('rb') as remote:
          path = epath.Path(self._local.name) / name
          with path.open('wb') as copy:
            shutil.copyfileobj(remote, copy, _BLOCK)
      # Mapped into memory instead, what is read would be held twice, and a file
      # that is cut short meanwhile would kill the process.
      return safetensors.safe_open(path, 'np', backend='pread')

  @functools.cached_property
  def _local(self) -> tempfile.TemporaryDirectory:
    """Holds copies of remote files for as long as the reader lives."""
    return tempfile.TemporaryDirectory(prefix='speculative_t5x_')

  def _read_json(self, name: str) -> dict[str, Any]:
    with errors.reading(self._folder / name):
      return json_file.read(self._folder / name)
