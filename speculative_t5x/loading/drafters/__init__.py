# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to draft, as a program or a gin file chooses them.

  a path, a model,  `find`   a `Drafting`,      `load`   a `Drafting`,
  a class of these  ------>  nothing is read    ------>  with parameters

`find` checks that the drafter fits a target. The networks that a found drafting
is going to read are its `models`, by which memory is counted; `drafter` makes
what the loop calls, for any gamma.
"""

from speculative_t5x.loading.drafters.drafting import Drafting
from speculative_t5x.loading.drafters.drafting import check_reads_hints
from speculative_t5x.loading.drafters.exit_drafting import EarlyExit
from speculative_t5x.loading.drafters.in_order_drafting import InOrder
from speculative_t5x.loading.drafters.lookup_drafting import Lookup
from speculative_t5x.loading.drafters.model_drafting import DraftModel
from speculative_t5x.loading.drafters.model_drafting import find
from speculative_t5x.loading.drafters.ngram_drafting import NGrams
from speculative_t5x.loading.drafters.tree_drafting import CandidateTree
