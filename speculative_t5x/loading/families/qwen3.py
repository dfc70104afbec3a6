# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen 3 without experts: a `families.Family`."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only

NAME = 'Qwen 3'
FIELDS = {
    'qwen3': {
        **families.with_defaults(
            llama.LIKE_LLAMA,
            vocab_size=151_936,
            intermediate_size=22_016,
            head_dim=128,
            max_position_embeddings=32_768,
            bos_token_id=None,
            eos_token_id=None,
        ),
        'hidden_act': families.Field('silu', tuple(llama.ACTIVATIONS)),
        'use_sliding_window': families.Field(False, families.FLAG),
        'sliding_window': families.Field(
            4096,
            lambda x: families.SIZE if x['use_sliding_window'] else None,
        ),
        'max_window_layers': families.Field(28, families.ID),
        'layer_types': families.Field(None),
    },
}
_MOST_LAYERS = 1024  # more than any Qwen 3 has
tensor_names = llama.decoder_map(
    NAME, llama.LLAMA_LAYER | llama.QK_NORMS
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> decoder_only.DecoderOnly:
  if config['use_sliding_window']:
    # A damaged file may state any number.
    layers = range(min(config['num_hidden_layers'], _MOST_LAYERS))
    by_turns = [i >= config['max_window_layers'] for i in layers]
  else:
    by_turns, config = [False], {**config, 'sliding_window': None}
  rope = llama.rope(file, config)
  kinds = {
      has_window: config_lib.LayerKind(
          config['sliding_window'] if has_window else None, *rope
      )
      for has_window in (False, True)
  }
  return decoder_only.DecoderOnly(
      **llama.network_fields(config),
      kinds=llama.layer_kinds(file, config, by_turns, kinds),
      qk_norm=True,
  )
