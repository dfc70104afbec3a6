# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Llama, all versions of text: a `families.Family`."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.networks import decoder_only

NAME = 'Llama'
DEFAULTS = {
    'llama': {
        'hidden_act': 'silu',
        'rms_norm_eps': 1e-6,
        'tie_word_embeddings': False,
        'eos_token_id': 2,
    },
}
_MAP = decoders.TensorMap(NAME, decoders.LLAMA_LAYER, decoders.LLAMA_OUTSIDE)
tensor_names = _MAP.sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> decoder_only.DecoderOnly:
  kind = decoder_only.LayerKind(None, *decoders.rope(file, config))
  return decoders.like_llama(file, config, dtype, 'a Llama', kinds=(kind,))
