# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The id of an example, which its sample depends on beside the seed."""

import zlib

import numpy as np

EXAMPLE_ID = 'example_id'  # the feature of tasks that have ids of their own


def of_inputs(tokens: np.ndarray) -> int:
  """An id for an example of a task that has none.

  Its inputs alone determine it: a number in the split would change with how a
  job is cut into shards. Equal inputs get equal samples.

  Args:
    tokens: [inputs_length] int32; padding (0) does not matter.
  Returns:
    A number in [0, 2**31).
  """
  tokens = np.asarray(tokens, np.int32)
  return zlib.crc32(tokens[tokens != 0].tobytes()) & 0x7FFFFFFF
