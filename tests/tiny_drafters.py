# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every exact drafter, each with a target whose outputs can be enumerated.

The target is a table, or for drafters that share it a tiny T5 or a tiny decoder
alone.
"""

from collections.abc import Callable
import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import lookup
from speculative_t5x.drafters import tables
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import layers
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import pairs
from speculative_t5x.testing import table_model
from tests import reference_network
from tests import repeat_last
from tests import tiny
from tests import tiny_decoders

VOCAB = 3
LIMITS = pairs.LIMITS
TARGET = table_model.TextModel(VOCAB)
HINTS = pairs.HINTS


def draft_tables(width: int = VOCAB) -> np.ndarray:
  """Return logits that resemble the target's."""
  return pairs.draft_logits(VOCAB, width)


# The pair of the target that is a table, in float64.
of_tables = functools.partial(
    pairs.of_tables, vocab_size=VOCAB, tolerance=1e-12, hints=None
)


def of_model(model: contracts.Model, gamma: int, params: Any) -> pairs.Pair:
  return of_tables(draft_model.ModelDrafter(model, gamma, VOCAB), params)


def make_lookup(gamma: int) -> lookup.LookupDrafter:
  return lookup.LookupDrafter(gamma, 2, 1)


def lookup_then_model(gamma: int) -> pairs.Pair:
  model = draft_model.ModelDrafter(TARGET, gamma, VOCAB)
  drafter = in_order.DraftersInOrder((make_lookup(gamma), model), TARGET)
  return of_tables(drafter, (None, draft_tables()))


def three_in_order(gamma: int) -> pairs.Pair:
  """Return the pair of a model between two that choose their tokens."""
  drafters = (
      make_lookup(gamma),
      draft_model.ModelDrafter(TARGET, gamma, VOCAB),
      repeat_last.RepeatLast(TARGET, gamma),
  )
  params = None, draft_tables(), None
  return of_tables(in_order.DraftersInOrder(drafters, TARGET), params)


def of_ngrams(order: int, gamma: int) -> pairs.Pair:
  """Return the pair of an n-gram table, in float64."""
  texts = [[2, 0, 2, 1], [0, 0, 2, 1], [2, 2, 1], [2, 0, 1], [1]]
  counts = token_counts.count(texts, num_pieces=VOCAB, eos_id=1, num_kept=2)
  table = ngram_drafting.smooth(counts, order, VOCAB, TARGET.special_ids.start)
  widen = lambda x: np.float64(x) if x.dtype == np.float32 else x
  drafter = tables.make_ngram(TARGET, gamma)
  return of_tables(drafter, jax.tree.map(widen, table))


@dataclasses.dataclass(frozen=True)
class ShortTable(table_model.TextModel):
  """A table model behind a short head; its parameters hold the places too."""

  def look_up(self, params, tables, cache, offsets):
    tables_of_logits, places = params
    logits = super().look_up(tables_of_logits, tables, cache, offsets)
    return layers.ShortVocabulary(self.vocab_size).apply(
        {'params': {'places': places}}, logits
    )


def short_vocabulary(gamma: int) -> pairs.Pair:
  """Return the pair of a draft model that drafts the tokens 1 and 2 only."""
  places = np.array([2, 0, 1], np.int32)
  return of_model(ShortTable(VOCAB), gamma, (draft_tables(2), places))


TINY_LIMITS = 3, 2
# The heads of networks are wider than the vocabulary, and the rest is masked.
CONFIG = tiny.config(
    vocab_size=VOCAB + 1, emb_dim=8, num_heads=2, head_dim=4, mlp_dim=8,
    num_encoder_layers=1, num_decoder_layers=2,
)  # fmt: skip
DECODER = dataclasses.replace(
    CONFIG,
    num_encoder_layers=0,
    num_decoder_layers=1,
    emb_dim=6,
    encoder_dim=CONFIG.emb_dim,
)
FEATURE_HEAD = dataclasses.replace(DECODER, feature_dim=CONFIG.emb_dim)
# With masks for more tokens than are drafted, and a recurrence over them.
BLOCK_HEAD = dataclasses.replace(DECODER, num_masks=2, recurrence_dim=3)
INDEPENDENT_HEAD = dataclasses.replace(BLOCK_HEAD, recurrence_dim=None)
# Takes an example and tokens, and returns logits of the token after them.
FindLogits = Callable[[int, tuple[int, ...]], np.ndarray]


def of_network(
    drafter: drafting.Drafting,
    gamma: int,
    limits: tuple[int, ...] = TINY_LIMITS,
    config: t5.T5Config | decoder_only.DecoderOnly = CONFIG,
) -> pairs.Pair:
  """Return the pair of a target that is a network, in float32."""
  if config is ALONE:
    target, inputs = alone(), PROMPTS
    find_logits = alone_logits(tiny_decoders.params(ALONE))
  else:
    target, inputs = tiny.model(config), np.asarray(network_inputs())
    depth = max(limits) - 1 + gamma
    find_logits = teacher_forced(config, tiny.params(config), depth)
  model = network_lib.NetworkModel(
      target.config, target.special_ids, num_valid_tokens=VOCAB
  )
  return pairs.Pair(
      model,
      target.params,
      drafter.make(model, gamma),
      drafter.params,
      inputs,
      limits,
      find_logits,
      2e-5,
  )


