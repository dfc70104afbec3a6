# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes Hugging Face folders of T5Gemma and T5Gemma 2, for tests.

Names and fields are spelled out here, and nothing of the package's own maps is
used. The networks are those of `tiny_decoders`.
"""

import copy

import numpy as np

from speculative_t5x.speculation import contracts
from tests import checkpoints_by_hand as by_hand
from tests import decoders_by_hand
from tests import tiny_decoders

CONFIGS = {
    't5gemma': tiny_decoders.T5GEMMA,
    't5gemma2': tiny_decoders.T5GEMMA_2,
}
_BOTH = {
    'vocab_size': 96,
    'sliding_window': 8,
    'query_pre_attn_scalar': 14,
    'attn_logit_softcapping': 5.0,
    'final_logit_softcapping': 12.0,
}
_FIRST = {
    'model_type': 't5gemma',
    'encoder': _BOTH | {
        'hidden_size': 32, 'num_hidden_layers': 4, 'num_attention_heads': 3,
        'num_key_value_heads': 1, 'head_dim': 8, 'intermediate_size': 28,
    },
    'decoder': _BOTH | {
        'hidden_size': 24, 'num_hidden_layers': 3, 'num_attention_heads': 4,
        'num_key_value_heads': 2, 'head_dim': 10, 'intermediate_size': 40,
    },
    'bos_token_id': 2,
    'eos_token_id': [1, 3],
    'pad_token_id': 0,
}  # fmt: skip


# Of T5Gemma 2, whose fields of images are not read.
_BOTH_2 = {
    'vocab_size': 96, 'hidden_size': 24, 'num_key_value_heads': 2,
    'head_dim': 10, 'query_pre_attn_scalar': 14, 'sliding_window': 8,
    'final_logit_softcapping': 12.0,
    'rope_parameters': {
        'sliding_attention': {'rope_type': 'default', 'rope_theta': 1e4},
        'full_attention': {
            'rope_type': 'linear', 'factor': 8.0, 'rope_theta': 1e6,
        },
    },
}
_SECOND = {
    'model_type': 't5gemma2',
    'encoder': {
        'text_config': _BOTH_2 | {
            'num_attention_heads': 2, 'num_hidden_layers': 4,
            'intermediate_size': 28,
            'layer_types': ['sliding_attention', 'full_attention'] * 2,
        },
        'vision_config': {
            'model_type': 'siglip_vision_model', 'hidden_size': 8,
            'intermediate_size': 8, 'num_hidden_layers': 1,
            'num_attention_heads': 1, 'image_size': 8, 'patch_size': 4,
        },
        'mm_tokens_per_image': 4,
        'eoi_token_index': 90,
    },
    'decoder': _BOTH_2 | {
        'num_attention_heads': 4, 'num_hidden_layers': 3,
        'intermediate_size': 40, 'sliding_window_pattern': 3,
        'eos_token_id': [1, 3],
    },
    'image_token_index': 91,
    'eos_token_id': [1, 3],
}  # fmt: skip
SPECIAL_IDS = contracts.SpecialIds(1, 0, 2, (3,))
FIELDS = {'t5gemma': _FIRST, 't5gemma2': _SECOND}
_IMAGES = 'model.encoder.vision_tower.post_layernorm.bias'


_NAMES = (
    (r'^decoder/logits_dense/kernel', 'lm_head.out_proj.weight'),
    (r'/token_embedder/embedding', '.embed_tokens.weight'),
    (r'/token_embedder/unscaled', '.embed_tokens.eoi_embedding'),
    (r'/(en|de)coder_norm/scale', '.norm.weight'),
    (r'/layers_(\d+)/', r'.layers.\1.'),
    (r'mlp_layer_norm/scale', 'feedforward_layernorm.weight'),
    (r'cross_attention_layer_norm/scale', 'cross_attn_layernorm.weight'),
    (r'(self_)?attention_layer_norm/scale', 'self_attn_layernorm.weight'),
    (r'encoder_decoder_attention/', 'cross_attn.'),
    (r'(self_)?attention/', 'self_attn.'),
    (r'attn\.([qk])\w+_norm/scale', r'attn.\1_norm.weight'),
    (r'attn\.([qkvo])\w+/kernel', r'attn.\1_proj.weight'),
    *decoders_by_hand.GATED_MLP,
    (r'^decoder', 'model.decoder'),
)


def tensors(params, of_encoder='model.encoder'):
  """Return the tensors of a folder with given parameters."""
  return by_hand.renamed(params, *_NAMES, (r'^encoder', of_encoder))


def tensors_2(params, of_encoder='model.encoder.text_model'):
  """Return those of T5Gemma 2, with tensors that are not read."""
  found = tensors(params, of_encoder)
  for name in ('embed_tokens.weight', 'embed_tokens.eoi_embedding'):
    found[f'{of_encoder}.{name}'] = found.pop(f'model.decoder.{name}')
  return found | {_IMAGES: np.zeros(8, np.float32)}


def write(folder, name, seed=0, **changes):
  """Write a folder; a dict changes the fields of a stack."""
  fields = copy.deepcopy(FIELDS[name])
  for field, value in changes.items():
    if isinstance(value, dict):
      value = fields[field] | value
    fields[field] = value
  params = tiny_decoders.params(CONFIGS[name], seed)
  found = (tensors_2 if name == 't5gemma2' else tensors)(params)
  by_hand.write_hugging_face(folder, fields, found, shards=2)
  decoders_by_hand.write_tokenizer(folder / 'tokenizer.json', '<s>')
  return folder
