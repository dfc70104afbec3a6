# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of example ids."""

import numpy as np
import pytest

from speculative_t5x.tasks import example_ids


# Recorded samples depend on these values.
@pytest.mark.parametrize(
    ('tokens', 'expected'), [([5, 1], 360625768), ([6, 7, 1], 647040499)]
)
def test_ids_never_change(tokens, expected):
  assert example_ids.of_inputs(np.array(tokens)) == expected


@pytest.mark.parametrize('dtype', [np.int32, np.int64, np.uint16])
def test_neither_padding_nor_dtype_matters(dtype):
  padded = np.array([6, 7, 1, 0, 0], dtype)
  assert example_ids.of_inputs(padded) == 647040499


def test_ids_have_31_bits():
  ids = [example_ids.of_inputs(np.array([n, 1])) for n in range(2, 2000)]
  assert len(set(ids)) == len(ids)
  assert 0 <= min(ids) < 2**23 and 2**31 - 2**23 < max(ids) < 2**31
