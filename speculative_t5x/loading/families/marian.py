# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Marian's translation models (OPUS-MT): a `families.Family`.

Source and target language have one vocabulary.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading.families import bart
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import encoder_decoder

NAME = 'Marian'
FIELDS = {
    'marian': {
        **families.with_defaults(
            bart.LIKE_BART,
            vocab_size=58_101,
            bos_token_id=None,
            pad_token_id=58_100,
            eos_token_id=0,
            decoder_start_token_id=58_100,
            forced_eos_token_id=0,
        ),
        # Both languages have one vocabulary here.
        'share_encoder_decoder_embeddings': families.Field(True, (True,)),
        'normalize_before': families.Field(False, (False, None)),
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
    file: epath.Path, config: Mapping[str, Any]
) -> encoder_decoder.EncoderDecoder:
  return bart.of_config(
      file,
      config,
      positions=config_lib.SINUSOID,
      position_offset=0,
      embedding_norm=False,
  )
