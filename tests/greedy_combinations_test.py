# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Greedy outputs of the embedded pairs under every exact combination.

Each row of a batch has a rule and a policy of its own, so that a batch has all
of them. They must be those of plain decoding, up to near ties.
"""

import dataclasses
import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import embedded
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.drafters import tables
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import in_order_drafting
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.tasks import bulletins
from tests import combinations
from tests import repeat_last
from tests import tiny
from tests import tiny_drafters

READ = {
    'translation': bulletins.read_pairs,
    'summarization': bulletins.read_reports,
}
GAMMA = 2
# Row i has the policy of number i (see `PolicyOfRow`), and then the next rule.
NUM_POLICIES = len(combinations.POLICIES)
NUM_EXAMPLES = len(combinations.RULES) * NUM_POLICIES


@functools.cache
def decoder(task):
  return embedded.load_decoder(task, gamma=GAMMA)


@functools.cache
def counts(task):
  """Return the counts of some outputs of a task."""
  vocabulary = decoder(task).vocabulary
  texts = [text for _, text in READ[task]('train')[:500]]
  return token_counts.count(
      ([*vocabulary.encode(text), vocabulary.eos_id] for text in texts),
      num_pieces=vocabulary.num_pieces,
      eos_id=vocabulary.eos_id,
      num_kept=8,
  )


def of_model(task) -> drafting.Drafting:
  return decoder(task).tokens.loaded_drafter


def of_short_vocabulary(task) -> drafting.Drafting:
  draft = models.load_model(embedded.draft_checkpoint(task))
  ids = counts(task).most_frequent(256)
  return model_drafting.of_model(models.shorten_head(draft, ids))


def of_table(task, order) -> drafting.Drafting:
  target = decoder(task).tokens.target
  table = ngram_drafting.smooth(
      counts(task), order, target.config.vocab_size, target.special_ids.start
  )
  return ngram_drafting.of_table(table, order)


def of_lookup(task=None) -> drafting.Drafting:
  return lookup_drafting.Lookup()


def of_external() -> drafting.Drafting:
  return drafting.Drafting(repeat_last.RepeatLast, 'repeat_last')


def first_layer(task) -> models.Model:
  """Return the target's first decoder layer on its encoder's output."""
  first = tiny.truncate(decoder(task).tokens.target, 1)
  params = {k: v for k, v in first.params.items() if k != 'encoder'}
  config = dataclasses.replace(first.config, num_encoder_layers=0)
  return dataclasses.replace(first, config=config, params=params)


def of_first_layer(task) -> drafting.Drafting:
  return model_drafting.of_model(first_layer(task))


def of_feature_head(task) -> drafting.Drafting:
  """Return the first layer as a head, which reads little of the features."""
  first = first_layer(task)
  width = first.config.emb_dim
  kernel = 0.01 * jnp.eye(width)
  features = {name: {'kernel': kernel} for name in ('read', 'predict')}
  decoder = {**first.params['decoder'], 'features': features}
  own = dataclasses.replace(
      first,
      config=dataclasses.replace(first.config, feature_dim=width),
      params={**first.params, 'decoder': decoder},
  )
  return model_drafting.of_model(own)


DRAFTERS = {
    'draft model': of_model,
    'short vocabulary': of_short_vocabulary,
    'uniform': lambda task: drafting.Drafting(tables.make_uniform, 'uniform'),
    'unigram': lambda task: of_table(task, 1),
    'bigram': lambda task: of_table(task, 2),
    'lookup': of_lookup,
    'lookup in hints': of_lookup,
    'lookup then model': lambda task: in_order_drafting.joined(
        [of_lookup(), of_model(task)]
    ),
    'three in order': lambda task: in_order_drafting.joined(
        [of_lookup(), of_model(task), of_external()]
    ),
    'external': lambda task: of_external(),
    'early exit': lambda task: tiny.early_exit(
        decoder(task).tokens.target.config, 1
    ),
    'shared encoder': of_first_layer,
    'feature head': of_feature_head,
}


def test_drafters_are_those_whose_outputs_are_enumerated():
  assert tuple(DRAFTERS) == tiny_drafters.NAMES


@functools.cache
def plain(task) -> tuple[list[tuple[str, str]], np.ndarray]:
  """Return texts with references, and the plain outputs of the texts."""
  pairs = READ[task]('test')[:NUM_EXAMPLES]
  it = decoder(task)
  batch, _ = whole_batches.make_batch(it, [text for text, _ in pairs])
  return pairs, tiny.decoded(it.tokens.alone, batch).sequences


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ('drafter', 'task'), itertools.product(DRAFTERS, READ)
)
def test_outputs_are_those_of_plain_decoding(drafter, task):
  pairs, sequences = plain(task)
  texts, outputs = zip(*pairs)
  batch, _ = whole_batches.make_batch(decoder(task), texts)
  if drafter == 'lookup in hints':
    vocabulary = decoder(task).vocabulary
    hints = [hints_lib.encode(text, vocabulary) for text in outputs]
    batch = batch.replace(hints=hints_lib.stack(hints))
  turns = jnp.arange(NUM_EXAMPLES, dtype=jnp.int32) // NUM_POLICIES
  batch = batch.replace(
      rule=combinations.RuleOfRow(turns % len(combinations.RULES)),
      rule_class=combinations.RuleOfRow,
  )
  own = decoder(task).tokens.with_drafter(
      DRAFTERS[drafter](task), GAMMA, combinations.PolicyOfRow()
  )
  found = tiny.decoded(own, batch)
  assert found.statistics.num_accepted.sum() > 0 or drafter == 'uniform'
  compared = near_ties.compare(own, batch, sequences, found.sequences)
  assert all(each.is_near_tie for each in compared)
  assert len(compared) <= 1
