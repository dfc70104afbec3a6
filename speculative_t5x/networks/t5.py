# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 as a network of the decoding loop, and what others share with it.

The parameter tree, shapes, names and logical axes are those of
`t5x.examples.t5.network`, so a T5X checkpoint loads without conversion. On a
mesh, inputs, caches and logits are constrained to the sharding rules in force;
otherwise the compiler would choose their sharding.

Legend: examples, rows, inputs_length, embed, vocab.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any, ClassVar, Self

from flax import core
from flax import struct
import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_cutting
from speculative_t5x.networks import t5_modules
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# The special ids of T5's vocabularies: the decoder starts from the padding id.
SPECIAL_IDS = contracts.SpecialIds(end=1, padding=0, start=0)

# What a head for an inner layer replaces.
_HEAD = ('decoder_norm', 'logits_dense')


@struct.dataclass
class Memory:
  """Read-only inputs of a decoder, one row per example.

  Attributes:
    cross: Keys and values of the inputs, per layer.
    is_input: [examples, inputs_length] bool, False where there is no token.
  """

  cross: t5_modules.CrossKeysValues
  is_input: jax.Array


class CrossAttending:
  """A `network.Network` whose decoder attends to features of the inputs.

  Its subclasses are frozen dataclasses with the fields `vocab_size`, `emb_dim`,
  `num_heads`, `head_dim`, `num_encoder_layers`, `num_decoder_layers`,
  `encoder_dim`, `dtype` and those of `t5_preparation`. They define `name`,
  `special_ids`, and the methods that raise NotImplementedError here.
  """

  ends_inputs: ClassVar[bool] = True

  def _modules(self) -> nn.Module:
    """Return modules with `cross_keys_values` and `decode_block`, as T5's."""
    raise NotImplementedError

  def _encode(
      self, params: contracts.Params, tokens: jax.Array, is_input: jax.Array
  ) -> jax.Array:
    """Run the encoder over [examples, length]; return [..., embed]."""
    raise NotImplementedError

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    """Return random parameters, `params`, and their axes, `params_axes`."""
    raise NotImplementedError

  @property
  def reads_features(self) -> bool:
    """Whether it is a decoder alone, on the encoder of another network."""
    return not self.num_encoder_layers

  @property
  def width_of_inputs(self) -> int:
    """Width of the features that the decoder reads."""
    return self.emb_dim if self.encoder_dim is None else self.encoder_dim

  @property
  def axis_units(self) -> Mapping[str, int]:
    """Heads are not cut apart, though their number times width might be."""
    return {'joined_kv': self.num_heads}

  def init(self, key: jax.Array) -> contracts.Params:
    return core.unfreeze(self._init(key)['params'])

  def axes(self) -> Any:
    variables = _abstract_variables(self)
    return core.unfreeze(partitioning.get_axis_names(variables['params_axes']))

  def prepared(self, platform: str, merged: bool) -> Self:
    config = t5_preparation.prepare_config(self, platform)
    return t5_preparation.merge_config(config) if merged else config

  def prepare(self, leaves: network.Leaves, merged: bool) -> network.Leaves:
    leaves = t5_preparation.prepare_each(self, leaves)
    return t5_preparation.merge_each(self, leaves) if merged else leaves

  def encode(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder; return [examples, inputs_length, embed].

    Without a reverse-mode gradient, see `input_widths.at_smallest`: training
    calls `features`.
    """
    inputs = sharding.constrain(inputs, ('batch', 'length'))
    is_input = inputs >= 0
    tokens = jnp.maximum(inputs, 0)
    output = input_widths.at_smallest(
        is_input,
        1,
        lambda width: self._encode(
            params, tokens[:, :width], is_input[:, :width]
        ),
    )
    return sharding.constrain(output, ('batch', 'length', 'embed'))

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `network.Network.start`; the features are those of `encode`."""
    if features is None:
      features = self.encode(params, inputs)
    else:
      self._check_features(features, inputs)
      features = sharding.constrain(features, ('batch', 'length', 'embed'))
    return contracts.Started(
        self._project(params, features, inputs >= 0),
        self.init_cache(rows, slots),
        offsets=jnp.zeros((rows,), jnp.int32),
        first_tokens=None,
        features=features,
    )

  def _check_features(self, features: jax.Array, inputs: jax.Array) -> None:
    shape = *inputs.shape, self.width_of_inputs
    dtype = jnp.dtype(self.dtype)
    if features.shape != shape or features.dtype != dtype:
      raise ValueError(
          f'Features of shape {features.shape} and type {features.dtype} were'
          f' given for inputs whose features have shape {shape} and type'
          f' {dtype}. Give what the same target has computed of the same'
          ' inputs, or None.'
      )

  def _project(
      self, params: contracts.Params, features: jax.Array, is_input: jax.Array
  ) -> Memory:
    """Project an encoder's output for every decoder layer."""
    decoder = self._modules()

    def project(width: int) -> t5_modules.CrossKeysValues:
      cross = decoder.apply(
          {'params': params}, features[:, :width], method='cross_keys_values'
      )
      # The product leaves the slots before the heads. XLA:CPU would copy all
      # slots to the order that attention reads, and not only these.
      return jax.tree.map(sharding.lay_in_order, cross)

    cross = input_widths.at_smallest(is_input, -1, project)
    return Memory(kv_cache.constrain(cross), is_input)

  def init_cache(self, rows: int, slots: int) -> contracts.Cache:
    """Return an empty cache."""
    # A single row has no batch axis: see `networks.t5_layers`.
    batch_shape = () if rows == 1 else (rows,)
    return kv_cache.constrain(
        t5_modules.init_cache(self, batch_shape, slots)
    )

  def decode(
      self, params, memory: Memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    rows = tokens.shape[0]
    if rows == 1:
      memory, tokens, positions, at = jax.tree.map(
          lambda x: x[0], (memory, tokens, positions, at)
      )
    logits, cache = self._modules().apply(
        {'params': params},
        tokens,
        positions,
        memory.cross,
        memory.is_input,
        cache,
        at,
        method='decode_block',
    )
    logits = sharding.gather_logits(logits.reshape(rows, -1, self.vocab_size))
    return logits, kv_cache.constrain(cache)

  def on_features(self, width: int) -> Self:
    """Return the decoder alone, which reads features of a width."""
    return dataclasses.replace(self, num_encoder_layers=0, encoder_dim=width)

  def first_layers(self, count: int) -> Self:
    """Return the network that ends after some decoder layers.

    Its parameters are the network's own; those of later layers are not read.

    Raises:
      ValueError: if there is no such layer.
    """
    allowed = ranges.whole(1, self.num_decoder_layers)
    ranges.check_settings(allowed, exit_layer=count)
    return dataclasses.replace(self, num_decoder_layers=count)

  def take_first_layers(
      self, memory: Memory, cache: contracts.Cache
  ) -> tuple[Memory, contracts.Cache]:
    """Return what this reads of a deeper network's memory and cache."""
    count = self.num_decoder_layers
    return memory.replace(cross=memory.cross[:count]), cache[:count]

  def put_first_layers(
      self, cache: contracts.Cache, whole: contracts.Cache
  ) -> contracts.Cache:
    """Return a deeper network's cache with these layers' in their places."""
    return *cache, *whole[self.num_decoder_layers :]

  def decoder_alone(self) -> Self:
    """Return the decoder alone, as a checkpoint holds it."""
    return dataclasses.replace(
        self,
        num_encoder_layers=0,
        separate_head=False,
        head_size=None,
        merge_projections=False,
    )

  def shorten_head(
      self, params: contracts.Params, ids: np.ndarray
  ) -> tuple[Self, contracts.Params]:
    """Restrict the head to some tokens; see `t5_preparation.shorten_head`."""
    return t5_preparation.shorten_head(self, params, ids)


@dataclasses.dataclass(frozen=True)
class T5Config(t5_modules.Sizes, CrossAttending):
  """T5 1.0 or 1.1 with its sizes: a `network.Network`.

  Its attributes are those of `t5_modules.Sizes`.
  """

  name: ClassVar[str] = 'T5'
  special_ids: ClassVar[contracts.SpecialIds] = SPECIAL_IDS

  def _modules(self) -> t5_modules.Transformer:
    return t5_modules.Transformer(self)

  def _encode(self, params, tokens, is_input) -> jax.Array:
    return self._modules().apply(
        {'params': params},
        tokens,
        enable_dropout=False,
        is_input=is_input,
        method='encode',
    )

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    return _init(self, key)

  def new_block(
      self, cache: contracts.Cache, examples: int, nodes: int
  ) -> contracts.Cache:
    """See `contracts.DecodesTrees.new_block`."""
    del cache
    return t5_modules.init_cache(self, (examples,), nodes)

  def decode_tree(
      self, params, memory: Memory, cache, block, nodes, first, count,
      num_cached,
  ) -> tuple[jax.Array, contracts.Cache]:  # fmt: skip
    """See `contracts.DecodesTrees.decode_tree`."""
    examples = num_cached.shape[0]
    return self._modules().apply(
        {'params': params},
        nodes,
        first,
        count,
        num_cached,
        memory.cross,
        memory.is_input,
        jax.tree.map(lambda x: x.reshape(examples, -1, *x.shape[-3:]), cache),
        block,
        method='decode_tree',
    )

  def commit(
      self, cache, block, rows, paths, num_cached
  ) -> contracts.Cache:
    """See `contracts.DecodesTrees.commit`."""
    committed = [
        kv_cache.commit(*layer, rows, paths, num_cached)
        for layer in zip(cache, block, strict=True)
    ]
    return kv_cache.constrain(tuple(committed))

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `network.ShowsFeatures`; before the first position there is none."""
    started = self.start(params, inputs, rows, slots, features)
    zeros = jnp.zeros((rows, 1, self.last_width), self.dtype)
    return started._replace(last_features=zeros)

  def decode_with_features(
      self, params, memory: Memory, cache, tokens, positions, at, fed=None
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    """See `network.ShowsFeatures`."""
    rows = tokens.shape[0]
    if rows == 1:
      memory, tokens, positions, at, fed = jax.tree.map(
          lambda x: x[0], (memory, tokens, positions, at, fed)
      )
    logits, cache, features = self._modules().apply(
        {'params': params},
        tokens,
        positions,
        memory.cross,
        memory.is_input,
        cache,
        at,
        fed,
        method='decode_block_with_features',
    )
    logits = sharding.gather_logits(logits.reshape(rows, -1, self.vocab_size))
    features = features.reshape(rows, -1, self.last_width)
    features = sharding.constrain(
        features[:, : logits.shape[1]], ('batch', 'length', 'embed')
    )
    return logits, kv_cache.constrain(cache), features

  @property
  def last_width(self) -> int:
    """Width of the last features: what the head reads, or predicts of a target.
    """
    return self.emb_dim if self.feature_dim is None else self.feature_dim

  def on_last_features(self, target: network.Network) -> 'T5Config':
    """See `network.ReadsLastFeatures`."""
    decoder = self.on_features(network.features_width(target))
    return dataclasses.replace(decoder, feature_dim=target.last_width)

  def features(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder in training; see `network.Network`.

    It runs at the whole width, with a gradient, and XLA leaves out what no
    result needs. Id 0 counts as no token, as in T5X.
    """
    return self._apply(params, None, jnp.maximum(inputs, 0), method='encode')

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """See `network.Network`; id 0 counts as no token, as in T5X."""
    texts = self._texts(inputs, outputs)
    if features is None:
      return self._apply(params, dropout_key, *texts)
    return self._apply(params, dropout_key, features, *texts, method='decode')

  def score_with_features(
      self,
      params,
      inputs,
      outputs,
      dropout_key=None,
      features=None,
      fed=None,
  ) -> network.Scored:
    """See `network.ShowsFeatures`; the features of the inputs are needed."""
    logits, shown = self._apply(
        params,
        dropout_key,
        features,
        *self._texts(inputs, outputs),
        fed,
        method='decode_with_features',
    )
    return network.Scored(logits, shown, shown)

  def _texts(
      self, inputs: jax.Array, outputs: jax.Array
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return inputs, what the decoder is fed, and outputs, with 0 for none."""
    inputs, outputs = (jnp.maximum(tokens, 0) for tokens in (inputs, outputs))
    fed = jnp.pad(
        outputs[:, :-1],
        ((0, 0), (1, 0)),
        constant_values=self.special_ids.start,
    )
    return inputs, fed, outputs

  def _apply(self, params, dropout_key, *args, **kwargs) -> jax.Array:
    if dropout_key is None:
      kwargs['enable_dropout'] = False
    else:
      kwargs['rngs'] = {'dropout': dropout_key}
    return self._modules().apply({'params': params}, *args, **kwargs)

  def cut(
      self,
      params: contracts.Params,
      *,
      decoder_layers: Sequence[int],
      encoder_layers: Sequence[int] | None = None,
      num_heads: int | None = None,
      mlp_dim: int | None = None,
  ) -> tuple['T5Config', contracts.Params]:
    """Return a smaller network of layers, the largest heads and columns.

    Arguments and errors are those of `t5_cutting.take_layers` and
    `t5_cutting.narrow`.
    """
    cut = t5_cutting.take_layers(self, params, encoder_layers, decoder_layers)
    return t5_cutting.narrow(*cut, num_heads, mlp_dim)

  def with_own_head(self) -> 'T5Config':
    """Return the network whose head is stored, also where it was tied."""
    return dataclasses.replace(self, separate_head=True)

  def take_head(self, params: contracts.Params) -> contracts.Params:
    """Return the final norm and the head, which may be tied, by T5X's names."""
    decoder = params['decoder']
    if 'logits_dense' not in decoder:
      tied = params['token_embedder']['embedding']
      decoder = {**decoder, 'logits_dense': {'kernel': tied.T}}
    return {'decoder': {name: decoder[name] for name in _HEAD}}

  def put_head(
      self, params: contracts.Params, head: contracts.Params
  ) -> contracts.Params:
    """Return the parameters with another final norm and head."""
    return {**params, 'decoder': {**params['decoder'], **head['decoder']}}


def _init(config: T5Config, key: jax.Array) -> Mapping[str, Any]:
  """Return random parameters, `params`, and their axes, `params_axes`."""
  modules = t5_modules.Transformer(config)
  init = functools.partial(modules.init, enable_dropout=False)
  inputs = [jnp.ones((1, 1), jnp.int32)] * 3
  if config.reads_features:
    init = functools.partial(init, method='decode')
    encoded = jnp.zeros((1, 1, config.width_of_inputs), config.dtype)
    inputs = [encoded, *inputs]
  if config.feature_dim is not None:
    init = functools.partial(init, method='decode_with_features')
    inputs.append(jnp.zeros((1, 1, config.feature_dim), config.dtype))
  return init(key, *inputs)


@functools.cache
def _abstract_variables(config: CrossAttending) -> core.FrozenDict:
  return core.freeze(jax.eval_shape(config._init, jax.random.key(0)))
