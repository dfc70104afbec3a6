# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma as a network of the decoding loop: an encoder-decoder of Gemma.

Layers are those of decoders alone; in the encoder a query attends to both
sides, and in the decoder to the encoder's output as well: by an attention of
its own in T5Gemma, of Gemma 2, and by the same one in T5Gemma 2, of Gemma 3.
Names are T5X's for an encoder-decoder, with more where T5 has no such part.

Reference: Zhang et al. (2025), "Encoder-Decoder Gemma".
"""

import dataclasses
from typing import ClassVar

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import cross_attending
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class T5Gemma(config_lib.Stack, cross_attending.CrossAttending):
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
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=0, start=2
  )
  ends_inputs: ClassVar[bool] = False

  def __post_init__(self):
    super().__post_init__()
    if self.encoder is not None:
      encoder = dataclasses.replace(
          self.encoder,
          dtype=self.dtype,
          merge_projections=self.merge_projections,
      )
      object.__setattr__(self, 'encoder', encoder)
      object.__setattr__(self, 'encoder_dim', encoder.emb_dim)
    if self.merged_attention:
      self._check_equal('emb_dim', self.width_of_inputs)
    if self.encoder is not None and self.shares_embedding:
      self._check_equal('emb_dim', self.encoder.emb_dim)
      self._check_equal('vocab_size', self.encoder.vocab_size)

  def _check_equal(self, name: str, of_encoder: int) -> None:
    if of_encoder != (own := getattr(self, name)):
      raise ranges.ArgumentError(
          f'{name} is {of_encoder} in the encoder and {own} in the decoder, and'
          ' parts that both use need one. Choose equal ones.',
          **{name: own},
      )

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    return self

  @property
  def num_encoder_layers(self) -> int:
    return 0 if self.encoder is None else self.encoder.num_layers

  @property
  def embedding_in(self) -> str:
    return 'decoder' if self.shares_embedding else 'each'

  def _without_encoder(self) -> 'T5Gemma':
    return dataclasses.replace(self, encoder=None)
