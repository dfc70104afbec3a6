# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3 of text alone: a family."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only

NAME = 'Gemma 3'
# Of all Gemmas here.
LIKE_GEMMA = {
    **families.with_defaults(
        llama.LIKE_LLAMA,
        vocab_size=262_208,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=131_072,
        tie_word_embeddings=True,
        bos_token_id=2,
        eos_token_id=1,
    ),
    'hidden_activation': llama.HIDDEN_ACT._replace(default='gelu_pytorch_tanh'),
    'query_pre_attn_scalar': families.Field(256, families.NUMBER),
    'sliding_window': families.Field(4096, families.SIZE),
    'final_logit_softcapping': families.Field(
        None, families.NUMBER_OR_NONE, ours='logits_cap'
    ),
    # Which Gemma 3 reads and never applies.
    **families.absent(None, 'attn_logit_softcapping'),
    **families.unchecked(layer_types=None, pad_token_id=0),
}
FIELDS = {
    'gemma3_text': {
        **families.with_defaults(LIKE_GEMMA, rope_theta=1e6),
        'sliding_window_pattern': families.Field(6, families.SIZE),
        **families.unchecked(rope_local_base_freq=1e4),
        **families.absent(False, 'use_bidirectional_attention'),
    },
}
# Of RoPE, whose parameters each type of layer has for itself.
_FLAT = families.absent(None, 'rope_type', 'rope_theta')
tensor_names = tensor_maps.TensorMap(
    NAME,
    (
        *llama.TENSORS,
        (r'/post_attention_layernorm\.', '/post_self_attention_layer_norm.'),
        (r'/(pre|post)_feedforward_layernorm\.', r'/\1_mlp_layer_norm.'),
    ),
).sources


def of_config(file, config) -> decoder_only.DecoderOnly:
  return decoder_only.DecoderOnly(**gemma3_fields(file, config))


def gemma3_fields(
    file: epath.Path, config: Mapping[str, Any]
) -> dict[str, Any]:
  """Return the fields of the network of a complete config.json of Gemma 3."""
  with errors.reading(file):
    parameters = config['rope_parameters'] or {}
    families.complete(file, parameters, _FLAT, NAME)
    full, local = (
        dict(parameters.get(name) or {})
        for name in ('full_attention', 'sliding_attention')
    )
    full |= config['rope_scaling'] or {}  # it is not for a window
  by_turns = [True] * (config['sliding_window_pattern'] - 1) + [False]
  kinds = {
      False: config_lib.LayerKind(None, *llama.rope(file, config, full)),
      True: config_lib.LayerKind(
          config['sliding_window'],
          *llama.rope(file, config, local, 'rope_local_base_freq'),
      ),
  }
  return gemma_fields(FIELDS['gemma3_text'], config) | dict(
      kinds=llama.layer_kinds(file, config, by_turns, kinds), qk_norm=True
  )


def gemma_fields(
    fields: families.Fields, config: Mapping[str, Any]
) -> dict[str, Any]:
  """Return what all Gemmas state alike, as fields of `config_lib.Stack`."""
  return families.sizes(fields, config) | dict(
      norm=config_lib.RMS_PLUS_ONE,
      post_norms=True,
      query_scale=config['query_pre_attn_scalar'] ** -0.5,
      embedding_scale=config['hidden_size'] ** 0.5,
  )
