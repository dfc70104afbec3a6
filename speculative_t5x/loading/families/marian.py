# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Marian's translation models (OPUS-MT): a `families.Family`.

Source and target language have one vocabulary.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.families import bart
from speculative_t5x.networks import encoder_decoder
from speculative_t5x.networks import encoder_decoder_modules as modules

NAME = 'Marian'
DEFAULTS = {
    'marian': {
        'activation_function': 'gelu',
        'max_position_embeddings': 1024,
        'scale_embedding': False,
        'tie_word_embeddings': True,
        'share_encoder_decoder_embeddings': True,
        'pad_token_id': 58100,
        'eos_token_id': 0,
        'decoder_start_token_id': 58100,
        'forced_eos_token_id': 0,
    },
}
tensor_names = dataclasses.replace(
    bart.TENSORS,
    name=NAME,
    # The sinusoids, which some files hold and the network computes.
    ignored=r'(en|de)coder\.embed_positions\.weight',
).sources
of_tensors = bart.of_tensors


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> encoder_decoder.EncoderDecoder:
  if not config['share_encoder_decoder_embeddings']:
    raise errors.CheckpointError(
        f'{file} has share_encoder_decoder_embeddings false, and the network'
        ' that runs here has one vocabulary for both languages. Pass a Marian'
        ' model with one.'
    )
  return bart.of_config(
      file,
      config,
      dtype,
      'a Marian model',
      positions=modules.SINUSOID,
      position_offset=0,
      embedding_norm=False,
  )
