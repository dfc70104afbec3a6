# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding itself, for any model, drafter and rule.

  loop.decode = loop.start, then loop.advance until all rows have ended

  loop.start
    state.begin
      Model.start             the target and the drafter read the inputs
  loop.advance                one compiled while_loop
    Setup.noise               uniforms of the row's next call, or positions
    step.step
      Policy.num_wanted       how many draft tokens, at most gamma
      Drafter.propose         draft tokens, and q of each
        Policy.continues      after each of them: go on?
      Model.decode            one target call: logits of the whole block
      sampling.standardize    p, the distribution that is sampled from
      Setup.noise.decide      how many are accepted, and the next token
        Rule                  by chance: how many, weights of the next token
        CoupledRule           by the target's own draw, which it makes
      Policy.update           learns from the outcome
    Fold.update               keeps statistics or a trace of the outcome
  loop.admit                  puts new requests into ended rows

contracts      what models, drafters, rules and policies are
sampling       Section 2.2: logits to the distribution that is sampled from
verification   Section 2.3 and Algorithm 1: the rule of the paper
noise          what uniforms are keyed by, and what they decide
draft_length   how many draft tokens are wanted of each row
state          what the loop carries, and what it only reads
step           one target call of every row
outcome        what happened in a step, and folds over it
loop           steps until rows have ended, and new requests into ended rows
"""

from speculative_t5x import version

version.check()  # whatever uses JAX imports this package or `networks`
