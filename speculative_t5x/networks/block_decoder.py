# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Common part of networks whose Flax modules decode blocks of tokens.

On a mesh, caches, logits and features are constrained to the sharding rules in
force; otherwise the compiler would choose their sharding.

Legend: rows, block, vocab.
"""

from collections.abc import Mapping
import dataclasses
import functools
import math
from typing import Any, ClassVar, Self

from flax import core
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.networks import transformer
from speculative_t5x.networks import tree_blocks
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# What a head for an inner layer replaces.
_HEAD = 'decoder_norm', 'logits_dense', 'logits_bias'


class BlockDecoder:
  """A `network.Network` of modules under T5X's names.

  Its subclasses are frozen dataclasses with the fields `vocab_size`, `emb_dim`,
  `feature_dim`, a number of decoder layers and those of `config.Form`, and with
  the sizes of their stacks, `encoder` and `decoder`. They define `start`,
  `score_with_features` and the methods that raise NotImplementedError here.

  Attributes:
    layers_field: The field with the number of decoder layers.
  """

  layers_field: ClassVar[str] = 'num_decoder_layers'

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    """Return random parameters, `params`, and their axes, `params_axes`."""
    raise NotImplementedError

  def _apply(self, params: contracts.Params, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the decoder's modules, or of all, with parameters."""
    raise NotImplementedError

  @property
  def num_decoder_layers(self) -> int:
    """Layers of the decoder."""
    return self.decoder.num_layers

  @property
  def axis_units(self) -> Mapping[str, int]:
    """Heads are not cut apart, though their number times width might be.

    Query heads stay with the heads of keys and values that they read.
    """
    stacks = [x for x in (self.encoder, self.decoder) if x is not None]
    return {'joined_kv': math.gcd(*(x.num_kv_heads for x in stacks))}

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """See `network.Scores`."""
    return self.score_with_features(
        params, inputs, outputs, dropout_key, features
    ).logits

  def init(self, key: jax.Array) -> contracts.Params:
    return core.unfreeze(self._init(key)['params'])

  def axes(self) -> Any:
    variables = _abstract_variables(self)
    return core.unfreeze(partitioning.get_axis_names(variables['params_axes']))

  def prepared(self, platform: str, merged: bool) -> Self:
    return dataclasses.replace(
        self,
        separate_head=self.logits_via_embedding,
        merge_projections=merged,
        min_block=t5_preparation.MIN_BLOCKS.get(platform, 1),
    )

  def prepare(self, leaves: network.Leaves, merged: bool) -> network.Leaves:
    leaves = t5_preparation.prepare_each(self, leaves)
    return t5_preparation.merge_each(self, leaves) if merged else leaves

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    return self._decode(params, memory, cache, tokens, positions, at)[:2]

  def decode_with_features(
      self, params, memory, cache, tokens, positions, at, fed=None
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    """See `contracts.ShowsFeatures`."""
    logits, cache, features = self._decode(
        params, memory, cache, tokens, positions, at, fed
    )
    features = features.reshape(tokens.shape[0], -1, self.last_width)
    features = features[:, : logits.shape[1]]
    return logits, cache, sharding.constrain(
        features, ('batch', 'length', 'embed')
    )

  def _decode(
      self, params, memory, cache, tokens, positions, at, fed=None
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    rows = tokens.shape[0]
    if rows == 1:
      memory, tokens, positions, at, fed = jax.tree.map(
          lambda x: x[0], (memory, tokens, positions, at, fed)
      )
    # One row has no batch axis: see `networks.layers`.
    logits, cache, features = self._apply(
        params,
        tokens,
        positions,
        cache,
        *(memory or ()),  # a decoder alone has none
        logits_at=at,
        fed=fed,
        method='decode_block',
    )
    logits = sharding.gather_logits(logits.reshape(rows, -1, self.vocab_size))
    return logits, kv_cache.constrain(cache), features

  # Of `contracts.DecodesTrees`.
  share_rows = staticmethod(tree_blocks.share)
  separate_rows = staticmethod(tree_blocks.separate)
  commit = staticmethod(tree_blocks.commit)

  def new_block(
      self, cache: contracts.Cache, examples: int, nodes: int
  ) -> contracts.Cache:
    """See `contracts.DecodesTrees.new_block`."""
    del cache
    return transformer.init_cache(self.decoder, (examples,), nodes)

  def init_cache(self, rows: int, slots: int) -> contracts.Cache:
    """Return an empty cache."""
    # A single row has no batch axis: see `networks.layers`.
    batch_shape = () if rows == 1 else (rows,)
    cache = transformer.init_cache(self.decoder, batch_shape, slots)
    return kv_cache.constrain(cache)

  def decode_tree(
      self, params, memory, cache, block, nodes, first, count, num_cached
  ) -> tuple[jax.Array, contracts.Cache]:
    """See `contracts.DecodesTrees.decode_tree`."""
    cache, nodes = tree_blocks.located(cache, nodes)
    cache = tree_blocks.by_example(cache, num_cached.shape[0])
    # A few nodes cost as much as `min_block`. Those past them, whose keys and
    # values this writes too, are written again when they are decoded.
    most = nodes.tokens.shape[1] - first
    padded = min(max(count, self.min_block), most)
    logits, block = self._apply(
        params,
        nodes,
        first,
        padded,
        num_cached,
        cache,
        block,
        *(memory or ()),
        method='decode_tree',
    )
    return sharding.gather_logits(logits[:, :count]), block

  @property
  def last_width(self) -> int:
    """Width of the last features: what the head reads, or predicts of a target.
    """
    return self.emb_dim if self.feature_dim is None else self.feature_dim

  def first_layers(self, count: int) -> Self:
    """Return the network that ends after some decoder layers.

    Its parameters are the network's own; those of later layers are not read.

    Raises:
      ValueError: if there is no such layer.
    """
    allowed = ranges.whole(1, self.num_decoder_layers)
    ranges.check_settings(allowed, exit_layer=count)
    return dataclasses.replace(self, **{self.layers_field: count})

  def decoder_alone(self) -> Self:
    """Return the decoder alone, as a checkpoint holds it."""
    return dataclasses.replace(
        self, separate_head=False, head_size=None, merge_projections=False
    )

  def take_first_layers(
      self, memory: contracts.Memory, cache: contracts.Cache
  ) -> tuple[contracts.Memory, contracts.Cache]:
    """Return what this reads of a deeper network's memory and cache."""
    count = self.num_decoder_layers
    if memory is not None:
      memory = memory._replace(cross=memory.cross[:count])
    return memory, cache[:count]

  def put_first_layers(
      self, cache: contracts.Cache, whole: contracts.Cache
  ) -> contracts.Cache:
    """Return a deeper network's cache with these layers' in their places."""
    return *cache, *whole[self.num_decoder_layers :]

  def with_own_head(self) -> Self:
    """Return the network whose head is stored, also where it was tied."""
    return dataclasses.replace(self, separate_head=True)

  def take_head(self, params: contracts.Params) -> contracts.Params:
    """Return the final norm and the head, which may be tied, by T5X's names."""
    decoder = params['decoder']
    if 'logits_dense' not in decoder:
      owner = params if 'token_embedder' in params else decoder
      tied = owner['token_embedder']['embedding']
      decoder = {**decoder, 'logits_dense': {'kernel': tied.T}}
    names = [name for name in _HEAD if name in decoder]
    return {'decoder': {name: decoder[name] for name in names}}

  def put_head(
      self, params: contracts.Params, head: contracts.Params
  ) -> contracts.Params:
    """Return the parameters with another final norm and head."""
    return {**params, 'decoder': {**params['decoder'], **head['decoder']}}

  def shorten_head(
      self, params: contracts.Params, ids: np.ndarray
  ) -> tuple[Self, contracts.Params]:
    """Restrict the head of the prepared network to some tokens.

    All others get logit -inf; the remaining logits are unchanged. The ids
    differ, and the network's vocabulary has them.
    """
    # What is not among the ids takes a place behind the last logit of the head.
    places = np.full((self.vocab_size,), len(ids), np.int32)
    places[ids] = np.arange(len(ids))
    kernel = jnp.take(params['decoder']['logits_dense']['kernel'], ids, axis=1)
    short = {
        **params['decoder'],
        'logits_dense': {'kernel': kernel},
        'short_vocabulary': {'places': jnp.asarray(places)},
    }
    restricted = dataclasses.replace(self, head_size=len(ids))
    return restricted, {**params, 'decoder': short}

  def head_of_shapes(self, shapes: Mapping[str, Any]) -> network.Network | None:
    """See `network.ShowsFeatures`: a checkpoint of a head states its network.
    """
    return None


@functools.cache
def _abstract_variables(config: BlockDecoder) -> core.FrozenDict:
  return core.freeze(jax.eval_shape(config._init, jax.random.key(0)))
