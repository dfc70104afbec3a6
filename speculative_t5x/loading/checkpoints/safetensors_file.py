# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors: a header of names, shapes and spans, then plain bytes.

They are read here because their library reads local files alone. Of a file in a
bucket, the header and the spans that are asked for are read. No file is mapped
into memory: what is read would be held twice, and a file that is cut short
meanwhile would kill the process.
"""

import functools
import json
import math
import struct

from etils import epath
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import trees

_LENGTH = struct.Struct('<Q')  # of the header, which follows
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip


def read_header(path: epath.Path) -> dict[str, trees.StoredTensor]:
  """Return the tensors of a file, by name, without reading them."""
  with errors.reading(path), path.open('rb') as file:
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    header = json.loads(file.read(length))
    header.pop('__metadata__', None)
    start = _LENGTH.size + length
    return {
        name: _tensor(path, name, start, **entry)
        for name, entry in header.items()
    }


def _tensor(
    path: epath.Path,
    name: str,
    start: int,
    dtype: str,
    shape: list[int],
    data_offsets: list[int],
) -> trees.StoredTensor:
  if dtype not in _DTYPES:
    raise errors.CheckpointError(
        f'{path} holds {name} as {errors.shown(dtype)}, which is quantized.'
        ' Pass the model that it was made from.'
    )
  kind = jnp.dtype(_DTYPES[dtype])
  load = functools.partial(
      _read, path, start + data_offsets[0], tuple(shape), kind
  )
  return trees.StoredTensor(path, name, tuple(shape), kind, load)


def _read(
    path: epath.Path, start: int, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
  with path.open('rb') as file:
    file.seek(start)
    data = file.read(math.prod(shape) * dtype.itemsize)
  return np.frombuffer(data, dtype).reshape(shape)
