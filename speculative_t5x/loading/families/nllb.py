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

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading.families import bart
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import encoder_decoder

NAME = 'NLLB'
FIELDS = {
    'm2m_100': {
        **families.with_defaults(
            bart.LIKE_BART,
            vocab_size=128_112,
            activation_function='relu',
            scale_embedding=True,
            forced_eos_token_id=None,
        ),
        # The number before the first position.
        'pad_token_id': families.Field(1, families.ID),
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
    file: epath.Path, config: Mapping[str, Any]
) -> encoder_decoder.EncoderDecoder:
  if (start := config['decoder_start_token_id']) == config['pad_token_id']:
    raise errors.CheckpointError(
        f'{file} has pad_token_id {start}, which decoder_start_token_id is too.'
        ' transformers gives such a start no position. Write the id of padding'
        ' that the model was trained with.'
    )
  return bart.of_config(
      file,
      config,
      positions=config_lib.TENSOR2TENSOR,
      max_positions=None,  # transformers computes as many as are needed
      position_offset=config['pad_token_id'] + 1,
      pre_norm=True,
      embedding_norm=False,
      logits_bias=False,
      decoder_prompt=(),
  )
