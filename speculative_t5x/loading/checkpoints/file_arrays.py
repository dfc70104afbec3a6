# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays whose bytes lie plainly in a file, read one at a time.

Neither read whole nor mapped into memory: what is not asked for costs nothing,
and a remote file is read like a local one.
"""

from collections.abc import Iterator
import dataclasses
import math
from typing import Any

from etils import epath
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.files import regular_files

_BLOCK = 2**20  # bytes per read, the only memory besides the array
_DTYPES = (
    'float64', 'float32', 'float16', 'bfloat16',
    'int64', 'int32', 'int16', 'int8',
    'uint64', 'uint32', 'uint16', 'uint8', 'bool',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Span:
  """Some bytes of a file.

  Attributes:
    offset: where they start.
    length: how many there are.
  """

  offset: int
  length: int


@dataclasses.dataclass(frozen=True)
class FileArray:
  """An array in a file, in C order and little-endian.

  Raises ValueError for a shape that is none, or whose bytes are not the spans'.

  Attributes:
    file: that holds it.
    shape: of the array.
    dtype: of the array.
    spans: its bytes, in order.
  """

  file: epath.Path
  shape: tuple[int, ...]
  dtype: np.dtype
  spans: tuple[Span, ...]

  def __post_init__(self):
    # A bool is an int to Python, and 2.0 equals 2.
    if not all(type(size) is int and size >= 0 for size in self.shape):
      raise ValueError(f'{errors.shown(self.shape)} is no shape of an array')
    stored = sum(span.length for span in self.spans)
    expected = math.prod(self.shape) * self.dtype.itemsize
    if stored != expected:
      raise ValueError(
          f'{stored} bytes are stored for shape {self.shape} of'
          f' {self.dtype.name}, which takes {expected}'
      )

  def read(self) -> np.ndarray:
    """Reads it into memory of its own.

    Raises:
      EOFError: if the file ends too early.
    """
    data = np.empty(sum(span.length for span in self.spans), np.uint8)
    start = 0
    for block in _blocks(self):
      data[start : start + len(block)] = np.frombuffer(block, np.uint8)
      start += len(block)
    return data.view(self.dtype).reshape(self.shape)


def is_equal(one: FileArray, other: FileArray) -> bool:
  """Returns whether two arrays of one span each hold the same bytes.

  Raises:
    EOFError: if a file ends too early.
  """
  if (one.shape, one.dtype) != (other.shape, other.dtype):
    return False
  return all(x == y for x, y in zip(_blocks(one), _blocks(other)))


def _blocks(array: FileArray) -> Iterator[bytes]:
  regular_files.check(array.file)
  with array.file.open('rb') as file:
    for span in array.spans:
      file.seek(span.offset)
      left = span.length
      while left:
        block = file.read(min(_BLOCK, left))
        if not block:
          raise EOFError('the file ends too early')
        yield block
        left -= len(block)


def dtype_of(name: Any) -> np.dtype:
  """Returns the dtype of a name such as 'float32' or 'bfloat16'.

  Raises:
    ValueError: if there is none, or one that no array here may have.
  """
  if name not in _DTYPES:
    raise ValueError(f'the dtype {errors.shown(name)} is not known here')
  return np.dtype(jnp.bfloat16 if name == 'bfloat16' else name)
