# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3 of text alone: a `families.Family`."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import decoder_only_modules as modules

NAME = 'Gemma 3'
DEFAULTS = {
    'gemma3_text': {
        'hidden_activation': 'gelu_pytorch_tanh',
        'head_dim': 256,
        'num_attention_heads': 8,
        'num_key_value_heads': 4,
        'rms_norm_eps': 1e-6,
        'query_pre_attn_scalar': 256,
        'sliding_window': 4096,
        'sliding_window_pattern': 6,
        'rope_theta': 1e6,
        'rope_local_base_freq': 1e4,
        'tie_word_embeddings': True,
        'eos_token_id': 1,
    },
}
_NORMS = {
    'post_self_attention_layer_norm/scale': 'post_attention_layernorm.weight',
    'pre_mlp_layer_norm/scale': 'pre_feedforward_layernorm.weight',
    'post_mlp_layer_norm/scale': 'post_feedforward_layernorm.weight',
}
tensor_names = decoders.decoder_map(
    NAME, decoders.LLAMA_LAYER | decoders.QK_NORMS | _NORMS
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> decoder_only.DecoderOnly:
  fields = gemma_fields(file, config, dtype, 'a Gemma 3')
  with llama.naming(file):
    return decoder_only.DecoderOnly(**fields)


def gemma_fields(
    file: epath.Path, config: Mapping[str, Any], dtype: Any, model: str
) -> dict[str, Any]:
  """Return the fields of the network of a config.json with Gemma 3's fields.

  `model` is what to pass instead of one that is refused.
  """
  sizes = ('hidden_size', 'sliding_window', 'sliding_window_pattern')
  # transformers reads a cap of attention and never applies it.
  allowed = {'attn_logit_softcapping': (None,)}
  families.check_config(file, config, sizes, allowed, model)
  read = lambda name: decoders.number(file, name, config[name])
  local = read('rope_local_base_freq'), None
  if config.get('rope_parameters') is not None:
    local = decoders.rope(file, config, 'sliding_attention')
  has_window = [True] * (config['sliding_window_pattern'] - 1) + [False]
  if config.get('layer_types') is not None:
    has_window = decoders.layer_types(file, config)
  kinds = {
      False: modules.LayerKind(
          None, *decoders.rope(file, config, 'full_attention')
      ),
      True: modules.LayerKind(config['sliding_window'], *local),
  }
  cap = config.get('final_logit_softcapping')
  return llama.llama_fields(
      file,
      {**config, 'hidden_act': config['hidden_activation']},
      dtype,
      model,
      kinds=[kinds[x] for x in has_window],
      norm=modules.RMS_PLUS_ONE,
      post_norms=True,
      qk_norm=True,
      query_scale=read('query_pre_attn_scalar') ** -0.5,
      embedding_scale=config['hidden_size'] ** 0.5,
      logits_cap=None if cap is None else read('final_logit_softcapping'),
      mlp_bias=False,
  )
