# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding itself, for any model, drafter and rule.

  loop.decode = loop.start, then loop.advance until all rows have ended

  loop.start
    state.begin
      Model.start              the target and the drafter read the inputs
      Drafter.init
  loop.advance                 one compiled while_loop
    noise.ByCall, ByPosition   uniforms of a row's next call, or positions
    step.step
      proposing.view_of        all that the drafter sees: views.View
        Policy.num_wanted      how many draft tokens, at most gamma
      proposing.propose        checks what the drafter returns
        Drafter.propose        a chain, and q of each token; or a tree
          Policy.continues     after each token: go on?
      chain_step.judge         of a chain, as wide as widths.at_smallest
        Model.decode           one target call: logits of the whole block
        sampling.standardize   p, the distribution that is sampled from
        noise.decide           how many are accepted, and the next token
          Rule                 by chance: how many, weights of the next token
          CoupledRule          by the target's own draw, which it makes
      tree_step.judge          of a tree: token_trees
        Model.decode_tree      one target call: logits of all nodes
        CandidateRule.choose   a child of the node, or none
        Model.commit           the path to the target's cache
      proposing.commit         the drafter's next state
      committing.commit        scores of the tokens, and the rows with them
        Policy.update          learns from the outcome
    Fold.update                keeps statistics or a trace of the outcome
  loop.admit                   puts new requests into ended rows

  beam_loop.search             start, then advance until all have ended
    beams.call                 a step of the search per target call
      beams.step               a pure function of logits
        beam_scores.Scoring    how hypotheses compete
      beam_rows.take           rows of a cache continue each other
    beam_trees.call            several steps per target call
      proposing.propose        chains or trees behind the live hypotheses
      Model.decode_tree
      beams.step               as long as all live hypotheses are nodes
      Model.commit, proposing.commit

contracts      what models, drafters and rules are
forms          chains and trees, and what a drafter states of its own
views          what a drafter sees
candidates     shapes of trees, and rules that test several candidates
token_trees    trees of tokens, and their nodes as a model decodes them
sampling       Section 2.2: logits to the distribution that is sampled from
verification   Section 2.3 and Algorithm 1: the rule of the paper
simulated_acceptance  a rule that accepts at a given rate, to time steps
noise          what uniforms are keyed by, and what they decide
uniforms       64 random bits each, and a drafter's own
draft_length   how many draft tokens are wanted of each row
widths         the widths of verification
state          what the loop carries, and what it only reads
outcome        what happened in a step, and folds over it
ranges         checks of numeric arguments
score_order    several decodes per example, in T5X's order
theory         the paper's formulas
"""

from speculative_t5x import version

version.check()  # whatever uses JAX imports this package or `networks`
