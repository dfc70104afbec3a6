# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of PyTorch (`pytorch_model.bin`): a zip archive of a pickle and bytes.

PyTorch reads them, by an unpickler that makes tensors and runs no code. A file
is mapped, so that only the tensors that are asked for are read. It must be on
this machine: PyTorch maps no objects of a bucket.
"""

import contextlib
import functools
import pickle
import types
from typing import Any

from etils import epath
import jax.numpy as jnp
import numpy as np

from speculative_t5x import extras
from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import trees

_WEIGHTS_ONLY_IS_SAFE = (2, 6)  # it could run code before, CVE-2025-32434


def read_header(path: epath.Path) -> dict[str, trees.StoredTensor]:
  """Return the tensors of a file, by name, without reading them."""
  torch = _torch(path)
  with errors.reading(path):
    held = _load(torch, path)
    return {name: _tensor(path, name, value) for name, value in held.items()}


def _tensor(path: epath.Path, name: str, value: Any) -> trees.StoredTensor:
  kind = str(getattr(value, 'dtype', f'Python {type(value).__name__}'))
  try:
    dtype = jnp.dtype(kind.removeprefix('torch.'))
  except TypeError as error:
    raise errors.CheckpointError(
        f'{path} holds {name} as {kind}, and plain tensors are needed. Pass the'
        ' state dict of a model that is not quantized.'
    ) from error
  shape = tuple(value.shape)
  load = functools.partial(_read, path, name, shape, dtype)
  return trees.StoredTensor(path, name, shape, dtype, load)


def _read(
    path: epath.Path, name: str, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
  torch = _torch(path)
  # The file is mapped anew for each tensor: with the mapping, what was read of
  # it leaves memory, which the whole file would fill otherwise. A file that is
  # cut short meanwhile ends the process, so nothing stays mapped.
  tensor = _load(torch, path)[name]
  # NumPy has no bfloat16 that PyTorch knows, so bytes are passed.
  data = tensor.contiguous().flatten().view(torch.uint8).numpy()
  return np.array(data).view(dtype).reshape(shape)


def _load(torch: types.ModuleType, path: epath.Path) -> dict[str, Any]:
  try:
    return torch.load(path, map_location='cpu', weights_only=True, mmap=True)
  except pickle.UnpicklingError as error:
    # PyTorch's own message proposes to load such a file all the same.
    raise errors.CheckpointError(
        f'{path} holds other objects than tensors, whose code is not run, or is'
        ' damaged. Pass safetensors, or a file of tensors alone.'
    ) from error


def _torch(path: epath.Path) -> types.ModuleType:
  """Return PyTorch, which only these files need."""
  version = 0, 0
  with contextlib.suppress(ModuleNotFoundError):
    import torch

    version = tuple(map(int, torch.__version__.split('.')[:2]))
  if version < _WEIGHTS_ONLY_IS_SAFE:
    raise errors.CheckpointError(
        f'{path} is a pickle, which is read by PyTorch 2.6 or newer alone:'
        f' {extras.install("torch")}, or pass safetensors.'
    )
  return torch
