# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every exact drafter, each with a target whose outputs can be enumerated.

The target is a table, or a tiny T5 for drafters that share it.
"""

from collections.abc import Callable
import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import loading
from speculative_t5x import token_counts
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import early_exit
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import lookup
from speculative_t5x.drafters import shared_encoder
from speculative_t5x.drafters import source
from speculative_t5x.drafters import tables
from speculative_t5x.networks import layers
from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from tests import network_enumeration
from tests import repeat_last
from tests import tabular
from tests import tiny

VOCAB, LENGTH = 3, 4
LIMITS = LENGTH, 2
TARGET = tabular.Model(VOCAB)
# What lookup copies from: hints, then inputs, of each example.
HINTS = ((2, 0, 2, 2), (2, 1, 0, 0))
INPUTS = ((2, 2, 1, 0), (2, 2, 2, 1))


@dataclasses.dataclass(frozen=True)
class Pair:
  """A target and a drafter.

  Attributes:
    target: as a model.
    target_params: its parameters.
    drafter: drafts for it.
    draft_params: its parameters.
    inputs: one row per example.
    limits: most tokens of each example.
    find_logits: returns the target's logits of the token after some tokens,
      given an example, without any production code of decoding.
    tolerance: of probabilities: the rounding of the target.
  """

  target: contracts.Model
  target_params: Any
  drafter: contracts.Drafter
  draft_params: Any
  inputs: np.ndarray
  limits: tuple[int, ...]
  find_logits: Callable[[int, tuple[int, ...]], np.ndarray]
  tolerance: float


def target_tables() -> np.ndarray:
  return tabular.random_tables(1, len(LIMITS), VOCAB)


def draft_tables(width: int = VOCAB) -> np.ndarray:
  """Returns logits that resemble the target's."""
  own = tabular.random_tables(2, len(LIMITS), VOCAB, width)
  return 0.5 * own + target_tables()[..., :width]


def of_tables(drafter: contracts.Drafter, params: Any = None) -> Pair:
  """Returns the pair of the target that is a table, in float64."""
  logits = target_tables()
  return Pair(
      TARGET,
      logits,
      drafter,
      params,
      np.arange(len(LIMITS), dtype=np.int32),
      LIMITS,
      lambda example, tokens: logits[example, *tabular.place(tokens)],
      1e-12,
  )


def of_model(model: contracts.Model, gamma: int, params: Any) -> Pair:
  return of_tables(draft_model.DraftModel(model, gamma, VOCAB), params)


@dataclasses.dataclass(frozen=True)
class WithTexts:
  """A drafter that reads texts, where the inputs are numbers of examples.

  Attributes:
    drafter: that reads them.
    hints: of each example, or None.
  """

  drafter: contracts.Drafter
  hints: tuple[tuple[int, ...], ...] | None = HINTS

  def __getattr__(self, name):
    return getattr(self.drafter, name)

  def init(self, params, context, rows, slots):
    """See `contracts.Drafter.init`."""
    take = lambda texts: jnp.asarray(texts, jnp.int32)[context.inputs]
    hints = None if self.hints is None else take(self.hints)
    texts = context._replace(hints=hints, inputs=take(INPUTS))
    return self.drafter.init(params, texts, rows, slots)


def make_lookup(gamma: int, hints=HINTS) -> WithTexts:
  return WithTexts(lookup.Lookup(gamma, 2, 1, padding=0), hints)


def lookup_then_model(gamma: int) -> Pair:
  model = draft_model.DraftModel(TARGET, gamma, VOCAB)
  drafter = in_order.InOrder((make_lookup(gamma, None), model), TARGET)
  return of_tables(drafter, (None, draft_tables()))


def of_ngrams(order: int, gamma: int) -> Pair:
  """Returns the pair of an n-gram table, in float64."""
  texts = [[2, 0, 2, 1], [0, 0, 2, 1], [2, 2, 1], [2, 0, 1], [1]]
  counts = token_counts.count(texts, num_pieces=VOCAB, eos_id=1, num_kept=2)
  table = tables.smooth(counts, order, VOCAB, TARGET.special_ids.start)
  widen = lambda x: np.float64(x) if x.dtype == np.float32 else x
  drafter = tables.make_ngram(TARGET, gamma)
  return of_tables(drafter, jax.tree.map(widen, table))


