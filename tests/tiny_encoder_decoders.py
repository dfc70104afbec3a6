# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small encoder-decoders with absolute positions, one per set of parts."""

import functools

from speculative_t5x import networks
from speculative_t5x.loading import models
from speculative_t5x.speculation import contracts
from tests import tiny_decoders

# All sizes differ, so that none can take the place of another.
_SIZES = dict(
    vocab_size=96,
    emb_dim=24,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=3,
    mlp_dim=40,
)
CONFIGS = {
    'bart': networks.EncoderDecoder(
        **_SIZES, max_positions=72, decoder_prompt=(2, 0)
    ),
    'marian': networks.EncoderDecoder(
        **_SIZES,
        mlp_activations=('silu',),
        positions='sinusoid',
        max_positions=80,
        position_offset=0,
        embedding_norm=False,
        embedding_scale=24**0.5,
        decoder_prompt=(95,),
    ),
    'nllb': networks.EncoderDecoder(
        **_SIZES,
        mlp_activations=('relu',),
        positions='tensor2tensor',
        max_positions=None,
        pre_norm=True,
        embedding_norm=False,
        embedding_scale=24**0.5,
        logits_bias=False,
        decoder_prompt=(2, 91),
    ),
}
SPECIAL_IDS = {
    'bart': contracts.SpecialIds(2, 1, 2),
    'marian': contracts.SpecialIds(0, 95, 95, forbidden=(95,)),
    'nllb': contracts.SpecialIds(2, 1, 2),
}


@functools.cache
def model(name: str, seed: int = 0) -> models.Model:
  """Return one ready to decode."""
  config = CONFIGS[name]
  return models.make_model(
      config,
      tiny_decoders.params(config, seed),
      special_ids=SPECIAL_IDS[name],
  )
