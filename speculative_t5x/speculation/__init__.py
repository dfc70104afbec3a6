# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding itself, for any model, drafter and rule.

contracts      what models, drafters, rules and policies are
sampling       Section 2.2: logits to the distribution that is sampled from
verification   Section 2.3 and Algorithm 1: the rule of the paper
draft_length   how many draft tokens are wanted of each row
state          what the loop carries, and what it only reads
step           one target call of every row
outcome        what happened in a step, and folds over it
loop           steps until rows have ended, and new requests into ended rows
"""

from speculative_t5x import version

version.check()  # whatever uses JAX imports this package or `networks`
