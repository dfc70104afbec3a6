# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to choose how many draft tokens are wanted, one file each."""

from etils import epy

__all__ = [
    'ByLoad',
    'Confidence',
    'Entropy',
    'ExpectedSpeed',
    'Fixed',
    'MarginalGain',
    'Schedule',
]

with epy.lazy_api_imports(globals()):
  from speculative_t5x.policies.by_load import ByLoad
  from speculative_t5x.policies.confidence import Confidence
  from speculative_t5x.policies.confidence import Entropy
  from speculative_t5x.policies.expected_speed import ExpectedSpeed
  from speculative_t5x.policies.marginal_gain import MarginalGain
  from speculative_t5x.policies.schedule import Schedule
  from speculative_t5x.speculation.draft_length import Fixed


def __dir__() -> list[str]:
  return __all__
