# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes Hugging Face folders of decoders alone, for tests.

Names and fields are spelled out here, and nothing of the package's own maps is
used. The networks are those of `tiny_decoders`, as far as a family has them.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np
import tokenizers
from tokenizers import models
from tokenizers import pre_tokenizers
from tokenizers import processors

from speculative_t5x.networks import decoder_only
from tests import checkpoints_by_hand as by_hand
from tests import tiny_decoders

# A head of GPT-2 has the width over the number of heads.
CONFIGS = {
    'gpt2': dataclasses.replace(
        tiny_decoders.CONFIGS['gpt2'], head_dim=6, query_scale=6**-0.5
    ),
    'llama': tiny_decoders.CONFIGS['llama'],
    'qwen3': tiny_decoders.CONFIGS['qwen3'],
    'gemma3': dataclasses.replace(
        tiny_decoders.CONFIGS['gemma3'], attention_cap=None
    ),
}
_LIKE_LLAMA = {
    'hidden_size': 24,
    'intermediate_size': 40,
    'num_attention_heads': 4,
    'num_hidden_layers': 3,
    'num_key_value_heads': 2,
    'head_dim': 10,
    'rms_norm_eps': 1e-6,
    'vocab_size': 96,
}
FIELDS: dict[str, dict[str, Any]] = {
    'gpt2': {
        'model_type': 'gpt2', 'n_embd': 24, 'n_head': 4, 'n_layer': 3,
        'n_positions': 128, 'n_inner': 40, 'vocab_size': 96, 'eos_token_id': 1,
        'bos_token_id': 1,
    },
    'llama': {
        'model_type': 'llama', **_LIKE_LLAMA, 'rope_theta': 500000.0,
        'rope_scaling': {
            'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0,
            'high_freq_factor': 4.0, 'original_max_position_embeddings': 32,
        },
        'bos_token_id': 2, 'eos_token_id': [1, 3],
    },
    'qwen3': {
        'model_type': 'qwen3', **_LIKE_LLAMA, 'tie_word_embeddings': True,
        'rope_theta': 1000000, 'bos_token_id': None, 'eos_token_id': 1,
        'pad_token_id': 3, 'use_sliding_window': False, 'sliding_window': None,
    },
    'gemma3': {
        'model_type': 'gemma3_text', **_LIKE_LLAMA, 'num_key_value_heads': 1,
        'query_pre_attn_scalar': 14, 'final_logit_softcapping': 12.0,
        'sliding_window': 8, 'rope_theta': 1000000.0,
        'rope_local_base_freq': 10000.0,
        'rope_scaling': {'rope_type': 'linear', 'factor': 8.0},
        'layer_types': [
            'sliding_attention', 'sliding_attention', 'full_attention',
        ],
        'bos_token_id': 2, 'eos_token_id': [1, 3], 'pad_token_id': 0,
    },
}  # fmt: skip


GATED_MLP = (
    (r'mlp/wi_0/kernel', 'mlp.gate_proj.weight'),
    (r'mlp/wi_1/kernel', 'mlp.up_proj.weight'),
    (r'mlp/wo/kernel', 'mlp.down_proj.weight'),
)
_LLAMA = (
    (r'^decoder/token_embedder/embedding', 'model.embed_tokens.weight'),
    (r'^decoder/decoder_norm/scale', 'model.norm.weight'),
    (r'^decoder/logits_dense/kernel', 'lm_head.weight'),
    (r'^decoder/layers_(\d+)/', r'model.layers.\1.'),
    (r'self_attention/([qk])\w+_norm/scale', r'self_attn.\1_norm.weight'),
    (r'self_attention/([qkvo])\w+/kernel', r'self_attn.\1_proj.weight'),
    *GATED_MLP,
    (r'pre_self_attention_layer_norm/scale', 'input_layernorm.weight'),
)
_NORMS = ((r'pre_mlp_layer_norm/scale', 'post_attention_layernorm.weight'),)
_POST_NORMS = (
    (
        r'post_self_attention_layer_norm/scale',
        'post_attention_layernorm.weight',
    ),
    (r'(pre|post)_mlp_layer_norm/scale', r'\1_feedforward_layernorm.weight'),
)


def tensors(name: str, params: Any) -> dict[str, np.ndarray]:
  """Return the tensors of a family's folder with given parameters."""
  config = CONFIGS[name]
  if name == 'gpt2':
    return _gpt2(config, params['decoder'])
  norms = _POST_NORMS if config.post_norms else _NORMS
  return by_hand.renamed(params, *_LLAMA, *norms)


def _gpt2(config: decoder_only.DecoderOnly, decoder: Any) -> dict[str, Any]:
  found = {
      'transformer.wte.weight': decoder['token_embedder']['embedding'],
      'transformer.wpe.weight': decoder['position_embedder']['embedding'],
      'transformer.ln_f.weight': decoder['decoder_norm']['scale'],
      'transformer.ln_f.bias': decoder['decoder_norm']['bias'],
  }
  for i in range(config.num_layers):
    layer, block = decoder[f'layers_{i}'], f'transformer.h.{i}'
    own, mlp = layer['self_attention'], layer['mlp']
    for theirs, kind in (('weight', 'kernel'), ('bias', 'bias')):
      found[f'{block}.attn.c_attn.{theirs}'] = np.concatenate(
          [own[x][kind] for x in ('query', 'key', 'value')], axis=-1
      )
      found[f'{block}.attn.c_proj.{theirs}'] = own['out'][kind]
      found[f'{block}.mlp.c_fc.{theirs}'] = mlp['wi'][kind]
      found[f'{block}.mlp.c_proj.{theirs}'] = mlp['wo'][kind]
    for theirs, kind in (('weight', 'scale'), ('bias', 'bias')):
      first, second = 'pre_self_attention_layer_norm', 'pre_mlp_layer_norm'
      found[f'{block}.ln_1.{theirs}'] = layer[first][kind]
      found[f'{block}.ln_2.{theirs}'] = layer[second][kind]
    found[f'{block}.attn.bias'] = np.tril(np.ones((1, 1, 128, 128)))
  return {k: np.ascontiguousarray(x, np.float32) for k, x in found.items()}


def write(folder: pathlib.Path, name: str, seed: int = 0, **overrides):
  """Write a folder in two shards, with a tokenizer of words."""
  params = tiny_decoders.params(CONFIGS[name], seed)
  by_hand.write_hugging_face(
      folder, FIELDS[name] | overrides, tensors(name, params), shards=2
  )
  begin = '<s>' if name in ('llama', 'gemma3') else None
  write_tokenizer(folder / 'tokenizer.json', begin)
  return folder


def write_tokenizer(file: pathlib.Path, begin: str | None) -> None:
  """Write a tokenizer of 90 words w4 to w89, which may begin a text."""
  special = ['w0', '<|endoftext|>', '<s>', '<|end|>']
  words = {x: i for i, x in enumerate(special)}
  words |= {f'w{i}': i for i in range(4, 90)}
  tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token='w0'))
  tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
  tokenizer.add_special_tokens(special[1:])
  if begin is not None:
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{begin} $A', special_tokens=[(begin, words[begin])]
    )
  file.write_text(tokenizer.to_str())