def of_head(head: t5.T5Config, gamma: int, after_lookup=False) -> pairs.Pair:
  """Return the pair of a random head on the target, first or behind lookup."""
  drafting = model_drafting.of_model(tiny.model(head, noise=0.5))
  pair = of_network(drafting, gamma)
  if not after_lookup:
    return pair
  drafters = make_lookup(gamma), pair.drafter
  return dataclasses.replace(
      pair,
      drafter=in_order.DraftersInOrder(drafters, pair.target),
      draft_params=(None, pair.draft_params),
  )


# A window that outputs pass, and prompts of unequal lengths.
ALONE = decoder_only.DecoderOnly(
    vocab_size=VOCAB + 1, emb_dim=6, num_layers=2, num_heads=2, head_dim=4,
    mlp_dim=8, kinds=[decoder_only.LayerKind(2), decoder_only.LayerKind()],
)  # fmt: skip
PROMPTS = np.array([(2, 0, 2, 0), (2, -1, -1, -1)], np.int32)


def alone(seed: int = 0) -> models.Model:
  """Return the decoder alone ready to decode."""
  params = tiny_decoders.params(ALONE, seed)
  ids = contracts.SpecialIds(end=1, padding=0, start=None)
  return models.make_model(ALONE, params, special_ids=ids)


def alone_logits(
    params: Any, config: decoder_only.DecoderOnly = ALONE
) -> FindLogits:
  """Return masked logits of a decoder alone, without a cache."""

  @functools.cache
  def find(example: int, tokens: tuple[int, ...]) -> np.ndarray:
    prompt = PROMPTS[example][PROMPTS[example] >= 0].tolist()
    found = reference_network.logits(config, params, prompt, list(tokens))[-1]
    found[VOCAB:] = -np.inf
    return found

  return find


def network_inputs() -> jax.Array:
  """Return the inputs of the target that is a network."""
  return tiny.encoder_tokens(len(TINY_LIMITS), 5, VOCAB)


def teacher_forced(config: t5.T5Config, params: Any, depth: int) -> FindLogits:
  """Return masked logits of a network, without a cache, after up to `depth`.

  Its decoder reads the target's encoder if it has none.
  """
  inputs = network_inputs()
  reader = (config, params) if 'encoder' in params else (
      CONFIG, tiny.params(CONFIG)
  )  # fmt: skip
  texts = list(itertools.product(range(VOCAB), repeat=depth))
  fed = jnp.pad(jnp.array(texts, jnp.int32), ((0, 0), (1, 0)))
  encoded, memory = tiny.encode(*reader, inputs)

  @jax.jit
  @jax.vmap
  def run(output, is_input):
    tile = lambda x: jnp.tile(x, (len(fed), *[1] * x.ndim))
    return transformer.Transformer(config).apply(
        {'params': params},
        tile(output),
        None,
        fed,
        is_input=tile(is_input),
        is_target=jnp.ones(fed.shape, bool),
        method='score',
    )[0]

  found = np.asarray(run(encoded, memory.is_input), np.float64)
  shape = len(inputs), *[VOCAB] * depth, depth + 1, config.vocab_size
  found = found.reshape(shape)
  found[..., VOCAB:] = -np.inf
  pad = lambda tokens: (*tokens, *[0] * (depth - len(tokens)))
  return lambda example, tokens: found[example, *pad(tokens), len(tokens)]


_MAKERS = {
    'draft model': lambda gamma: of_model(TARGET, gamma, draft_tables()),
    'short vocabulary': short_vocabulary,
    'uniform': lambda gamma: of_tables(tables.make_uniform(TARGET, gamma)),
    'unigram': lambda gamma: of_ngrams(1, gamma),
    'bigram': lambda gamma: of_ngrams(2, gamma),
    'lookup': lambda gamma: of_tables(make_lookup(gamma)),
    'lookup in hints': lambda gamma: of_tables(make_lookup(gamma), hints=HINTS),
    'lookup then model': lookup_then_model,
    'three in order': three_in_order,
    'external': lambda gamma: of_tables(repeat_last.RepeatLast(TARGET, gamma)),
    'early exit': lambda gamma: of_network(
        tiny.early_exit(CONFIG, 1), gamma
    ),
    'shared encoder': lambda gamma: of_head(DECODER, gamma),
    'feature head': lambda gamma: of_head(FEATURE_HEAD, gamma),
    'block head': lambda gamma: of_head(BLOCK_HEAD, gamma),
    'independent block': lambda gamma: of_head(INDEPENDENT_HEAD, gamma),
    'lookup then block': lambda gamma: of_head(BLOCK_HEAD, gamma, True),
}
NAMES = tuple(_MAKERS)
# A target of another kind, with a drafter that any network has.
_MAKERS['decoder alone'] = lambda gamma: of_network(
    tiny.early_exit(ALONE, 1), gamma, config=ALONE
)
BLOCKS = 'block head', 'independent block', 'lookup then block'
NETWORKS = (
    'early exit', 'shared encoder', 'feature head', 'decoder alone', *BLOCKS
)


@functools.cache
def make(name: str, gamma: int = 2) -> pairs.Pair:
  """Return a pair by the name of its drafter."""
  return _MAKERS[name](gamma)
