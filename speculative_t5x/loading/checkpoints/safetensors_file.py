# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors: a header of names, shapes and spans, then plain bytes.

They are read here because their library reads local files alone. Of a file in a
bucket, the header and the spans that are asked for are read. No file is mapped
into memory: what is read would be held twice, and a file that is cut short
meanwhile would kill the process.
"""

import dataclasses
import json
import math
import struct
from typing import Any

from etils import epath
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import regular_files

_LENGTH = struct.Struct('<Q')  # of the header, which follows
_MAX_LENGTH = 100 * 10**6  # the library's own limit
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tensor:
  """A tensor of a file, not yet read.

  Attributes:
    file: The file that it is in.
    name: Its name there.
    shape: Its shape.
    dtype: Its dtype.
    start: Its first byte in the file.
  """

  file: epath.Path
  name: str
  shape: tuple[int, ...]
  dtype: np.dtype
  start: int

  @property
  def num_bytes(self) -> int:
    return math.prod(self.shape) * self.dtype.itemsize

  def read(self) -> np.ndarray:
    """Returns the tensor, which must not be written to.

    Raises:
      errors.CheckpointError: if the file cannot be read or has become shorter.
    """
    with errors.reading(f'{self.name} of {self.file}'):
      with self.file.open('rb') as file:
        file.seek(self.start)
        data = file.read(self.num_bytes)
      return np.frombuffer(data, self.dtype).reshape(self.shape)


def read_header(path: epath.Path) -> dict[str, Tensor]:
  """Returns the tensors of a file, by name, without reading them.

  Raises:
    errors.CheckpointError: if it is not a file of safetensors, is cut short, or
      holds tensors that are quantized.
  """
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
    tensors, end = {}, start
    for name, entry in sorted(
        header.items(), key=lambda item: item[1]['data_offsets']
    ):
      tensor = tensors[name] = _tensor(path, name, entry, end)
      end += tensor.num_bytes
      # The format allows neither gaps nor bytes that two tensors share.
      if entry['data_offsets'] != [tensor.start - start, end - start]:
        raise ValueError(f'the bytes of {name} do not follow those before')
    if end != size:
      raise ValueError(f'its tensors would end at byte {end} of {size}')
  return tensors


def _tensor(path: epath.Path, name: str, entry: Any, start: int) -> Tensor:
  shape, dtype = entry['shape'], entry['dtype']
  if not all(type(x) is int and x >= 0 for x in shape):
    raise ValueError(f'{name} has the shape {errors.shown(shape)}')
  if dtype not in _DTYPES:
    raise errors.CheckpointError(
        f'{path} holds {name} as {errors.shown(dtype)}, which is quantized.'
        ' Pass the model that it was made from.'
    )
  return Tensor(path, name, tuple(shape), jnp.dtype(_DTYPES[dtype]), start)
