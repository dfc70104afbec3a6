# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART: a `families.Family`."""

from collections.abc import Collection, Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_encoder_decoders as shared
from speculative_t5x.networks import encoder_decoder

NAME = 'BART'
DEFAULTS = {
    'bart': {
        'activation_function': 'gelu',
        'max_position_embeddings': 1024,
        'scale_embedding': False,
        'tie_word_embeddings': True,
        'bos_token_id': 0,
        'pad_token_id': 1,
        'eos_token_id': 2,
        'decoder_start_token_id': 2,
        'forced_eos_token_id': 2,
    },
}
of_tensors = shared.with_logits_bias


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> encoder_decoder.EncoderDecoder:
  return shared.of_config(file, config, dtype, 'a BART')


def tensor_names(
    folder: epath.Path, stored: Collection[str], network: Any
) -> tuple[dict[str, families.Source], dict[str, str]]:
  return shared.tensor_names(NAME, folder, stored)
