# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookup in the context as a drafter; it has no parameters."""

import dataclasses

from speculative_t5x.drafters import lookup
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class Lookup:
  """A drafting by lookup: `lookup.LookupDrafter` explains the attributes."""

  max_ngram: int = 3
  min_ngram: int = 1
  only_hints: bool = False

  def __post_init__(self):
    ranges.check_settings(ranges.COUNT, max_ngram=self.max_ngram)
    allowed = ranges.whole(1, self.max_ngram)
    ranges.check_settings(allowed, min_ngram=self.min_ngram)

  def make(self, target: contracts.Model, gamma: int) -> lookup.LookupDrafter:
    """Return the drafter; see `drafting.Drafting`."""
    return lookup.LookupDrafter(
        gamma,
        self.max_ngram,
        self.min_ngram,
        self.only_hints,
        # Without a first token of its own, an output begins behind its input.
        continues_input=target.special_ids.start is None,
    )

  def find(self, target) -> drafting.Drafting:
    """See `drafting.Drafting.find`; there is nothing to read."""
    searched = '_hints' if self.only_hints else ''
    name = f'lookup{searched}_{self.min_ngram}_{self.max_ngram}'
    return drafting.Drafting(
        self.make, descriptions.DrafterDescription('lookup', name)
    )
