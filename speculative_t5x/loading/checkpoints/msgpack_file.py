# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The msgpack files of `flax.serialization`, read without their arrays.

`read_tree` gives the tree of a file with a `FileArray` for each array, so that
a file of any size is indexed by reading some bytes an entry, and its arrays can
be read one at a time. (msgpack's own reader would hold the file, then each
array twice.) Format: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

import struct
from typing import Any

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import file_arrays
from speculative_t5x.loading.files import regular_files

# No training state comes near them; a damaged file may declare anything.
_MAX_VALUES = 10**6
_MAX_DEPTH = 64
_MAX_TEXT = 2**16  # bytes

_NDARRAY, _SCALAR = 1, 3  # extension types of Flax
_CHUNKED = '__msgpack_chunked_array__'  # Flax cuts arrays above 1 GB

# First byte of a value: what it is, and the width of the length that follows.
_CONTAINERS = {
    0xC4: ('bin', 1), 0xC5: ('bin', 2), 0xC6: ('bin', 4),
    0xC7: ('ext', 1), 0xC8: ('ext', 2), 0xC9: ('ext', 4),
    0xD9: ('str', 1), 0xDA: ('str', 2), 0xDB: ('str', 4),
    0xDC: ('array', 2), 0xDD: ('array', 4),
    0xDE: ('map', 2), 0xDF: ('map', 4),
}  # fmt: skip
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_LENGTHS = {1: '>B', 2: '>H', 4: '>I'}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: '>f', 0xCB: '>d', 0xCC: '>B', 0xCD: '>H', 0xCE: '>I', 0xCF: '>Q',
    0xD0: '>b', 0xD1: '>h', 0xD2: '>i', 0xD3: '>q',
}  # fmt: skip


def read_tree(path: epath.Path) -> Any:
  """Reads what a file holds, but for its arrays.

  Returns:
    Dicts with keys of text, lists, texts and numbers as stored;
    `file_arrays.FileArray` for an array or a NumPy scalar; `file_arrays.Span`
    for bytes.
  Raises:
    errors.CheckpointError: if the path is no regular file.
    ValueError or EOFError: if the file is no such msgpack, or is cut short.
  """
  regular_files.check(path)
  size = path.stat().length
  with path.open('rb') as file:
    tree = _Reader(path, file, size).value()
    if file.tell() != size:
      raise ValueError('bytes are left behind its end')
    return tree


class _Reader:
  """Reads the value at the file's position, and moves behind it."""

  def __init__(self, path: epath.Path, file, size: int):
    self._path = path
    self._file = file
    self._size = size
    self._num_values = 0
    self._depth = 0

  def value(self) -> Any:
    self._num_values += 1
    if self._num_values > _MAX_VALUES:
      raise ValueError(f'it holds more than {_MAX_VALUES} values')
    first = self._take(1)[0]
    if first <= 0x7F:
      return first
    if first >= 0xE0:
      return first - 0x100
    if first in _CONSTANTS:
      return _CONSTANTS[first]
    if first in _NUMBERS:
      return self._number(_NUMBERS[first])
    kind, length = self._kind_and_length(first)
    if self._depth == _MAX_DEPTH:
      raise ValueError(f'it is nested more than {_MAX_DEPTH} deep')
    self._depth += 1
    result = self._sized(kind, length)
    self._depth -= 1
    return result

  def _kind_and_length(self, first: int) -> tuple[str, int]:
    if first <= 0x8F:
      return 'map', first & 0x0F
    if first <= 0x9F:
      return 'array', first & 0x0F
    if first <= 0xBF:
      return 'str', first & 0x1F
    if first in _FIXED_EXTENSIONS:
      return 'ext', _FIXED_EXTENSIONS[first]
    if first in _CONTAINERS:
      kind, width = _CONTAINERS[first]
      return kind, self._number(_LENGTHS[width])
    raise ValueError(f'a value starts with the byte {first:#x}')

  def _sized(self, kind: str, length: int) -> Any:
    if kind == 'map':
      return _whole_array(self._mapping(length))
    if kind == 'array':
      return [self.value() for _ in range(length)]
    if kind == 'str':
      if length > _MAX_TEXT:
        raise ValueError(f'it holds a text of {length} bytes')
      return self._take(length).decode()
    if kind == 'bin':
      return self._skip(length)
    return self._extension(length)

  def _mapping(self, length: int) -> dict[str, Any]:
    mapping = {}
    for _ in range(length):
      key = self.value()
      if not isinstance(key, str):
        raise ValueError(f'the key {errors.shown(key)} is no text')
      if key in mapping:
        raise ValueError(f'the key {errors.shown(key)} is there twice')
      mapping[key] = self.value()
    return mapping

  def _extension(self, length: int) -> Any:
    code = self._number('>b')
    whole = self._span(length)
    if code not in (_NDARRAY, _SCALAR):
      return self._skip(length)
    value = self.value()
    match value:
      case [list(shape), str(dtype), file_arrays.Span() as span] if (
          self._file.tell() == whole.offset + whole.length
      ):
        return file_arrays.FileArray(
            self._path, tuple(shape), file_arrays.dtype_of(dtype), (span,)
        )
    raise ValueError(
        f'an array is {errors.shown(value)}, and no shape, dtype and bytes'
    )

  def _number(self, form: str):
    return struct.unpack(form, self._take(struct.calcsize(form)))[0]

  def _take(self, length: int) -> bytes:
    return self._file.read(self._span(length).length)

  def _skip(self, length: int) -> file_arrays.Span:
    span = self._span(length)
    self._file.seek(span.offset + length)
    return span

  def _span(self, length: int) -> file_arrays.Span:
    """Returns the span of the next bytes, after checking that they exist."""
    span = file_arrays.Span(self._file.tell(), length)
    if span.offset + length > self._size:
      raise EOFError('the file ends too early')
    return span


def _whole_array(mapping: dict) -> Any:
  """Returns the array that Flax split into the entries of a mapping, if any."""
  if _CHUNKED not in mapping:
    return mapping
  shape, chunks = _in_order(mapping, 'shape'), _in_order(mapping, 'chunks')
  are_arrays = all(isinstance(x, file_arrays.FileArray) for x in chunks)
  if not are_arrays or len({chunk.dtype for chunk in chunks}) != 1:
    raise ValueError('the parts of an array are no arrays of one dtype')
  return file_arrays.FileArray(
      chunks[0].file,
      tuple(shape),
      chunks[0].dtype,
      tuple(span for chunk in chunks for span in chunk.spans),
  )


def _in_order(mapping: dict[str, Any], name: str) -> list[Any]:
  """Returns the values of a mapping that Flax made of a sequence."""
  values = mapping.get(name)
  if not isinstance(values, dict) or values.keys() != set(
      map(str, range(len(values)))
  ):
    raise ValueError(f'an array in parts has {name} {errors.shown(values)}')
  return [values[str(i)] for i in range(len(values))]
