# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 as a network of the decoding loop.

The parameter tree, shapes, names and logical axes are those of
`t5x.examples.t5.network`, so a T5X checkpoint loads without conversion.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from speculative_t5x.networks import cross_attending
from speculative_t5x.networks import network
from speculative_t5x.networks import t5_cutting
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import contracts

# The special ids of T5's vocabularies: the decoder starts from the padding id.
SPECIAL_IDS = contracts.SpecialIds(end=1, padding=0, start=0)

# What a head for an inner layer replaces.
_HEAD = ('decoder_norm', 'logits_dense')


@dataclasses.dataclass(frozen=True)
class T5Config(t5_modules.Sizes, cross_attending.CrossAttending):
  """T5 1.0 or 1.1 with its sizes: a `network.Network`.

  Its attributes are those of `t5_modules.Sizes`.
  """

  name: ClassVar[str] = 'T5'
  special_ids: ClassVar[contracts.SpecialIds] = SPECIAL_IDS

  def _modules(self) -> t5_modules.Transformer:
    return t5_modules.Transformer(self)

  def _encode(self, params, tokens, is_input) -> jax.Array:
    return self._apply(
        params, None, tokens, is_input=is_input, method='encode'
    )

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    init = functools.partial(self._modules().init, enable_dropout=False)
    inputs = [jnp.ones((1, 1), jnp.int32)] * 3
    if self.reads_features:
      init = functools.partial(init, method='decode')
      encoded = jnp.zeros((1, 1, self.width_of_inputs), self.dtype)
      inputs = [encoded, *inputs]
    if self.feature_dim is not None:
      init = functools.partial(init, method='decode_with_features')
      inputs.append(jnp.zeros((1, 1, self.feature_dim), self.dtype))
    return init(key, *inputs)

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
