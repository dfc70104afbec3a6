# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders of T5 1.0 and T5 1.1, under T5X's names.

A folder holds config.json and model.safetensors, or several files of tensors
and model.safetensors.index.json, which says what lies in which. A kernel is
transposed: PyTorch stores [out, in], Flax [in, out].
"""

from collections.abc import Iterable, Iterator
import functools
import pathlib
from typing import Any

from etils import epath
import jax
import numpy as np

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import file_arrays
from speculative_t5x.loading.checkpoints import hugging_face_config
from speculative_t5x.loading.checkpoints import hugging_face_generation
from speculative_t5x.loading.checkpoints import hugging_face_ids
from speculative_t5x.loading.checkpoints import hugging_face_names as names_of
from speculative_t5x.loading.checkpoints import safetensors_file
from speculative_t5x.loading.files import json_file
from speculative_t5x.speculation import contracts

_SINGLE = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'

_Tensors = dict[str, file_arrays.FileArray]


class Reader:
  """Reads one Hugging Face folder.

  Attributes:
    config_fields: what config.json says, as fields of `T5Config`.
    special_ids: of the vocabulary that the model decodes.
    specs: shapes and stored dtypes of the parameters, by T5X's names.
    step: 0, for these folders do not say how long the model was trained.
  """

  step = 0

  def __init__(self, folder: epath.Path):
    """Binds the folder; reads nothing yet."""
    self._folder = folder

  @functools.cached_property
  def config_fields(self) -> dict[str, Any]:
    """The result of `hugging_face_config.fields`, checked against the tensors.

    Raises:
      errors.CheckpointError: if the folder is damaged or of another network.
    """
    fields = self._fields
    file = self._folder / 'config.json'
    for stack in ('encoder', 'decoder'):
      _check_layers(file, stack, fields, self._parameters)
    _check_sizes(file, fields, self._parameters)
    return fields

  @functools.cached_property
  def special_ids(self) -> contracts.SpecialIds:
    """The ids that `hugging_face_ids.read` finds.

    Raises:
      errors.CheckpointError: if the folder is damaged or of another network, or
        if it names no ids that are known here.
    """
    vocab_size = self.config_fields['vocab_size']
    return hugging_face_ids.read(self._folder, self._config, vocab_size)

  @functools.cached_property
  def unapplied_settings(self) -> str | None:
    """The result of `hugging_face_generation.unapplied`."""
    return hugging_face_generation.unapplied(self._folder, self._config)

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes, as in T5X.

    Raises:
      errors.CheckpointError: if the folder is damaged or of another network.
    """
    return {
        name: jax.ShapeDtypeStruct(
            tensor.shape[::-1] if _is_transposed(name) else tensor.shape,
            tensor.dtype,
        )
        for name, tensor in self._parameters.items()
    }

  def read(self, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Reads parameters one at a time, in the dtype that is stored.

    Raises:
      errors.CheckpointError: naming the tensor that cannot be read, or one that
        is stored as the embedding and is another matrix.
    """
    _check_copies(self._folder, self._tensors, self._parameters)
    for name in names:
      # Not kept here, or it would stay while the next one is read.
      yield name, _read_tensor(name, self._parameters[name])

  @functools.cached_property
  def _config(self) -> dict[str, Any]:
    return hugging_face_config.read(self._folder / 'config.json')

  @functools.cached_property
  def _fields(self) -> dict[str, Any]:
    """What config.json says, before it is compared with the tensors."""
    file = self._folder / 'config.json'
    return hugging_face_config.fields(file, self._config)

  @functools.cached_property
  def _tensors(self) -> _Tensors:
    """All tensors, by their names in the files."""
    return _read_headers(self._folder)

  @functools.cached_property
  def _parameters(self) -> _Tensors:
    """The tensors of the network, by T5X's names."""
    is_scaled = self._fields['logits_via_embedding']
    return _parameters(self._folder, self._tensors, is_scaled)


def _check_layers(
    file: epath.Path, stack: str, fields: dict[str, Any], parameters: _Tensors
) -> None:
  """Checks that each layer is there, at least in part."""
  num_layers = fields[f'num_{stack}_layers']
  found = {name.split('/')[1] for name in parameters if name.startswith(stack)}
  for i in range(num_layers):
    if f'layers_{i}' not in found:
      raise errors.CheckpointError(
          f'{file} gives the {stack} {errors.shown(num_layers)} layers, and the'
          f' folder lacks {stack}/layers_{i}. Download both again.'
      )


def _check_sizes(
    file: epath.Path, fields: dict[str, Any], parameters: _Tensors
) -> None:
  """Checks that no size is larger than every axis that is stored."""
  longest = max(max(x.shape, default=1) for x in parameters.values())
  for name in ('vocab_size', 'emb_dim', 'num_heads', 'head_dim', 'mlp_dim'):
    if fields[name] > longest:
      raise errors.CheckpointError(
          f'{file} gives {errors.shown(fields[name])} as {name}, and no tensor'
          f' of the folder has an axis longer than {longest}. Download both'
          ' again.'
      )


def _is_transposed(name: str) -> bool:
  return name != names_of.EMBEDDING  # a vector is its own transpose


def _parameters(
    folder: epath.Path, tensors: _Tensors, is_scaled: bool
) -> _Tensors:
  """Returns the tensors of the network, by T5X's names."""
  head = names_of.t5x_name(names_of.HEAD)
  parameters: _Tensors = {}
  unknown = []
  for name in sorted(tensors.keys() - set(names_of.IGNORED)):
    ours = names_of.t5x_name(name)
    if ours is None:
      unknown.append(name)
    elif ours != names_of.EMBEDDING and not (is_scaled and ours == head):
      parameters[ours] = tensors[name]
  if unknown:
    raise errors.CheckpointError(
        f'{folder} holds tensors that no T5 has: {errors.listing(unknown)}. It'
        ' is of another network, or quantized, or holds adapters: pass the'
        ' plain model.'
    )
  embedding = _embedding(folder, tensors, is_scaled)
  parameters[names_of.EMBEDDING] = embedding
  if not is_scaled:  # transformers stores no head that is the embedding
    parameters.setdefault(head, embedding)
  return parameters


def _embedding(
    folder: epath.Path, tensors: _Tensors, is_scaled: bool
) -> file_arrays.FileArray:
  """Returns the embedding by the first of its names that is stored."""
  candidates = (*names_of.EMBEDDINGS, *([names_of.HEAD] if is_scaled else []))
  for name in candidates:
    if name in tensors:
      return tensors[name]
  raise errors.CheckpointError(
      f'{folder} holds no embedding: none of {", ".join(candidates)}. Download'
      ' it again.'
  )


def _check_copies(
    folder: epath.Path, tensors: _Tensors, parameters: _Tensors
) -> None:
  """Checks that other tensors stored as the embedding equal it."""
  embedding = parameters[names_of.EMBEDDING]
  names = [*names_of.EMBEDDINGS]
  if 'decoder/logits_dense/kernel' not in parameters:
    names.append(names_of.HEAD)
  for name in names:
    copy = tensors.get(name, embedding)
    if copy is not embedding and not file_arrays.is_equal(copy, embedding):
      raise errors.CheckpointError(
          f'{folder} holds a {name} that differs from the embedding, though T5'
          ' has one for both stacks, and for the head too where config.json'
          ' does not say otherwise (scale_decoder_outputs, or without it'
          ' tie_word_embeddings, is false). Correct config.json, or pass'
          ' another model.'
      )


def _read_tensor(name: str, tensor: file_arrays.FileArray) -> np.ndarray:
  try:
    array = tensor.read()
  except (OSError, EOFError) as error:
    raise errors.CheckpointError(
        f'{name} cannot be read from {tensor.file}:'
        f' {errors.first_line(error)}. Copy or download the file again.'
    ) from error
  return array.T if _is_transposed(name) else array


def _read_headers(folder: epath.Path) -> _Tensors:
  there = {child.name for child in folder.iterdir()}
  if _SINGLE in there:
    return safetensors_file.read_header(folder / _SINGLE)
  file_of = _read_index(folder / _INDEX)
  headers = {}
  for file in sorted(set(file_of.values())):
    if file not in there:
      lost = sorted(name for name in file_of if file_of[name] == file)
      raise errors.CheckpointError(
          f'{folder} lacks the file {file}, in which {_INDEX} says that'
          f' {errors.listing(lost)} lie. Download it too.'
      )
    headers[file] = safetensors_file.read_header(folder / file)
  for name, file in file_of.items():
    if name not in headers[file]:
      raise errors.CheckpointError(
          f'{folder / file} does not hold {name}, though {_INDEX} says so.'
          ' Download both again.'
      )
  return {name: headers[file][name] for name, file in file_of.items()}


def _read_index(path: epath.Path) -> dict[str, str]:
  """Returns the file of each tensor, by name."""
  try:
    file_of = json_file.read(path).get('weight_map')
    if not isinstance(file_of, dict) or not file_of:
      raise ValueError('it has no weight_map')
    for file in file_of.values():
      if not isinstance(file, str) or pathlib.PurePath(file).name != file:
        raise ValueError(f'{errors.shown(file)} is no file of the folder')
  except errors.CheckpointError:
    raise
  except (OSError, ValueError) as error:
    raise errors.CheckpointError(
        f'{path} is damaged: {errors.first_line(error)}. Download it again.'
    ) from error
  return file_of
