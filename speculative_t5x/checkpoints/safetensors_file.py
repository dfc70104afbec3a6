# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""safetensors files: a header of names, shapes and offsets, then plain bytes.

Read here and not by the `safetensors` library, which maps a local file into
memory (what is read is held twice, and a file cut short meanwhile kills the
process) and reads no remote one. The tests hold the two together. Format:
https://github.com/huggingface/safetensors#format
"""

import json
import struct
from typing import Any

from etils import epath
import numpy as np

from speculative_t5x.checkpoints import errors
from speculative_t5x.checkpoints import file_arrays

_MAX_HEADER = 100 * 10**6  # bytes, as the format says
_PREFIX = struct.Struct('<Q')  # the header's length
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip


def read_header(path: epath.Path) -> dict[str, file_arrays.FileArray]:
  """The tensors of a file, by name, none of them read yet.

  Raises:
    errors.CheckpointError: if the file is cut short or no safetensors file.
  """
  size = path.stat().length
  with path.open('rb') as file:
    prefix = file.read(_PREFIX.size)
    length = _PREFIX.unpack(prefix)[0] if len(prefix) == _PREFIX.size else 0
    start = _PREFIX.size + length
    if not 0 < length <= _MAX_HEADER or start > size:
      raise _damaged(path, 'its header is not there or cut short')
    data = file.read(length)
  try:
    header = json.loads(data)
    header.pop('__metadata__', None)
    tensors = {
        name: _tensor(path, entry, start) for name, entry in header.items()
    }
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise _damaged(path, f'its header is wrong: {error}') from error
  for name, tensor in tensors.items():
    span = tensor.spans[0]
    if span.offset < start or span.offset + span.length > size:
      raise _damaged(path, f'it ends within {name}')
  return tensors


def _tensor(
    path: epath.Path, entry: dict[str, Any], start: int
) -> file_arrays.FileArray:
  begin, end = entry['data_offsets']
  if entry['dtype'] not in _DTYPES:
    raise ValueError(f'dtype {entry["dtype"]} is not known here')
  dtype: np.dtype = file_arrays.dtype_of(_DTYPES[entry['dtype']])
  span = file_arrays.Span(start + begin, end - begin)
  return file_arrays.FileArray(path, tuple(entry['shape']), dtype, (span,))


def _damaged(path: epath.Path, what: str) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'{path} is damaged or no safetensors file: {what}. Copy or download it'
      ' again.'
  )
