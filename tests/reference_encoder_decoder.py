# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART and its like in plain NumPy and float64, as an oracle for tests.

It computes all positions at once, head by head, without a cache, and shares no
code with the package.
"""

import math
from typing import Any

import numpy as np

from speculative_t5x import networks


def logits(
    config: networks.EncoderDecoder,
    params: Any,
    inputs: list[int],
    outputs: list[int],
) -> np.ndarray:
  """Return the logits of each token of an output, and of one more.

  They are [length + 1, vocab] float64.
  """
  encoded = _stack(config, params, 'encoder', inputs, None)
  fed = [*config.decoder_prompt, *outputs]
  x = _stack(config, params, 'decoder', fed, encoded)
  x = x[len(config.decoder_prompt) - 1 :]
  found = x @ _array(params['token_embedder']['embedding']).T
  if config.logits_bias:
    found = found + _array(params['decoder']['logits_bias']['bias'])
  return found


def _array(x) -> np.ndarray:
  return np.asarray(x, np.float64)


def _stack(config, params, name, tokens, encoded):
  embedding = _array(params['token_embedder']['embedding'])
  stack = params[name]
  x = embedding[tokens] * config.embedding_scale
  if config.positions == 'learned':
    table = _array(stack['embedder']['position_embedder']['embedding'])
    x = x + table[2 : 2 + len(tokens)]
  else:
    x = x + np.stack([_sinusoids(config, i) for i in range(len(tokens))])
  if config.embedding_norm:
    x = _norm(stack['embedder']['embedding_layer_norm'], x)
  if encoded is None:
    blocks = {'attention': 'attention', 'mlp': 'mlp'}
  else:
    blocks = {
        'self_attention': 'self_attention',
        'encoder_decoder_attention': 'cross_attention',
        'mlp': 'mlp',
    }
  for i in range(getattr(config, f'num_{name}_layers')):
    layer = stack[f'layers_{i}']
    for block, norm in blocks.items():
      norm = layer[f'{norm}_layer_norm']
      y = _norm(norm, x) if config.pre_norm else x
      if block == 'mlp':
        y = _mlp(config, layer[block], y)
      else:
        read = encoded if block == 'encoder_decoder_attention' else y
        is_causal = block == 'self_attention'
        y = _attention(config, layer[block], y, read, is_causal)
      x = x + y if config.pre_norm else _norm(norm, x + y)
  return _norm(stack[f'{name}_norm'], x) if config.pre_norm else x


def _sinusoids(config, position):
  half = config.emb_dim // 2
  count = half if config.positions == 'sinusoid' else half - 1
  place = position + config.position_offset
  angles = [place * 10_000 ** (-lane / count) for lane in range(half)]
  return [*map(math.sin, angles), *map(math.cos, angles)]


def _norm(params, x):
  x = x - x.mean(-1, keepdims=True)
  x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
  return x * _array(params['scale']) + _array(params['bias'])


def _project(params, x):
  return x @ _array(params['kernel']) + _array(params['bias'])


def _mlp(config, params, x):
  activation = {
      'relu': lambda x: np.maximum(x, 0),
      'gelu_exact': lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / 2**0.5)),
      'silu': lambda x: x / (1 + np.exp(-x)),
  }[config.mlp_activations[0]]
  return _project(params['wo'], activation(_project(params['wi'], x)))


def _attention(config, params, x, read, is_causal):
  heads = config.num_heads
  width = config.emb_dim // heads
  query = _project(params['query'], x).reshape(-1, heads, width)
  key = _project(params['key'], read).reshape(-1, heads, width)
  value = _project(params['value'], read).reshape(-1, heads, width)
  found = []
  for head in range(heads):
    scores = query[:, head] @ key[:, head].T / math.sqrt(width)
    if is_causal:
      later = np.triu(np.ones(scores.shape, bool), 1)
      scores = np.where(later, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found.append(weights @ value[:, head])
  return _project(params['out'], np.concatenate(found, axis=-1))
