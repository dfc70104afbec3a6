# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Limits of the length of three outputs of at most 8 tokens."""

import numpy as np

EXAMPLES, LENGTH = 3, 8
EACH = np.array([2, 8, 5], np.int32)
# max_decode_steps, max_decode_steps_hard_limit, tokens of each example.
CASES = [
    (None, None, [8, 8, 8]),
    (3, None, [3, 3, 3]),
    (EACH, None, [2, 8, 5]),
    (3, 5, [3, 3, 3]),
    (5, 3, [3, 3, 3]),
    (EACH, 4, [2, 4, 4]),
    (0, None, [1, 1, 1]),  # T5X's loop ends rows after their first step
    (0 * EACH, None, [1, 1, 1]),
    (np.array([0, 8, 5], np.int32), None, [0, 8, 5]),
    (5, 0, [5, 5, 5]),  # a hard limit of 0 is none
    (None, 4, [8, 8, 8]),  # it bounds max_decode_steps alone
]
