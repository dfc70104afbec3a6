# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoder alone as a network of the decoding loop: GPT-2, Llama and others.

Its inputs are prompts, which an output continues. They have unequal lengths,
and all are read from position 0 on, so that padding is behind a prompt and has
no part in what is computed. They are read in chunks of one width into the cache
that decoding goes on with; the last token of a prompt is the first one that the
loop feeds.

Legend: examples, rows, inputs_length, outputs_length, slots, vocab.
"""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any, ClassVar

from flax import core
from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import decoder_only_modules as modules
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

LayerKind = modules.LayerKind

CHUNK = 64  # tokens of a prompt that are read at once


@dataclasses.dataclass(frozen=True)
class DecoderOnly(modules.Sizes):
  """A decoder alone with its sizes: a `network.Network`.

  Its attributes are those of `decoder_only_modules.Sizes`.
  """

  name: ClassVar[str] = 'decoder alone'
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=contracts.NO_TOKEN, start=None
  )
  ends_inputs: ClassVar[bool] = False
  reads_features: ClassVar[bool] = False

  @property
  def axis_units(self) -> Mapping[str, int]:
    """Query heads stay with the heads of keys and values that they read."""
    return {'joined_kv': self.num_kv_heads}

  def init(self, key: jax.Array) -> contracts.Params:
    return {'decoder': core.unfreeze(_init(self, key)['params'])}

  def axes(self) -> Any:
    variables = _abstract_variables(self)
    names = partitioning.get_axis_names(variables['params_axes'])
    return {'decoder': core.unfreeze(names)}

  def prepared(self, platform: str, merged: bool) -> 'DecoderOnly':
    config = t5_preparation.prepare_config(self, platform)
    return t5_preparation.merge_config(config) if merged else config

  def prepare(self, leaves: network.Leaves, merged: bool) -> network.Leaves:
    leaves = t5_preparation.prepare_each(self, leaves)
    return t5_preparation.merge_each(self, leaves) if merged else leaves

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """Read the prompts; see `network.Network.start`.

    A row without any token, which only fills a batch, begins with id 0.
    """
    del features  # it reads none
    tokens, lengths = _prompts(inputs)
    examples, width = tokens.shape
    chunk = min(CHUNK, width)
    tokens = jnp.pad(tokens, ((0, 0), (0, -width % chunk)))
    # The last chunk may reach past a prompt, and a row past the longest one.
    slots = max(tokens.shape[1], width - 1 + slots)
    cache = self._read(params, tokens, lengths, chunk, slots)
    last = jnp.maximum(lengths - 1, 0)
    first_tokens = jnp.take_along_axis(tokens, last[:, None], axis=1)[:, 0]
    if rows != examples:
      of_rows = lambda x: jnp.repeat(x, rows // examples, axis=0)
      last, first_tokens = of_rows(last), of_rows(first_tokens)
      # One example has no batch axis.
      cache = jax.tree.map(
          lambda x: of_rows(x if examples > 1 else x[None]), cache
      )
    return contracts.Started(
        None, kv_cache.constrain(cache), last, first_tokens
    )

  def _read(
      self,
      params: contracts.Params,
      tokens: jax.Array,
      lengths: jax.Array,
      chunk: int,
      slots: int,
  ) -> modules.Cache:
    """Return the cache of prompts [examples, chunks * chunk], but for the last
    token of each, which may be missing.
    """
    examples = tokens.shape[0]
    batch_shape = () if examples == 1 else (examples,)
    tokens = tokens.reshape(*batch_shape, -1)
    cache = modules.init_cache(self, batch_shape, slots)
    num_chunks = (jnp.max(lengths) - 1 + chunk - 1) // chunk

    def read_chunk(carry):
      index, cache = carry
      at = index * chunk
      block = lax.dynamic_slice_in_dim(tokens, at, chunk, axis=-1)
      # Nothing reads the logits, and the compiler leaves the head out.
      _, cache = self._apply(params, block, at, cache)
      return index + 1, kv_cache.constrain(cache)

    return lax.while_loop(
        lambda carry: carry[0] < num_chunks,
        read_chunk,
        (jnp.int32(0), kv_cache.constrain(cache)),
    )[1]

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    rows = tokens.shape[0]
    tokens = jnp.maximum(tokens, 0)  # what only fills a row is not read
    at = None if at is None else at[:, None]
    if rows == 1:
      tokens, positions, at = jax.tree.map(
          lambda x: x[0], (tokens, positions, at)
      )
    logits, cache = self._apply(params, tokens, positions, cache, at)
    logits = sharding.gather_logits(logits.reshape(rows, -1, self.vocab_size))
    return logits, kv_cache.constrain(cache)

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """See `network.Scores`; it has no dropout."""
    del dropout_key, features
    tokens, lengths = _prompts(inputs)
    # A row without any token begins with id 0, as in `start`.
    lengths = jnp.maximum(lengths, 1)
    width, length = tokens.shape[1], outputs.shape[1]
    # Each output lies behind its prompt, as in decoding.
    index = jnp.arange(width + length - 1) - lengths[:, None]
    of_output = jnp.take_along_axis(
        jnp.maximum(outputs, 0), jnp.clip(index, 0, length - 1), axis=1
    )
    tokens = jnp.pad(tokens, ((0, 0), (0, length - 1)))
    tokens = jnp.where(index < 0, tokens, of_output)
    cache = modules.init_cache(self, tokens.shape[:1], tokens.shape[1])
    logits_at = lengths[:, None] - 1 + jnp.arange(length)
    return self._apply(params, tokens, jnp.int32(0), cache, logits_at)[0]

  def _apply(self, params, *args) -> tuple[jax.Array, modules.Cache]:
    return modules.Decoder(self).apply({'params': params['decoder']}, *args)

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """See `network.LimitsPositions`: an output continues its input."""
    # The last token of an output is fed to nothing.
    return inputs_length + max_tokens - 1

  def first_layers(self, count: int) -> 'DecoderOnly':
    """See `network.ExitsEarly`.

    Raises:
      ValueError: if there is no such layer.
    """
    ranges.check_settings(ranges.whole(1, self.num_layers), exit_layer=count)
    return dataclasses.replace(self, num_layers=count)

  def decoder_alone(self) -> 'DecoderOnly':
    """Return the network as a checkpoint holds it."""
    return dataclasses.replace(
        self, separate_head=False, head_size=None, merge_projections=False
    )

  def take_first_layers(
      self, memory: None, cache: contracts.Cache
  ) -> tuple[None, contracts.Cache]:
    """Return what this reads of a deeper network's memory and cache."""
    return memory, cache[: self.num_layers]

  def put_first_layers(
      self, cache: contracts.Cache, whole: contracts.Cache
  ) -> contracts.Cache:
    """Return a deeper network's cache with these layers' in their places."""
    return *cache, *whole[self.num_layers :]

  def shorten_head(
      self, params: contracts.Params, ids: np.ndarray
  ) -> tuple['DecoderOnly', contracts.Params]:
    """Restrict the head to some tokens; see `t5_preparation.shorten_head`."""
    return t5_preparation.shorten_head(self, params, ids)


def _prompts(inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Return the tokens of inputs at the left, then id 0, and their numbers."""
  is_token = inputs >= 0
  order = jnp.argsort(~is_token, axis=1, stable=True)
  tokens = jnp.take_along_axis(jnp.maximum(inputs, 0), order, axis=1)
  lengths = jnp.sum(is_token, axis=1, dtype=jnp.int32)
  is_prompt = jnp.arange(inputs.shape[1]) < lengths[:, None]
  return jnp.where(is_prompt, tokens, 0), lengths


def _init(config: DecoderOnly, key: jax.Array) -> Mapping[str, Any]:
  """Return random parameters, `params`, and their axes, `params_axes`."""
  cache = modules.init_cache(config, (), 1)
  token = jnp.zeros((1,), jnp.int32)
  return modules.Decoder(config).init(key, token, jnp.int32(0), cache)


@functools.cache
def _abstract_variables(config: DecoderOnly) -> core.FrozenDict:
  init = functools.partial(_init, config)
  return core.freeze(jax.eval_shape(init, jax.random.key(0)))
