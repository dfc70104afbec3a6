# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma as a network of the decoding loop: an encoder-decoder of Gemma.

Layers are those of decoders alone; in the encoder a query attends to both
sides, and in the decoder to the encoder's output as well: by an attention of
its own in T5Gemma, of Gemma 2, and by the same one in T5Gemma 2, of Gemma 3.
Names are T5X's for an encoder-decoder, with more where T5 has no such part.

Reference: Zhang et al. (2025), "Encoder-Decoder Gemma".
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import transformer_network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class T5Gemma(config_lib.Stack, transformer_network.TransformerNetwork):
  """T5Gemma, or T5Gemma 2, with its sizes: a `network.Network`.

  Its other attributes are those of `config.Stack`, of the decoder.

  Attributes:
    encoder: Sizes of the encoder; None for a decoder alone, which reads the
      output of another network's encoder.
    shares_embedding: Whether inputs are embedded as outputs are.
  """

  encoder: config_lib.Stack | None = None
  shares_embedding: bool = False

  name: ClassVar[str] = 'T5Gemma'
  layers_field: ClassVar[str] = 'num_layers'
  no_encoder: ClassVar[Mapping[str, Any]] = {'encoder': None}
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=0, start=2
  )
  ends_inputs: ClassVar[bool] = False

  def __post_init__(self):
    super().__post_init__()
    put = lambda name, value: object.__setattr__(self, name, value)
    if (encoder := self.encoder) is None:
      put('encoder_dim', self.encoder_dim or self.emb_dim)
      return
    form = {x: getattr(self, x) for x in ('dtype', 'merge_projections')}
    put('encoder', dataclasses.replace(encoder, **form))
    put('encoder_dim', encoder.emb_dim)
    shared = ['emb_dim'] if self.merged_attention else []
    shared += ['emb_dim', 'vocab_size'] if self.shares_embedding else []
    for name in shared:
      if (of_encoder := getattr(encoder, name)) != (own := getattr(self, name)):
        raise ranges.ArgumentError(
            f'{name} is {of_encoder} in the encoder and {own} in the decoder,'
            ' and parts that both use need one. Choose equal ones.',
            **{name: own},
        )

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    return self

  @property
  def embedding_in(self) -> str:
    return 'decoder' if self.shares_embedding else 'each'
