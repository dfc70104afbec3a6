# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The uniforms that a drafter uses in one step.

A uniform is 64 random bits: an array [..., 2] of uint32 words. `sampling.draw`
takes it as it is, and `coins` makes a float of it.

Legend: rows, count (uniforms per row), gamma (draft tokens per block).
"""

from collections.abc import Sequence
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32


@struct.dataclass
class Uniforms:
  """As many uniforms per row as a drafter declares.

  They are not a plain array, because JAX clamps an index past the end of one: a
  drafter that used more than it declares would use its last uniform twice,
  without an error, and the outputs would not keep the target's distribution.

  Attributes:
    values: [rows, count, 2] uint32, random bits.
    user: Who declared them, for the error message.
  """

  values: jax.Array
  user: str = struct.field(pytree_node=False)

  def split(self, *counts: int) -> tuple[jax.Array, ...]:
    """Return the uniforms in groups, each [rows, count, 2], in order.

    Args:
      *counts: Uniforms per row of each group (static).
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

  def of_drafters(self, drafters: Sequence[Any]) -> tuple['Uniforms', ...]:
    """Return the uniforms of each `contracts.Drafter`, by what it declares."""
    values = self.split(*(each.form.num_uniforms for each in drafters))
    return tuple(map(Uniforms, values, map(user_name, drafters)))

  def after(self, lengths: jax.Array) -> 'Uniforms':
    """Return the uniforms of a drafter that goes on after drafts, [rows]."""
    del lengths  # of each call, whatever was drafted before
    return self


@struct.dataclass
class PositionUniforms(Uniforms):
  """The uniforms of a row's next positions, which all that draw there share.

  Attributes:
    values: [rows, gamma + 1, 2] uint32, from the first position on.
    count: As many per row as the drafter declares (static).
  """

  count: int = struct.field(pytree_node=False)

  def split(self, *counts: int) -> tuple[jax.Array, ...]:
    # A drafter that declares more than one per draft token has the last one
    # several times: a draft token is accepted if the target draws it, whatever
    # it was drawn from.
    missing = max(self.count - self.values.shape[1], 0)
    padding = ((0, 0), (0, missing), (0, 0))
    values = jnp.pad(self.values[:, : self.count], padding, mode='edge')
    return Uniforms(values, self.user).split(*counts)

  def of_drafters(self, drafters: Sequence[Any]) -> tuple[Uniforms, ...]:
    return tuple(
        self.replace(user=user_name(each), count=each.form.num_uniforms)
        for each in drafters
    )

  def after(self, lengths: jax.Array) -> Uniforms:
    # Draft a b of the positions 5 and 6: who goes on begins with the uniform of
    # position 7, which is at index 2.
    last = self.values.shape[1] - 1
    index = lengths[:, None] + jnp.arange(last + 1, dtype=lengths.dtype)
    index = jnp.minimum(index, last)[..., None]
    return self.replace(
        values=jnp.take_along_axis(self.values, index, axis=1)
    )


def user_name(drafter: Any) -> str:
  """Return what messages call a drafter that uses uniforms."""
  return f'The drafter {type(drafter).__name__}'


def coins(
    uniforms: UInt32[Array, '*batch 2'], dtype: jnp.dtype
) -> Float[Array, '*batch']:
  """Return uniforms as floats in [0, 1), as fine-grained as their dtype.

  They are the 64 bits / 2^64, rounded, and never 1. A coin is below 1e-12 with
  probability 1e-12; a float32 of `jax.random.uniform`, with 1.2e-7. The dtype
  is that of the probabilities they are compared with.
  """
  high, low = uniforms[..., 0].astype(dtype), uniforms[..., 1].astype(dtype)
  # float32 rounds 2^32 - 1 up to 2^32, so that a coin could be 1.
  largest = 1 - jnp.finfo(dtype).epsneg
  return jnp.minimum(high * 2.0**-32 + low * 2.0**-64, largest)
