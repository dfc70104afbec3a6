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
from speculative_t5x.drafters import tables
from speculative_t5x.networks import layers
from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from tests import network_enumeration
from tests import repeat_last
from tests import tabular
from tests import tiny

VOCAB, GAMMA, LENGTH = 3, 2, 4
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
    drafter: drafts `GAMMA` tokens per block.
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


def of_model(model: contracts.Model, params: Any) -> Pair:
  return of_tables(draft_model.DraftModel(model, GAMMA, VOCAB), params)


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


def make_lookup(hints=HINTS) -> WithTexts:
  return WithTexts(lookup.Lookup(GAMMA, 2, 1, padding=0), hints)


def lookup_then_model() -> Pair:
  model = draft_model.DraftModel(TARGET, GAMMA, VOCAB)
  drafter = in_order.InOrder((make_lookup(None), model), TARGET)
  return of_tables(drafter, (None, draft_tables()))


def make_table(order: int) -> tables.Table:
  """Returns an n-gram table, in float64."""
  texts = [[2, 0, 2, 1], [0, 0, 2, 1], [2, 2, 1], [2, 0, 1], [1]]
  counts = token_counts.count(texts, num_pieces=VOCAB, eos_id=1, num_kept=2)
  table = tables.smooth(counts, order, VOCAB, TARGET.special_ids.start)
  widen = lambda x: np.float64(x) if x.dtype == np.float32 else x
  return jax.tree.map(widen, table)


@dataclasses.dataclass(frozen=True)
class ShortTable(tabular.Model):
  """A table model behind a short head; its parameters hold the places too."""

  def look_up(self, params, tables, cache, offsets):
    tables_of_logits, places = params
    logits = super().look_up(tables_of_logits, tables, cache, offsets)
    return layers.ShortVocabulary(self.vocab_size).apply(
        {'params': {'places': places}}, logits
    )


def short_vocabulary() -> Pair:
  """The draft model has logits of the tokens 1 and 2 only."""
  places = np.array([2, 0, 1], np.int32)
  return of_model(ShortTable(VOCAB), (draft_tables(2), places))


TINY_LIMITS = 3, 2
NUM_LAYERS = 2
CONFIG = tiny.config(
    **(network_enumeration.SIZES | {'vocab_size': VOCAB}),
    num_decoder_layers=NUM_LAYERS,
)


def of_network(drafter) -> Pair:
  """Returns the pair of the target that is a network, in float32."""
  target = tiny.model(CONFIG)
  model = t5_model.T5Model(CONFIG)
  inputs = tiny.encoder_tokens(len(TINY_LIMITS), 5, VOCAB)
  logits = teacher_forced(target, inputs)
  return Pair(
      model,
      target.params,
      drafter.make(model, GAMMA),
      drafter.params,
      np.asarray(inputs),
      TINY_LIMITS,
      lambda example, tokens: logits[example][
          (*tokens, *[0] * (DEPTH - len(tokens)))
      ][len(tokens)],
      2e-5,
  )


DEPTH = max(TINY_LIMITS) - 1 + GAMMA  # most tokens before one that is scored


def teacher_forced(target: loading.Model, inputs: jax.Array) -> np.ndarray:
  """Returns logits after every text, [examples, *tokens, length, vocab]."""
  texts = list(itertools.product(range(VOCAB), repeat=DEPTH))
  fed = jnp.pad(jnp.array(texts, jnp.int32), ((0, 0), (1, 0)))
  encoded, memory = t5_model.encode(CONFIG, target.params, inputs)
  logits = network_enumeration.teacher_forced(CONFIG, tiny.params(CONFIG))
  found = jax.vmap(
      lambda output, is_input: logits(
          jnp.tile(output, (len(fed), 1, 1)),
          jnp.tile(is_input, (len(fed), 1)),
          fed,
      )
  )(encoded, memory.is_input)
  shape = len(inputs), *[VOCAB] * DEPTH, DEPTH + 1, VOCAB
  return np.asarray(found, np.float64).reshape(shape)


def shared_encoder_drafter():
  config = dataclasses.replace(
      CONFIG,
      num_encoder_layers=0,
      num_decoder_layers=1,
      emb_dim=6,
      encoder_dim=CONFIG.emb_dim,
  )
  return shared_encoder.from_model(tiny.model(config, noise=0.5))


_MAKERS = {
    'draft model': lambda: of_model(TARGET, draft_tables()),
    'short vocabulary': short_vocabulary,
    'uniform': lambda: of_tables(tables.make_uniform(TARGET, GAMMA)),
    'unigram': lambda: of_tables(
        tables.make_ngram(TARGET, GAMMA), make_table(1)
    ),
    'bigram': lambda: of_tables(
        tables.make_ngram(TARGET, GAMMA), make_table(2)
    ),
    'lookup': lambda: of_tables(make_lookup(None)),
    'lookup in hints': lambda: of_tables(make_lookup()),
    'lookup then model': lookup_then_model,
    'external': lambda: of_tables(repeat_last.RepeatLast(TARGET, GAMMA)),
    'early exit': lambda: of_network(early_exit.of_config(CONFIG, 1)),
    'shared encoder': lambda: of_network(shared_encoder_drafter()),
}
NAMES = tuple(_MAKERS)


@functools.cache
def make(name: str) -> Pair:
  """Returns a pair by the name of its drafter."""
  with jax.default_matmul_precision('highest'):
    return _MAKERS[name]()


def probs(pair: Pair, sampling: sampling_lib.Sampling):
  """Returns a function that gives the target's distribution after tokens."""

  @functools.cache
  def find(example: int, tokens: tuple[int, ...]) -> np.ndarray:
    logits = jnp.asarray(pair.find_logits(example, tokens))
    return np.asarray(_standardize(logits, sampling), np.float64)

  return find


_standardize = jax.jit(sampling_lib.standardize)
