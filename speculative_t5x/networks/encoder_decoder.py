# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART and its like as a network of the decoding loop: Marian, M2M-100, NLLB.

The decoder begins with a prompt of one id or several: a start, and in some a
language or a token that the checkpoint forces. It is not part of the output.

Reference: Vaswani et al. (2017), "Attention Is All You Need"; Lewis et al.
  (2020), "BART".

Legend: rows.
"""

from collections.abc import Sequence
import dataclasses
from typing import ClassVar, NoReturn

import jax.numpy as jnp

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import network
from speculative_t5x.networks import transformer_network
from speculative_t5x.speculation import contracts

_EPSILON = 1e-5  # of all norms


@dataclasses.dataclass(frozen=True)
class EncoderDecoder(
    config_lib.Form, transformer_network.TransformerNetwork
):
  """BART, Marian, M2M-100 or NLLB with its sizes: a `network.Network`.

  Its other attributes are those of `config.Stack`, of both stacks.

  Attributes:
    emb_dim: Width of the residual stream, which the heads share.
    num_encoder_layers: Layers of the encoder; 0 for a decoder alone, which
      reads the output of another network's encoder.
    num_decoder_layers: Layers of the decoder.
    positions: 'learned', 'sinusoid' or 'tensor2tensor'.
    max_positions: Positions that an input or an output may have; None for any
      number, of sinusoids.
    pre_norm: Whether blocks are normalized before, and each stack at its end;
      blocks and what they are added to are normalized behind otherwise.
    decoder_prompt: Ids that the decoder is fed before the first token of an
      output, as a start and a language; empty if they are still to be chosen.
    encoder_dim: Width of the output of another network's encoder; None for
      emb_dim.
  """

  vocab_size: int
  emb_dim: int = 768
  num_heads: int = 12
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  mlp_dim: int = 3072
  mlp_activations: Sequence[str] = ('gelu_exact',)
  positions: str = config_lib.LEARNED
  max_positions: int | None = 1024
  position_offset: int = 2
  pre_norm: bool = False
  embedding_norm: bool = True
  embedding_scale: float = 1.0
  logits_bias: bool = True
  decoder_prompt: Sequence[int] = (2,)
  encoder_dim: int | None = None
  logits_via_embedding: bool = True
  dropout_rate: float = 0.0

  name: ClassVar[str] = 'encoder-decoder'
  feature_dim: ClassVar[None] = None  # it is no head
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=2, padding=1, start=2
  )

  def __post_init__(self):
    super().__post_init__()
    # Checked here, or when the network is used.
    self._stack(self.num_decoder_layers)

  def _stack(self, num_layers: int, **others) -> config_lib.Stack:
    return config_lib.stack_of(
        self,
        num_layers=num_layers,
        head_dim=self.emb_dim // self.num_heads,
        norm=config_lib.LAYER,
        norm_eps=_EPSILON,
        sum_norms=not self.pre_norm,
        bart_form=True,
        t5_attention=True,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        **others,
    )

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """Read the inputs and the decoder's prompt; see `network.Network.start`."""
    *before, last = self.decoder_prompt
    started = super().start(
        params, inputs, rows, len(before) + slots, features
    )
    cache = started.cache
    if before:
      # Nothing reads the logits, and the compiler leaves the head out.
      tokens = jnp.broadcast_to(jnp.int32(before), (rows, len(before)))
      _, cache = self.decode(
          params, started.memory, cache, tokens, started.offsets, None
      )
    return started._replace(
        cache=cache,
        offsets=jnp.full((rows,), len(before), jnp.int32),
        first_tokens=jnp.full((rows,), last, jnp.int32),
    )

  def on_last_features(self, target: network.Network) -> NoReturn:
    """Refuse: nothing could be fed beside a prompt."""
    raise ValueError(
        'A head on last features cannot begin with a prompt, as a network of'
        f' the kind {self.name} does. Give a head with the sizes of a T5.'
    )

  def with_decoder_prompt(self, ids: Sequence[int]) -> 'EncoderDecoder':
    """Return the network with another prompt of its decoder."""
    return dataclasses.replace(self, decoder_prompt=tuple(ids))
