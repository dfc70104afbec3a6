# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The chunks that an array lies in, which a reader allocates as declared."""

from collections.abc import Sequence


def check(shape: Sequence[int], chunk_shape: Sequence[int]) -> None:
  """Checks that an array's chunks are no larger than the array.

  T5X and Orbax write no others. A reader would make room for such a chunk
  before it sees that the data are missing, and abort where there is none.

  Raises:
    ValueError: if they are larger.
  """
  # An empty axis has chunks of 1.
  if any(chunk > max(1, size) for size, chunk in zip(shape, chunk_shape)):
    raise ValueError(
        f'its chunks of shape {tuple(chunk_shape)} are larger than the array,'
        f' which has {tuple(shape)}'
    )
