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
import operator
import struct

from etils import epath
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.files import regular_files

_LENGTH = struct.Struct('<Q')  # of the header, which follows
_MAX_LENGTH = 100 * 10**6  # the library's own limit
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip


def read_header(path: epath.Path) -> dict[str, trees.StoredTensor]:
  """Return the tensors of a file, by name, without reading them."""
  regular_files.check(path)
  with errors.reading(path):
    size = path.stat().length
    with path.open('rb') as file:
      (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
      start = _LENGTH.size + length
      if start > size or length > _MAX_LENGTH:  # before room is made for it
        raise ValueError(f'its header would have {length} bytes')
      header = json.loads(file.read(length))
    header.pop('__metadata__', None)
    tensors, end, is_full = {}, 0, True
    entries = sorted(header.items(), key=lambda x: x[1]['data_offsets'])
    for name, entry in entries:
      if entry['dtype'] not in _DTYPES:
        raise errors.CheckpointError(
            f'{path} holds {name} as {errors.shown(entry["dtype"])}, which is'
            ' quantized. Pass the model that it was made from.'
        )
      dtype = jnp.dtype(_DTYPES[entry['dtype']])
      # A size below 0 may not make up for another one: as 0, it fits no bytes.
      shape = tuple(max(0, operator.index(x)) for x in entry['shape'])
      first, end = end, end + math.prod(shape) * dtype.itemsize
      load = functools.partial(_read, path, start + first, shape, dtype)
      tensors[name] = trees.StoredTensor(path, name, shape, dtype, load)
      # The format allows neither gaps nor bytes that two tensors share.
      is_full &= entry['data_offsets'] == [first, end]
    if start + end != size or not is_full:
      raise ValueError('its tensors do not fill it one after another')
  return tensors


def _read(
    path: epath.Path, start: int, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
  with path.open('rb') as file:
    file.seek(start)
    data = file.read(math.prod(shape) * dtype.itemsize)
  return np.frombuffer(data, dtype).reshape(shape)
