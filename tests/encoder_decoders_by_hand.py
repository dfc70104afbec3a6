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


def tensors(name: str, params: Any) -> dict[str, np.ndarray]:
  """Return the tensors of a family's folder with given parameters."""
  config = tiny_networks.CONFIGS[name]
  found = {'model.shared.weight': params['token_embedder']['embedding']}
  for stack in ('encoder', 'decoder'):
    _put_stack(found, f'model.{stack}', params[stack])
  if config.logits_bias:
    found['final_logits_bias'] = params['decoder']['logits_bias']['bias']
  return {
      key: np.ascontiguousarray(x, np.float32) for key, x in found.items()
  }


def _put_stack(found: dict[str, Any], prefix: str, stack: Any) -> None:
  embedder = stack.get('embedder', {})
  if 'position_embedder' in embedder:
    table = embedder['position_embedder']['embedding']
    found[f'{prefix}.embed_positions.weight'] = table
  if 'embedding_layer_norm' in embedder:
    norm = embedder['embedding_layer_norm']
    _put_norm(found, f'{prefix}.layernorm_embedding', norm)
  for last in ('encoder_norm', 'decoder_norm'):
    if last in stack:
      _put_norm(found, f'{prefix}.layer_norm', stack[last])
  for i in range(sum(x.startswith('layers_') for x in stack)):
    layer, block = stack[f'layers_{i}'], f'{prefix}.layers.{i}'
    blocks = {'self_attn': 'attention'}
    norms = {'self_attn': 'attention', 'final': 'mlp'}
    if 'self_attention' in layer:
      blocks = {
          'self_attn': 'self_attention',
          'encoder_attn': 'encoder_decoder_attention',
      }
      norms = {
          'self_attn': 'self_attention',
          'encoder_attn': 'cross_attention',
          'final': 'mlp',
      }
    linear = {'fc1': layer['mlp']['wi'], 'fc2': layer['mlp']['wo']}
    for theirs, ours in blocks.items():
      for short, long in (
          ('q', 'query'), ('k', 'key'), ('v', 'value'), ('out', 'out')
      ):  # fmt: skip
        linear[f'{theirs}.{short}_proj'] = layer[ours][long]
    for theirs, ours in linear.items():
      found[f'{block}.{theirs}.weight'] = ours['kernel'].T
      found[f'{block}.{theirs}.bias'] = ours['bias']
    for theirs, ours in norms.items():
      norm = layer[f'{ours}_layer_norm']
      _put_norm(found, f'{block}.{theirs}_layer_norm', norm)


def _put_norm(found: dict[str, Any], name: str, norm: Any) -> None:
  found[f'{name}.weight'], found[f'{name}.bias'] = norm['scale'], norm['bias']


def write(folder: pathlib.Path, name: str, seed: int = 0, **overrides):
  """Write a folder in two shards, with a tokenizer of words."""
  params = tiny_decoders.params(tiny_networks.CONFIGS[name], seed)
  by_hand.write_hugging_face(
      folder, FIELDS[name] | overrides, tensors(name, params), shards=2
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
