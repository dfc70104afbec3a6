# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules by which draft tokens are accepted, one file each.

The rule of the paper is `Tokenwise`, in `speculation.verification`.
"""

from etils import epy

__all__ = [
    'BlockVerification',
    'Coupled',
    'CoupledGumbel',
    'ExactMatch',
    'KSequential',
    'Lenience',
    'RejectionSampling',
    'Tokenwise',
    'TypicalAcceptance',
]

with epy.lazy_api_imports(globals()):
  from speculative_t5x.rules.block import BlockVerification
  from speculative_t5x.rules.coupled import Coupled
  from speculative_t5x.rules.coupled import CoupledGumbel
  from speculative_t5x.rules.exact_match import ExactMatch
  from speculative_t5x.rules.k_sequential import KSequential
  from speculative_t5x.rules.lenience import make_rule as Lenience
  from speculative_t5x.rules.rejection_sampling import RejectionSampling
  from speculative_t5x.rules.typical_acceptance import (
      make_rule as TypicalAcceptance,
  )
  from speculative_t5x.speculation.verification import Tokenwise


def __dir__() -> list[str]:
  return __all__
