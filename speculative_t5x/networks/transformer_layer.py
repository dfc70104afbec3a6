# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A layer of the transformer, whatever the family.

In shapes, `...` stands for the batch axis, or for no axis when a single row is
decoded, see `layers`.
"""

from typing import Any

import flax.linen as nn
import jax

from speculative_t5x.networks import attention
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import keys as keys_lib
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import layers
from speculative_t5x.networks import norms


class Layer(nn.Module):
  """Attention and a feed-forward block, each with norms and a residual.

  Between them, or with its own attention, a decoder's layer may attend to the
  output of an encoder.
  """

  config: config_lib.Stack
  is_encoder: bool

  def setup(self):
    config = self.config
    own = 'attention' if self.is_encoder else 'self_attention'
    blocks = {'own': own, 'mlp': 'mlp'}
    self.self_attention = attention.Attention(
        config, config.merge_projections, name=own
    )
    if config.encoder_dim is not None and not config.merged_attention:
      blocks['cross'] = 'cross_attention'
      self.encoder_decoder_attention = attention.Attention(config)
    self.mlp = layers.GatedMlp(config)
    # One mask for all positions, as in T5X.
    self.dropout = nn.Dropout(config.dropout_rate, broadcast_dims=(-2,))
    if config.positions == config_lib.RELATIVE and config.bias_per_layer:
      self.relpos_bias = layers.RelativePositionBias(config, self.is_encoder)
    before = '' if config.bart_form else 'pre_'
    norms_of = lambda place: {
        block: norms.of(config, f'{place}{name}_layer_norm')
        for block, name in blocks.items()
    }
    self.norms = norms_of(before)
    self.post_norms = norms_of('post_') if config.post_norms else None

  def __call__(
      self,
      x: jax.Array,
      kept: Any,
      place: keys_lib.Place,
      sight: keys_lib.Sight,
      inputs: attention.Keys | None,
      *,
      drop: bool,
  ) -> tuple[jax.Array, Any]:
    """Compute positions, wherever their keys and those before them lie.

    Args:
      x: [..., length, embed].
      kept: What `place.put` takes: the layer's part of a cache.
      place: Where the keys of self-attention lie.
      sight: Which of them the positions see.
      inputs: Keys of an encoder's output, per example; None for none.
      drop: Whether activations are dropped out.
    Returns:
      [..., length, embed], and what the layer keeps.
    """
    query, new = self.self_attention.project(
        self._before('own', x), place.num_kept, sight.rotation
    )
    kept, attended = place.put(kept, new)
    merged, inputs = (
        (inputs, None) if self.config.merged_attention else (None, inputs)
    )
    y = place.attend(
        self.self_attention, query, attended, sight, merged, drop
    )
    x = self._behind('own', x, y, drop)
    if inputs is not None:
      module = self.encoder_decoder_attention
      query = module.project_query(self._before('cross', x))
      y = module.attend_to_inputs(query, inputs, drop=drop)
      x = self._behind('cross', x, y, drop)
    y = self.mlp(self._before('mlp', x), drop=drop)
    return self._behind('mlp', x, y, drop), kept

  def _before(self, block: str, x: jax.Array) -> jax.Array:
    """Return what a block reads."""
    return x if self.config.sum_norms else self.norms[block](x)

  def _behind(
      self, block: str, x: jax.Array, y: jax.Array, drop: bool
  ) -> jax.Array:
    """Return x with a block's output added."""
    if self.config.post_norms:
      y = self.post_norms[block](y)
    x = x + self.dropout(y, deterministic=not drop)
    return self.norms[block](x) if self.config.sum_norms else x

  def project_inputs(self, encoded: jax.Array) -> kv_cache.KeysValues:
    """Return the keys and values of an encoder's output."""
    if self.config.merged_attention:
      return self.self_attention.project_keys_values(encoded)
    return self.encoder_decoder_attention.project_keys_values(encoded)
