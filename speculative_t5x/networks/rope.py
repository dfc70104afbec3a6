# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rotary position embeddings (RoPE), and how their frequencies are scaled.

Rotated lanes are split in halves: of n, lane i is rotated with lane i + n / 2,
as in checkpoints of Hugging Face.

Reference: Su et al. (2021), "RoFormer"; Llama 3.1's scaling as in Hugging
  Face's `modeling_rope_utils`.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

Tables = tuple[jax.Array, jax.Array]  # cosines and sines of angles


@dataclasses.dataclass(frozen=True)
class Scaling:
  """Lower frequencies for contexts longer than those of the first training.

  Attributes:
    factor: By what frequencies are divided.
    original_positions: Context of the first training, for Llama 3.1's scaling:
      lanes that turn often within it keep their frequency. None to divide all.
    low_turns: Lanes of fewer turns within it are divided by the factor.
    high_turns: Lanes of more turns keep their frequency; between, a mixture.
  """

  factor: float
  original_positions: int | None = None
  low_turns: float = 1.0
  high_turns: float = 4.0


def frequencies(
    num_lanes: int, theta: float, scaling: Scaling | None = None
) -> np.ndarray:
  """Return the angle per position, [num_lanes / 2] float32, of lane pairs."""
  lanes = np.arange(0, num_lanes, 2, dtype=np.float32)
  found = 1 / np.float32(theta) ** (lanes / num_lanes)
  if scaling is None:
    return found
  divided = found / scaling.factor
  if scaling.original_positions is None:
    return np.float32(divided)
  turns = scaling.original_positions * found / (2 * math.pi)
  kept = (turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns)
  kept = np.clip(kept, 0, 1)
  return np.float32(kept * found + (1 - kept) * divided)


def tables(positions: jax.Array, frequencies: np.ndarray) -> Tables:
  """Return cosines and sines [..., pairs] float32 at positions [...]."""
  # In bfloat16, positions from 256 on would be rounded to others.
  angles = positions[..., None].astype(jnp.float32) * frequencies
  return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, cosines: jax.Array, sines: jax.Array) -> jax.Array:
  """Rotate the leading lanes of heads.

  Args:
    x: [..., length, heads, head_dim].
    cosines: [..., length, pairs], for all heads; of as many pairs of lanes.
    sines: Likewise.
  """
  num_lanes = 2 * cosines.shape[-1]
  # In float32, for the rounding of late positions would move the angle.
  first, second = jnp.split(
      x[..., :num_lanes].astype(jnp.float32), 2, axis=-1
  )
  cosines, sines = cosines[..., None, :], sines[..., None, :]
  rotated = jnp.concatenate(
      [first * cosines - second * sines, second * cosines + first * sines],
      axis=-1,
  ).astype(x.dtype)
  if num_lanes == x.shape[-1]:
    return rotated
  return jnp.concatenate([rotated, x[..., num_lanes:]], axis=-1)
