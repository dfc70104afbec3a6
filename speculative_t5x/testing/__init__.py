# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges rules, drafters and draft length policies, your own included.

All outputs are enumerated, so that a bias is found however small it is.

  from speculative_t5x import testing

  testing.check_rule(MyRule())
  testing.check_drafter(MyDrafter)
  testing.check_policy(MyPolicy())

Each returns nothing, or raises an error that says what is wrong.
"""

from speculative_t5x.testing.pairs import Pair
from speculative_t5x.testing.rules import check_rule
from speculative_t5x.testing.rules import distances
from speculative_t5x.testing.rules import emissions
from speculative_t5x.testing.step_checks import check_drafter
from speculative_t5x.testing.step_checks import check_pair
from speculative_t5x.testing.step_checks import check_policy
from speculative_t5x.testing.table_pairs import Tables
from speculative_t5x.testing.table_pairs import random_tables

__all__ = [
    'Pair',
    'Tables',
    'check_drafter',
    'check_pair',
    'check_policy',
    'check_rule',
    'distances',
    'emissions',
    'random_tables',
]


def __dir__() -> list[str]:
  return __all__
