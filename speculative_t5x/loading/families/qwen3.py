# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen 3 without experts: a `families.Family`."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import decoder_only

NAME = 'Qwen 3'
DEFAULTS = {
    'qwen3': {
        'hidden_act': 'silu',
        'head_dim': 128,
        'rms_norm_eps': 1e-6,
        'tie_word_embeddings': False,
        'use_sliding_window': False,
        'sliding_window': 4096,
        'max_window_layers': 28,
    },
}
_MOST_LAYERS = 1024  # more than any Qwen 3 has
tensor_names = decoders.decoder_map(
    NAME, decoders.LLAMA_LAYER | decoders.QK_NORMS
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> decoder_only.DecoderOnly:
  full = decoder_only.LayerKind(None, *decoders.rope(file, config))
  kinds = [full]
  if config['use_sliding_window']:
    checked = ('sliding_window', 'max_window_layers', 'num_hidden_layers')
    families.check_config(file, config, checked, {}, 'a Qwen 3')
    local = decoder_only.LayerKind(
        config['sliding_window'], full.theta, full.scaling
    )
    # A damaged file may state any number.
    layers = range(min(config['num_hidden_layers'], _MOST_LAYERS))
    has_window = [i >= config['max_window_layers'] for i in layers]
    if config.get('layer_types') is not None:
      has_window = decoders.layer_types(file, config)
    kinds = [local if x else full for x in has_window]
  return llama.like_llama(
      file, config, dtype, 'a Qwen 3', kinds=kinds, qk_norm=True, mlp_bias=False
  )
