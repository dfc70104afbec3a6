# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoder, alone or on an encoder, in plain NumPy and float64: an oracle.

It computes a text position by position, head by head, without a cache, and
shares no code with the package.
"""

import math
from typing import Any

import numpy as np

from speculative_t5x.networks import config as config_lib


def encode(
    config: config_lib.Stack, params: Any, tokens: list[int]
) -> np.ndarray:
  """Return the output of T5Gemma's encoder, [length, embed] float64."""
  encoder = params['encoder']
  # T5Gemma 2 has one embedding.
  embedder = encoder.get('token_embedder', params['decoder']['token_embedder'])
  x = _embed(config, embedder, tokens)
  for i in range(config.num_layers):
    layer = encoder[f'layers_{i}']
    y = _norm(config, layer['pre_attention_layer_norm'], x)
    y = _attention(
        config, encoder, layer['attention'], y, config.kind(i), is_causal=False
    )
    x = x + _norm(config, layer['post_attention_layer_norm'], y)
    y = _norm(config, layer['pre_mlp_layer_norm'], x)
    y = _mlp(config, layer['mlp'], y)
    x = x + _norm(config, layer['post_mlp_layer_norm'], y)
  return _norm(config, encoder['encoder_norm'], x)


def logits(
    config: config_lib.Stack,
    params: Any,
    tokens: list[int],
    features: np.ndarray | None = None,
    prefix: int = 0,
) -> np.ndarray:
  """Return the logits after each token, [length, vocab] float64.

  The features are those of `encode`; None for a decoder alone. The first
  tokens, as many as `prefix`, attend to each other.
  """
  decoder = params['decoder']
  x = _embed(config, decoder['token_embedder'], tokens)
  if config.positions == 'learned':
    x = x + _array(decoder['position_embedder']['embedding'])[: len(tokens)]
  for i in range(config.num_layers):
    layer = decoder[f'layers_{i}']
    y = _norm(config, layer['pre_self_attention_layer_norm'], x)
    of_layer = layer['self_attention'], y, config.kind(i)
    merged = features if config.merged_attention else None
    y = _attention(config, decoder, *of_layer, prefix=prefix, merged=merged)
    if config.post_norms:
      y = _norm(config, layer['post_self_attention_layer_norm'], y)
    x = x + y
    if features is not None and merged is None:
      y = _norm(config, layer['pre_cross_attention_layer_norm'], x)
      cross = layer['encoder_decoder_attention']
      y = _attention(config, decoder, cross, y, config.kind(i), features)
      x = x + _norm(config, layer['post_cross_attention_layer_norm'], y)
    y = _norm(config, layer['pre_mlp_layer_norm'], x)
    y = _mlp(config, layer['mlp'], y)
    if config.post_norms:
      y = _norm(config, layer['post_mlp_layer_norm'], y)
    x = x + y
  x = _norm(config, decoder['decoder_norm'], x)
  if config.logits_via_embedding:
    found = x @ _array(decoder['token_embedder']['embedding']).T
  else:
    found = x @ _array(decoder['logits_dense']['kernel'])
  return _cap(found * config.logits_scale, config.logits_cap)


def _array(x) -> np.ndarray:
  return np.asarray(x, np.float64)


def _embed(config, params, tokens: list[int]) -> np.ndarray:
  rows = []
  for token in tokens:
    if token == config.unscaled_id:
      rows.append(_array(params['unscaled']))
    else:
      rows.append(_array(params['embedding'][token]) * config.embedding_scale)
  return np.stack(rows)


def _cap(x: np.ndarray, cap: float | None) -> np.ndarray:
  return x if cap is None else cap * np.tanh(x / cap)


def _norm(config, params, x):
  scale = _array(params['scale'])
  if config.norm == 'layer':
    x = x - x.mean(-1, keepdims=True)
  x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_eps)
  if config.norm == 'rms_plus_one':
    scale = 1 + scale
  return x * scale + _array(params.get('bias', 0.0))


def _project(params, x):
  return x @ _array(params['kernel']) + _array(params.get('bias', 0.0))


def _mlp(config, params, x):
  activations = {
      'relu': lambda x: np.maximum(x, 0),
      'gelu': lambda x: x / 2 * (
          1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
      ),
      'silu': lambda x: x / (1 + np.exp(-x)),
      'linear': lambda x: x,
  }
  names = [name for name in sorted(params) if name != 'wo']
  hidden = 1.0
  for name, activation in zip(names, config.mlp_activations, strict=True):
    hidden = hidden * activations[activation](_project(params[name], x))
  return _project(params['wo'], hidden)


def _attention(
    config,
    decoder,
    params,
    x,
    kind,
    features=None,
    is_causal=True,
    prefix=0,
    merged=None,
):
  length, dim = len(x), config.head_dim
  read = x if features is None else features
  if merged is not None:
    read = np.concatenate([x, merged])
  query, key, value = (
      _project(params[name], y).reshape(len(y), -1, dim)
      for name, y in (('query', x), ('key', read), ('value', read))
  )
  if config.qk_norm:
    query = _norm(config, params['query_norm'], query)
    key = _norm(config, params['key_norm'], key)
  if config.positions == 'rope' and features is None:
    query = _rotate(query, kind)
    key = np.concatenate([_rotate(key[:length], kind), key[length:]])
  heads = []
  for head in range(config.num_heads):
    own = head * config.num_kv_heads // config.num_heads
    scores = query[:, head] @ key[:, own].T * config.query_scale
    scores = _cap(scores, config.attention_cap)
    for i in range(length):
      for j in range(len(read)):
        if config.positions == 'relative':
          table = _array(decoder['relpos_bias']['rel_embedding'])
          scores[i, j] += table[head, _bucket(i - j)]
        is_far = kind.window is not None and not (
            -kind.ahead <= i - j < kind.window
        )
        is_later = is_causal and j > i and j >= prefix
        is_own = features is None and j < length
        if is_own and (is_far or is_later):
          scores[i, j] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    heads.append(weights @ value[:, own])
  return _project(params['out'], np.concatenate(heads, axis=-1))


def _bucket(distance: int) -> int:
  """Return T5's bucket of a distance to an earlier key."""
  distance = max(distance, 0)
  if distance < 16:
    return distance
  return min(31, 16 + int(math.log(distance / 16) / math.log(8) * 16))


def _rotate(x: np.ndarray, kind) -> np.ndarray:
  """Rotate [length, heads, head_dim] as complex numbers."""
  length, _, dim = x.shape
  pairs = x[..., : dim // 2] + 1j * x[..., dim // 2 :]
  for lane in range(dim // 2):
    frequency = kind.theta ** (-2 * lane / dim)
    scaling = kind.scaling
    if scaling is not None:
      wavelength = 2 * math.pi / frequency
      context = scaling.original_positions
      if context is None or wavelength > context / scaling.low_turns:
        frequency /= scaling.factor
      elif wavelength > context / scaling.high_turns:
        share = context / wavelength - scaling.low_turns
        share /= scaling.high_turns - scaling.low_turns
        frequency *= (1 - share) / scaling.factor + share
    angles = np.arange(length) * frequency
    pairs[..., lane] *= np.exp(1j * angles)[:, None]
  return np.concatenate([pairs.real, pairs.imag], axis=-1)