@dataclasses.dataclass(frozen=True)
class ShortTable(tabular.Model):
  """A table model behind a short head; its parameters hold the places too."""

  def look_up(self, params, tables, cache, offsets):
    tables_of_logits, places = params
    logits = super().look_up(tables_of_logits, tables, cache, offsets)
    return layers.ShortVocabulary(self.vocab_size).apply(
        {'params': {'places': places}}, logits
    )


def short_vocabulary(gamma: int) -> Pair:
  """Returns the pair of a draft model that drafts the tokens 1 and 2 only."""
  places = np.array([2, 0, 1], np.int32)
  return of_model(ShortTable(VOCAB), gamma, (draft_tables(2), places))


TINY_LIMITS = 3, 2
CONFIG = tiny.config(
    **(network_enumeration.SIZES | {'vocab_size': VOCAB}),
    num_decoder_layers=2,
)


def of_network(drafter: source.LoadedDrafter, gamma: int) -> Pair:
  """Returns the pair of the target that is a network, in float32."""
  target = tiny.model(CONFIG)
  model = t5_model.T5Model(target.config)
  inputs = tiny.encoder_tokens(len(TINY_LIMITS), 5, VOCAB)
  depth = max(TINY_LIMITS) - 1 + gamma
  logits = teacher_forced(target, inputs, depth)
  pad = lambda tokens: (*tokens, *[0] * (depth - len(tokens)))
  return Pair(
      model,
      target.params,
      drafter.make(model, gamma),
      drafter.params,
      np.asarray(inputs),
      TINY_LIMITS,
      lambda example, tokens: logits[example, *pad(tokens), len(tokens)],
      2e-5,
  )


def teacher_forced(
    target: loading.Model, inputs: jax.Array, depth: int
) -> np.ndarray:
  """Returns logits after every text, [examples, *tokens, length, vocab]."""
  texts = list(itertools.product(range(VOCAB), repeat=depth))
  fed = jnp.pad(jnp.array(texts, jnp.int32), ((0, 0), (1, 0)))
  encoded, memory = t5_model.encode(target.config, target.params, inputs)
  logits = network_enumeration.teacher_forced(CONFIG, tiny.params(CONFIG))
  found = jax.jit(
      jax.vmap(
          lambda output, is_input: logits(
              jnp.tile(output, (len(fed), 1, 1)),
              jnp.tile(is_input, (len(fed), 1)),
              fed,
          )
      )
  )(encoded, memory.is_input)
  shape = len(inputs), *[VOCAB] * depth, depth + 1, VOCAB
  return np.asarray(found, np.float64).reshape(shape)


def of_shared_encoder(gamma: int) -> Pair:
  config = dataclasses.replace(
      CONFIG,
      num_encoder_layers=0,
      num_decoder_layers=1,
      emb_dim=6,
      encoder_dim=CONFIG.emb_dim,
  )
  drafter = shared_encoder.from_model(tiny.model(config, noise=0.5))
  return of_network(drafter, gamma)


_MAKERS = {
    'draft model': lambda gamma: of_model(TARGET, gamma, draft_tables()),
    'short vocabulary': short_vocabulary,
    'uniform': lambda gamma: of_tables(tables.make_uniform(TARGET, gamma)),
    'unigram': lambda gamma: of_ngrams(1, gamma),
    'bigram': lambda gamma: of_ngrams(2, gamma),
    'lookup': lambda gamma: of_tables(make_lookup(gamma, None)),
    'lookup in hints': lambda gamma: of_tables(make_lookup(gamma)),
    'lookup then model': lookup_then_model,
    'external': lambda gamma: of_tables(repeat_last.RepeatLast(TARGET, gamma)),
    'early exit': lambda gamma: of_network(
        early_exit.of_config(CONFIG, 1), gamma
    ),
    'shared encoder': of_shared_encoder,
}
NAMES = tuple(_MAKERS)
NETWORKS = 'early exit', 'shared encoder'


@functools.cache
def make(name: str, gamma: int = 2) -> Pair:
  """Returns a pair by the name of its drafter."""
  return _MAKERS[name](gamma)


def probs(pair: Pair, sampling: sampling_lib.Sampling):
  """Returns a function that gives the target's distribution after tokens."""

  @functools.cache
  def find(example: int, tokens: tuple[int, ...]) -> np.ndarray:
    logits = jnp.asarray(pair.find_logits(example, tokens))
    return np.asarray(_standardize(logits, sampling), np.float64)

  return find


_standardize = jax.jit(sampling_lib.standardize)
