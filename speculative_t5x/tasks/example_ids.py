# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ids of examples; they and the seed determine samples, up to rounding."""

import zlib

import numpy as np

EXAMPLE_ID = 'example_id'  # the feature of tasks that define ids


def of_inputs(tokens: np.ndarray) -> int:
  """Return an id in [0, 2**31) for an example of a task that defines none.

  The id is a hash of the inputs, [inputs_length] int32 without padding, so
  examples with equal inputs get equal samples. An index in the split would
  depend on the sharding of a job.
  """
  tokens = np.asarray(tokens, np.int32)
  return zlib.crc32(tokens.tobytes()) & 0x7FFFFFFF
