# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft lengths that follow a list."""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class Schedule(draft_length.DraftsOn):
  """Wants the k-th of some numbers of draft tokens in a row's k-th target call.

  Attributes:
    lengths: At least one; the last one holds for all further calls. A number
      above gamma means gamma.
  """

  lengths: tuple[int, ...]
  is_constant = False

  def __post_init__(self):
    try:
      lengths = tuple(self.lengths)
    except TypeError:
      lengths = ()
    if not lengths or not all(map(ranges.NATURAL.includes, lengths)):
      raise ranges.ArgumentError(
          'lengths must be a list of whole numbers of at least 0, such as'
          f' (2, 4, 6), got {self.lengths!r}.',
          lengths=self.lengths,
      )
    # Gin files give a list, which is not hashable.
    object.__setattr__(self, 'lengths', lengths)

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    return f'schedule({", ".join(map(str, self.lengths))})'

  def init(self, rows: int) -> jax.Array:
    """Return the number of target calls so far, [rows] int32."""
    return jnp.zeros((rows,), jnp.int32)

  def num_wanted(self, state, num_remaining, gamma: int) -> jax.Array:
    # Past its end the list stays at its last entry.
    last = len(self.lengths) - 1
    lengths = jnp.asarray(self.lengths, jnp.int32)
    return jnp.minimum(lengths[jnp.minimum(state, last)], gamma)

  def update(self, state: jax.Array, outcome) -> jax.Array:
    return state + outcome.is_active.astype(jnp.int32)
