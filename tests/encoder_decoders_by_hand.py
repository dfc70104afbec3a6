# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes Hugging Face folders of BART and its like, for tests.

Names and fields are spelled out here, and nothing of the package's own maps is
used. The networks are those of `tiny_encoder_decoders`.
"""

import pathlib
from typing import Any

import numpy as np
import tokenizers
from tokenizers import models
from tokenizers import pre_tokenizers
from tokenizers import processors

from tests import checkpoints_by_hand as by_hand
from tests import tiny_decoders
from tests import tiny_encoder_decoders as tiny_networks

_SIZES = {
    'd_model': 24, 'encoder_attention_heads': 4, 'decoder_attention_heads': 4,
    'encoder_ffn_dim': 40, 'decoder_ffn_dim': 40, 'encoder_layers': 2,
    'decoder_layers': 3, 'vocab_size': 96,
}  # fmt: skip
FIELDS: dict[str, dict[str, Any]] = {
    'bart': {
        'model_type': 'bart', **_SIZES, 'max_position_embeddings': 72,
        'activation_function': 'gelu', 'scale_embedding': False,
        'bos_token_id': 0, 'pad_token_id': 1, 'eos_token_id': 2,
        'decoder_start_token_id': 2, 'forced_bos_token_id': 0,
        'forced_eos_token_id': 2,
    },
    'marian': {
        'model_type': 'marian', **_SIZES, 'max_position_embeddings': 80,
        'activation_function': 'swish', 'scale_embedding': True,
        'pad_token_id': 95, 'eos_token_id': 0, 'decoder_start_token_id': 95,
        'forced_eos_token_id': 0, 'bad_words_ids': [[95]],
    },
    'nllb': {
        'model_type': 'm2m_100', **_SIZES, 'max_position_embeddings': 72,
        'activation_function': 'relu', 'scale_embedding': True,
        'bos_token_id': 0, 'pad_token_id': 1, 'eos_token_id': 2,
        'decoder_start_token_id': 2, 'forced_bos_token_id': 91,
    },
}  # fmt: skip
# What a text's ids stand between: the beginning, if any, and the end.
ENDS = {'bart': ('<s>', '</s>'), 'nllb': ('eng_Latn', '</s>')}


_NAMES = (
    (r'^token_embedder/embedding', 'model.shared.weight'),
    (r'^decoder/logits_bias/bias', 'final_logits_bias'),
    (r'^(en|de)coder/', r'model.\1coder.'),
    (r'embedder/position_embedder/embedding', 'embed_positions.weight'),
    (r'embedder/embedding_layer_norm/', 'layernorm_embedding/'),
    (r'(en|de)coder_norm/', 'layer_norm/'),
    (r'layers_(\d+)/', r'layers.\1.'),
    (r'mlp_layer_norm', 'final_layer_norm'),
    (r'cross_attention_layer_norm', 'encoder_attn_layer_norm'),
    (r'(self_)?attention_layer_norm', 'self_attn_layer_norm'),
    (r'encoder_decoder_attention/', 'encoder_attn.'),
    (r'(self_)?attention/', 'self_attn.'),
    (r'attn\.(out|[qkv])\w*/', r'attn.\1_proj/'),
    (r'mlp/wi/', 'fc1/'),
    (r'mlp/wo/', 'fc2/'),
    (r'/(kernel|scale)$', '.weight'),
    (r'/bias$', '.bias'),
)


def tensors(params: Any) -> dict[str, np.ndarray]:
  """Return the tensors of a family's folder with given parameters."""
  return by_hand.renamed(params, *_NAMES)


def write(folder: pathlib.Path, name: str, seed: int = 0, **overrides):
  """Write a folder in two shards, with a tokenizer of words."""
  params = tiny_decoders.params(tiny_networks.CONFIGS[name], seed)
  by_hand.write_hugging_face(
      folder, FIELDS[name] | overrides, tensors(params), shards=2
  )
  if name in ENDS:
    write_tokenizer(folder / 'tokenizer.json', *ENDS[name])
  return folder


def write_tokenizer(file: pathlib.Path, *ends: str) -> None:
  """Write a tokenizer of words w4 to w87, and of languages from id 88 on."""
  special = ['<s>', '<pad>', '</s>', '<unk>']
  codes = ['eng_Latn', 'ace_Latn', 'fra_Latn', 'deu_Latn']
  pieces = [*special, *(f'w{i}' for i in range(4, 88)), *codes]
  words = {x: i for i, x in enumerate(pieces)}
  tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token='<unk>'))
  tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
  tokenizer.add_special_tokens([*special, *codes])
  begin, end = ends
  tokenizer.post_processor = processors.TemplateProcessing(
      single=f'{begin} $A {end}',
      special_tokens=[(x, words[x]) for x in ends],
  )
  file.write_text(tokenizer.to_str())
