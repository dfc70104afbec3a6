# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 as a network of the decoding loop.

The parameter tree, shapes, names and logical axes are those of
`t5x.examples.t5.network`, so a T5X checkpoint loads without conversion.
"""

from collections.abc import Mapping, Sequence
import dataclasses
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

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    zeros = lambda width: jnp.zeros((1, 1, width), self.dtype)
    token, is_token = jnp.ones((1, 1), jnp.int32), jnp.ones((1, 1), bool)
    return self._modules().init(
        key,
        zeros(self.width_of_inputs) if self.reads_features else None,
        token,
        token,
        is_input=is_token,
        is_target=is_token,
        fed=None if self.feature_dim is None else zeros(self.feature_dim),
        method='score',
    )

  def on_last_features(self, target: network.Network) -> 'T5Config':
    """See `network.ReadsLastFeatures`."""
    decoder = self.on_features(network.features_width(target))
    return dataclasses.replace(decoder, feature_dim=target.last_width)

  def score_with_features(
      self, params, inputs, outputs, dropout_key=None, features=None, fed=None
  ) -> network.Scored:
    """See `network.ShowsFeatures`; id 0 may be a token, as in a head's target.
    """
    tokens = jnp.pad(
        jnp.maximum(outputs[:, :-1], 0),
        ((0, 0), (1, 0)),
        constant_values=self.special_ids.start,
    )
    rngs = None if dropout_key is None else {'dropout': dropout_key}
    logits, shown = self._modules().apply(
        {'params': params},
        features,
        jnp.maximum(inputs, 0),
        tokens,
        is_input=inputs >= 0,
        is_target=outputs >= 0,
        fed=fed,
        enable_dropout=dropout_key is not None,
        rngs=rngs,
        method='score',
    )
    return network.Scored(logits, shown, shown)

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
