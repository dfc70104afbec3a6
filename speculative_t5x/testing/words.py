# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Uniforms of given values, for vocabularies of one block of a draw."""

import numpy as np


def words(values) -> np.ndarray:
  """Returns uniforms whose draws and coins are those of given numbers.

  Both words are values * 2^32, because a draw from one block uses the second
  alone, and a coin the first, up to 2^-32.

  Args:
    values: [...] in [0, 1).
  Returns:
    [..., 2] uint32.
  """
  word = np.floor(np.asarray(values, np.float64) * 2**32).astype(np.uint32)
  return np.stack([word, word], axis=-1)
