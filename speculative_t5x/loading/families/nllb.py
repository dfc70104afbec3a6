# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""NLLB and M2M-100, without experts: a `families.Family`.

The decoder begins with the language of its output. It is chosen by whoever
decodes, or generation_config.json forces it.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath

from speculative_t5x.loading.families import bart
from speculative_t5x.networks import encoder_decoder
from speculative_t5x.networks import encoder_decoder_modules as modules

NAME = 'NLLB'
DEFAULTS = {
    'm2m_100': {
        'activation_function': 'relu',
        'scale_embedding': True,
        'tie_word_embeddings': True,
        'bos_token_id': 0,
        'pad_token_id': 1,
        'eos_token_id': 2,
        'decoder_start_token_id': 2,
        'max_position_embeddings': 1024,
    },
}
tensor_names = dataclasses.replace(
    bart.TENSORS,
    name=NAME,
    # The sinusoids, which some files hold and the network computes.
    ignored=(
        r'(en|de)coder\.(version|embed_positions\.(weights|_float_tensor))'
    ),
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> encoder_decoder.EncoderDecoder:
  return bart.of_config(
      file,
      config,
      dtype,
      'an NLLB or M2M-100',
      positions=modules.TENSOR2TENSOR,
      max_positions=None,  # transformers computes as many as are needed
      pre_norm=True,
      embedding_norm=False,
      logits_bias=False,
      decoder_prompt=(),
  )
