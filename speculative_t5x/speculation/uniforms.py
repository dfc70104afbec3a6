# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The uniforms that a drafter uses in one step.

Legend: rows, count (uniforms per row).
"""

from flax import struct
import jax
from jax import lax


@struct.dataclass
class Uniforms:
  """As many uniforms per row as a drafter declares.

  They are no plain array because JAX clamps an index past the end of an array:
  a drafter that used more than it declares would use its last uniform twice,
  without an error, and the outputs would not keep the target's distribution.

  Attributes:
    values: [rows, count] in [0, 1).
    user: who declared them, for the error message.
  """

  values: jax.Array
  user: str = struct.field(pytree_node=False)

  def __getitem__(self, index) -> None:
    """Refuses an index, which JAX would clamp.

    Raises:
      TypeError: always.
    """
    raise TypeError(
        'Uniforms are divided and not indexed: first, rest = uniforms.split(1,'
        ' n - 1), each [rows, count].'
    )

  def split(self, *counts: int) -> tuple[jax.Array, ...]:
    """Returns the uniforms in groups, each [rows, count], in order.

    Args:
      *counts: uniforms per row of each group (static).
    Raises:
      ValueError: if these are not all the uniforms that were declared.
    """
    declared = self.values.shape[1]
    if sum(counts) != declared:
      raise ValueError(
          f'{self.user} asks for {sum(counts)} uniforms per row and declares'
          f' {declared}. Let its num_uniforms state what it uses.'
      )
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return tuple(
        lax.slice_in_dim(self.values, end - count, end, axis=1)
        for end, count in zip(ends, counts, strict=True)
    )
