# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 as a network of the decoding loop.

The parameter tree, shapes, names and logical axes are those of
`t5x.examples.t5.network`, so a T5X checkpoint loads without conversion.
"""

from collections.abc import Sequence
import dataclasses
from typing import ClassVar

import numpy as np

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import t5_cutting
from speculative_t5x.networks import transformer_network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# The special ids of T5's vocabularies: the decoder starts from the padding id.
SPECIAL_IDS = contracts.SpecialIds(end=1, padding=0, start=0)


@dataclasses.dataclass(frozen=True)
class T5Config(config_lib.Form, transformer_network.TransformerNetwork):
  """T5 1.0 or 1.1 with its sizes, under T5X's names: a `network.Network`.

  Attributes:
    vocab_size: Rows of the embedding and width of the logits, with padding.
    emb_dim: Width of the residual stream.
    num_heads: Attention heads.
    num_encoder_layers: Layers of the encoder; 0 for a decoder alone, which
      reads the output of another network's encoder.
    num_decoder_layers: Layers of the decoder.
    head_dim: Width of one head.
    mlp_dim: Width of the feed-forward block.
    mlp_activations: Flax names, one per input projection; 'linear' for none.
    encoder_dim: Width of the output of that encoder; None for emb_dim.
    feature_dim: Width of the last features that a head on them is fed and
      predicts; None for a network that is fed tokens alone.
    dropout_rate: Dropout rate in training, in [0, 1); unused in decoding.
    logits_via_embedding: Whether the embedding is also the output head, as in
      T5 1.0.
    bias_per_layer: Whether each layer has a table of relative positions, as in
      umT5; in T5, all layers of a stack share one.
  """

  vocab_size: int
  emb_dim: int = 512
  num_heads: int = 8
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('gelu', 'linear')
  encoder_dim: int | None = None
  feature_dim: int | None = None
  dropout_rate: float = 0.1
  logits_via_embedding: bool = False
  bias_per_layer: bool = False

  name: ClassVar[str] = 'T5'
  special_ids: ClassVar[contracts.SpecialIds] = SPECIAL_IDS

  def __post_init__(self):
    super().__post_init__()
    ranges.check_settings(ranges.RATE_BELOW_1, dropout_rate=self.dropout_rate)
    for name in ('encoder_dim', 'feature_dim'):  # of the target's features
      value = getattr(self, name)
      if self.num_encoder_layers and value is not None:
        raise ValueError(
            f'{name} is {value}, but the network has an encoder of its own. Set'
            " num_encoder_layers = 0 for a decoder on a target's features."
        )

  def _stack(self, num_layers: int, **others) -> config_lib.Stack:
    # Embeddings have variance 1, so the logits of a tied head are rescaled: by
    # a float32 division, as XLA computes it.
    scale = 1 / np.sqrt(np.float32(self.emb_dim))
    return config_lib.stack_of(
        self,
        num_layers=num_layers,
        positions=config_lib.RELATIVE,
        query_scale=1.0,  # it is in the kernels
        t5_attention=True,
        logits_scale=float(scale) if self.logits_via_embedding else 1.0,
        **others,
    )

  cut = t5_cutting.cut
