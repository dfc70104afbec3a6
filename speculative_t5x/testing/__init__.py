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

from speculative_t5x.testing.boxes import constant_boxes as constant_boxes
from speculative_t5x.testing.pairs import Pair as Pair
from speculative_t5x.testing.reachable import (
    exact_distribution as exact_distribution,
)
from speculative_t5x.testing.rules import Enumerator as Enumerator
from speculative_t5x.testing.rules import check_rule as check_rule
from speculative_t5x.testing.rules import distances as distances
from speculative_t5x.testing.rules import emissions as emissions
from speculative_t5x.testing.rules import join as join
from speculative_t5x.testing.rules import mean_accepted as mean_accepted
from speculative_t5x.testing.rules import outputs as outputs
from speculative_t5x.testing.step_checks import check_drafter as check_drafter
from speculative_t5x.testing.step_checks import check_pair as check_pair
from speculative_t5x.testing.step_checks import check_policy as check_policy
from speculative_t5x.testing.table_pairs import KINDS as KINDS
from speculative_t5x.testing.table_pairs import Tables as Tables
from speculative_t5x.testing.table_pairs import random_tables as random_tables
