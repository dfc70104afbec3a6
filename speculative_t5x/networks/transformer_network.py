# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The network of all families, as the decoding loop knows it.

    TransformerNetwork   reads inputs, decodes, scores
      HasVariants        makes networks of its parts
    T5Config, EncoderDecoder, T5Gemma, DecoderOnly   sizes and parts of families

With an encoder, or on that of another network, its decoder attends to features
of the inputs. A decoder alone reads them into its cache, see `prompts`.

On a mesh, inputs, features, caches and logits are constrained to the sharding
rules in force; otherwise the compiler would choose their sharding.

Legend: examples, rows, block, inputs_length, embed, vocab.
"""

from collections.abc import Mapping
import functools
from typing import Any, NamedTuple

from flax import core
from flax.linen import partitioning
import jax
import jax.numpy as jnp

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import prompts
from speculative_t5x.networks import sharding
from speculative_t5x.networks import transformer
from speculative_t5x.networks import tree_blocks
from speculative_t5x.networks import variants
from speculative_t5x.speculation import contracts

_FEATURES = 'batch', 'length', 'embed'


class Memory(NamedTuple):
  """Read-only inputs of a decoder, one row per example.

  Attributes:
    cross: Keys and values of the inputs, per layer.
    is_input: [examples, inputs_length] bool, False where there is no token.
  """

  cross: transformer.CrossKeysValues
  is_input: jax.Array


class TransformerNetwork(variants.HasVariants):
  """A `network.Network` of one stack or two, under T5X's names of parameters.

  It has all optional parts. Their methods are documented here and in
  `HasVariants`, for networks that are no transformers too.
  """

  def apply(self, params: contracts.Params, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the modules, or of the decoder's if it is alone."""
    if self.is_alone:
      module, params = transformer.Decoder(self.decoder), params['decoder']
    else:
      module = transformer.Transformer(self)
    return module.apply({'params': params}, *args, **kwargs)

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    """Return random parameters, `params`, and their axes, `params_axes`."""
    zeros = lambda width: jnp.zeros((1, 1, width), self.dtype)
    token, is_token = jnp.zeros((1, 1), jnp.int32), jnp.ones((1, 1), bool)
    fed = None if self.feature_dim is None else zeros(self.feature_dim)
    anchors = token if self.num_masks else None
    if self.is_alone:
      variables = transformer.Decoder(self.decoder).init(
          key, token, is_token[..., None], anchors, fed=fed, method='read'
      )
      return {name: {'decoder': tree} for name, tree in variables.items()}
    return transformer.Transformer(self).init(
        key,
        zeros(self.width_of_inputs) if self.reads_features else None,
        token,
        token,
        is_input=is_token,
        is_target=is_token,
        fed=fed,
        anchors=anchors,
        method='score',
    )

  def init(self, key: jax.Array) -> contracts.Params:
    return core.unfreeze(self._init(key)['params'])

  def axes(self) -> Any:
    variables = _abstract_variables(self)
    return core.unfreeze(partitioning.get_axis_names(variables['params_axes']))

  def encode(self, params: contracts.Params, inputs: jax.Array) -> jax.Array:
    """Run the encoder; return [examples, inputs_length, embed].

    Without a reverse-mode gradient, see `input_widths.at_smallest`: training
    calls `features`.
    """
    inputs = sharding.constrain(inputs, ('batch', 'length'))
    output = input_widths.at_smallest(
        inputs >= 0, 1, lambda width: self.features(params, inputs[:, :width])
    )
    return sharding.constrain(output, _FEATURES)

  def features(self, params: contracts.Params, inputs: jax.Array) -> jax.Array:
    """Run the encoder at the whole width, with a gradient."""
    tokens, is_input = jnp.maximum(inputs, 0), inputs >= 0
    return self.apply(params, tokens, is_input, method='encode')

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """Read the inputs; see `network.Network.start`.

    The features are those of `encode`; a head on a decoder alone reads those
    that its target has at all positions of the prompts.
    """
    if self.is_alone:
      return prompts.start(self, params, inputs, rows, slots, fed=features)
    if features is None:
      features = self.encode(params, inputs)
    else:
      features = sharding.constrain(features, _FEATURES)
    return contracts.Started(
        self._project(params, features, inputs >= 0),
        self.init_cache(rows, slots),
        offsets=jnp.zeros((rows,), jnp.int32),
        first_tokens=None,
        features=features,
    )

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `contracts.ShowsFeatures`; before a decoder on features are none."""
    if self.is_alone:
      return prompts.start(
          self, params, inputs, rows, slots, shows_features=True
      )
    started = self.start(params, inputs, rows, slots, features)
    zeros = jnp.zeros((rows, 1, self.last_width), self.dtype)
    return started._replace(last_features=zeros)

  def _project(
      self, params: contracts.Params, features: jax.Array, is_input: jax.Array
  ) -> Memory:
    """Project an encoder's output for every decoder layer."""

    def project(width: int) -> transformer.CrossKeysValues:
      cross = self.apply(
          params, features[:, :width], method='cross_keys_values'
      )
      # The product leaves the slots before the heads. XLA:CPU would copy all
      # slots to the order that attention reads, and not only these.
      return jax.tree.map(sharding.lay_in_order, cross)

    cross = input_widths.at_smallest(is_input, -1, project)
    return Memory(kv_cache.constrain(cross), is_input)

  def init_cache(self, rows: int, slots: int) -> contracts.Cache:
    """Return an empty cache."""
    # A single row has no batch axis: see `networks.layers`.
    batch_shape = () if rows == 1 else (rows,)
    cache = transformer.init_cache(self.decoder, batch_shape, slots)
    return kv_cache.constrain(cache)

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    return self.decode_with_features(
        params, memory, cache, tokens, positions, at
    )[:2]

  def decode_with_features(
      self, params, memory, cache, tokens, positions, at, fed=None
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    """See `contracts.ShowsFeatures`.

    A head with masks may be asked for logits at several indices, [rows, any].
    """
    rows = tokens.shape[0]
    if rows == 1:
      memory, tokens, positions, at, fed = jax.tree.map(
          lambda x: x[0], (memory, tokens, positions, at, fed)
      )
    # One row has no batch axis: see `networks.layers`.
    logits, cache, features = self.apply(
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
    features = features.reshape(rows, -1, self.last_width)
    # Positions of padding follow, and at one index the rest of `min_block`.
    features = features[:, : logits.shape[1]]
    return (
        logits,
        kv_cache.constrain(cache),
        sharding.constrain(features, _FEATURES),
    )

  def follow(self, params, state, tokens, read) -> tuple[jax.Array, jax.Array]:
    """See `layers.DraftRecurrence`; `read` is the features of its position."""
    return self.apply(params, state, tokens, read, method='follow')

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
    logits, block = self.apply(
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

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """Return the logits of given outputs, [..., outputs_length, vocab] float32.

    Each token has the tokens before it as context, the first one those of
    `start`. Without a key, nothing is dropped out. The features are `start`'s.
    """
    return self.score_with_features(
        params, inputs, outputs, dropout_key, features
    ).logits

  def score_with_features(
      self,
      params,
      inputs,
      outputs,
      dropout_key=None,
      features=None,
      fed=None,
      anchors=None,
  ) -> network.Scored:
    """Read given outputs as `score` does.

    A head is fed `fed`, [..., positions, width], at all positions of the
    decoder; see `contracts.ShowsFeatures`. One with masks drafts behind
    `anchors`, [..., anchors] int32, how many tokens of the outputs are before
    each; then there are logits alone, see `draft_blocks.score`.
    """
    rngs = None if dropout_key is None else {'dropout': dropout_key}
    if self.is_alone:
      return prompts.score(self, params, inputs, outputs, rngs, fed, anchors)
    rows, count = outputs.shape[0], len(self.decoder_prompt)
    if anchors is not None:
      anchors = anchors + count - 1
    begin = jnp.broadcast_to(jnp.int32(self.decoder_prompt), (rows, count))
    # The last token of an output is fed to nothing. Id 0 may be a token, as in
    # the target of a head.
    tokens = jnp.concatenate([begin, outputs[:, :-1]], axis=1)
    is_begun = jnp.ones((rows, count - 1), bool)
    logits, shown = self.apply(
        params,
        features,
        jnp.maximum(inputs, 0),
        jnp.maximum(tokens, 0),
        is_input=inputs >= 0,
        is_target=jnp.concatenate([is_begun, outputs >= 0], axis=1),
        fed=fed,
        enable_dropout=rngs is not None,
        anchors=anchors,
        rngs=rngs,
        method='score',
    )
    if anchors is not None:
      return network.Scored(logits, None, None)
    shown = shown[:, count - 1 : tokens.shape[1]]
    return network.Scored(logits[:, count - 1 :], shown, shown)


@functools.cache
def _abstract_variables(config: TransformerNetwork) -> core.FrozenDict:
  return core.freeze(jax.eval_shape(config._init, jax.random.key(0)))
