# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""safetensors files: a header of names, shapes and offsets, then plain bytes.

Read here and not by the `safetensors` library, which maps a local file into
memory (what is read is held twice, and a file cut short meanwhile kills the
process) and reads no remote one. The tests hold the two together. Format:
https://github.com/huggingface/safetensors#format
"""

from collections.abc import Mapping
import struct
from typing import Any

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import file_arrays
from speculative_t5x.loading.files import json_file
from speculative_t5x.loading.files import regular_files

_PREFIX = struct.Struct('<Q')  # the header's length
_DTYPES = {
    'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16',
    'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8',
    'U64': 'uint64', 'U32': 'uint32', 'U16': 'uint16', 'U8': 'uint8',
    'BOOL': 'bool',
}  # fmt: skip


def read_header(path: epath.Path) -> dict[str, file_arrays.FileArray]:
  """Returns the tensors of a file, by name, without reading them.

  Raises:
    errors.CheckpointError: if the file is cut short or no safetensors file.
  """
  regular_files.check(path)
  size = path.stat().length
  with path.open('rb') as file:
    prefix = file.read(_PREFIX.size)
    length = _PREFIX.unpack(prefix)[0] if len(prefix) == _PREFIX.size else 0
    start = _PREFIX.size + length
    if not 0 < length <= json_file.MAX_BYTES or start > size:
      raise _damaged(path, 'its header is not there or cut short')
    data = file.read(length)
  try:
    header = json_file.parse(data)
    header.pop('__metadata__', None)
    tensors = {
        name: _tensor(path, name, entry, start)
        for name, entry in header.items()
    }
  except ValueError as error:
    raise _damaged(path, f'its header is wrong: {error}') from error
  _check_spans(path, tensors, start, size)
  return tensors


def _tensor(
    path: epath.Path, name: str, entry: Any, start: int
) -> file_arrays.FileArray:
  match entry:
    case {
        'dtype': str(dtype),
        'shape': list(shape),
        'data_offsets': [int(begin), int(end)],
    } if dtype in _DTYPES and bool not in (type(begin), type(end)):
      span = file_arrays.Span(start + begin, end - begin)
      return file_arrays.FileArray(
          path, tuple(shape), file_arrays.dtype_of(_DTYPES[dtype]), (span,)
      )
  raise ValueError(
      f'{name} is {errors.shown(entry)}, which is no dtype, shape and'
      ' data_offsets that are known here'
  )


def _check_spans(
    path: epath.Path,
    tensors: Mapping[str, file_arrays.FileArray],
    start: int,
    size: int,
) -> None:
  """Checks that tensors fill a file one behind the other.

  The format allows neither gaps nor bytes that belong to two tensors.
  """
  spans = sorted(
      (x.spans[0].offset, x.spans[0].length, name)
      for name, x in tensors.items()
  )
  end = start
  for offset, length, name in spans:
    if offset != end:
      raise _damaged(
          path,
          f'{name} starts at byte {offset} and not where the tensor before it'
          f' ends, at {end}',
      )
    end += length
    if end > size:
      raise _damaged(path, f'it ends within {name}')
  if end != size:
    raise _damaged(path, f'{size - end} bytes at its end are of no tensor')


def _damaged(path: epath.Path, what: str) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'{path} is damaged or no safetensors file: {what}. Copy or download it'
      ' again.'
  )
