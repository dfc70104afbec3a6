# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All networks in plain NumPy and float64: an oracle.

It computes a text position by position, head by head, without a cache, and
shares no code with the package.
"""

import math
from typing import Any

import numpy as np


def logits(
    network: Any, params: Any, inputs: list[int], output: list[int]
) -> np.ndarray:
  """Return the logits of each token of an output, and of one more.

  They are [length + 1, vocab] float64.
  """
  config, encoded, prefix = network.decoder, None, 0
  if network.encoder is None:
    start = [] if network.start_token is None else [network.start_token]
    begin = [*start, *inputs]
    prefix = len(begin) * network.prefix_bidirectional
  else:
    encoded = encode(network, params, inputs)
    begin = list(network.decoder_prompt)
  embedder = _embedder(network, params, 'decoder')
  x = _stack(
      config, params, 'decoder', embedder, [*begin, *output], encoded, prefix
  )
  if config.logits_via_embedding:
    found = x @ _array(embedder['embedding']).T
  else:
    found = x @ _array(params['decoder']['logits_dense']['kernel'])
  found = _cap(found * config.logits_scale, config.logits_cap)
  if config.logits_bias:
    found = found + _array(params['decoder']['logits_bias']['bias'])
  return found[len(begin) - 1 :]


def encode(network: Any, params: Any, inputs: list[int]) -> np.ndarray:
  """Return the output of the encoder, [length, embed] float64."""
  embedder = _embedder(network, params, 'encoder')
  return _stack(network.encoder, params, 'encoder', embedder, inputs)


def _embedder(network, params, stack):
  if network.encoder is None or network.embedding_in == 'decoder':
    return params['decoder']['token_embedder']
  owner = params if network.embedding_in == 'both' else params[stack]
  return owner['token_embedder']


def _stack(config, params, name, embedder, tokens, encoded=None, prefix=0):
  """Return a stack's output; the first `prefix` tokens attend to each other."""
  stack, is_encoder = params[name], name == 'encoder'
  x = _embed(config, embedder, stack, tokens)
  own = 'attention' if is_encoder else 'self_attention'
  blocks = {own: own}
  if encoded is not None and not config.merged_attention:
    blocks['encoder_decoder_attention'] = 'cross_attention'
  blocks['mlp'] = 'mlp'
  before = '' if config.bart_form else 'pre_'
  for i in range(config.num_layers):
    layer, kind = stack[f'layers_{i}'], config.kind(i)
    for block, norm in blocks.items():
      before_norm = layer[f'{before}{norm}_layer_norm']
      y = x if config.sum_norms else _norm(config, before_norm, x)
      if block == 'mlp':
        y = _mlp(config, layer['mlp'], y)
      elif block == own:
        bias = _biases(config, stack, layer, len(x), is_encoder)
        sees = _sees(kind, len(x), is_encoder, prefix)
        merged = encoded if config.merged_attention else None
        y = _attention(config, layer[own], y, y, merged, bias, sees, kind)
      else:
        y = _attention(config, layer[block], y, encoded)
      if config.post_norms:
        y = _norm(config, layer[f'post_{norm}_layer_norm'], y)
      x = _norm(config, before_norm, x + y) if config.sum_norms else x + y
  return x if config.sum_norms else _norm(config, stack[f'{name}_norm'], x)


def _array(x) -> np.ndarray:
  return np.asarray(x, np.float64)


def _embed(config, embedder, stack, tokens):
  x = np.stack([
      _array(embedder['unscaled'])
      if token == config.unscaled_id
      else _array(embedder['embedding'][token]) * config.embedding_scale
      for token in tokens
  ])
  stack = stack.get('embedder', stack)  # of BART and its like
  places = config.position_offset + np.arange(len(tokens))
  if config.positions == 'learned':
    x = x + _array(stack['position_embedder']['embedding'])[places]
  elif config.positions in ('sinusoid', 'tensor2tensor'):
    half = config.emb_dim // 2
    count = half if config.positions == 'sinusoid' else half - 1
    angles = places[:, None] * 10_000 ** (-np.arange(half) / count)
    x = x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
  if config.embedding_norm:
    x = _norm(config, stack['embedding_layer_norm'], x)
  return x


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
      'gelu_exact': lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / 2**0.5)),
      'silu': lambda x: x / (1 + np.exp(-x)),
      'linear': lambda x: x,
  }
  names = [name for name in sorted(params) if name != 'wo']
  hidden = 1.0
  for name, activation in zip(names, config.mlp_activations, strict=True):
    hidden = hidden * activations[activation](_project(params[name], x))
  return _project(params['wo'], hidden)


def _sees(kind, length, is_encoder, prefix):
  """Return which positions see which, [length, length]."""
  sees = np.ones((length, length), bool)
  for i in range(length):
    for j in range(length):
      if kind.window is not None:
        sees[i, j] = -kind.ahead <= i - j < kind.window
      if not is_encoder and j > i and j >= prefix:
        sees[i, j] = False
  return sees


def _biases(config, stack, layer, length, is_encoder):
  """Return T5's biases, [heads, length, length]."""
  if config.positions != 'relative':
    return np.zeros((config.num_heads, length, length))
  owner = layer if config.bias_per_layer else stack
  table = _array(owner['relpos_bias']['rel_embedding'])
  return np.stack([
      table[:, [_bucket(i - j, is_encoder) for j in range(length)]]
      for i in range(length)
  ], axis=1)  # fmt: skip


def _bucket(distance: int, is_encoder: bool) -> int:
  """Return T5's bucket of a distance to an earlier key."""
  count = 16 if is_encoder else 32
  first = 16 * (is_encoder and distance < 0)
  distance = abs(distance) if is_encoder else max(distance, 0)
  near = count // 2
  if distance < near:
    return first + distance
  far = int(math.log(distance / near) / math.log(128 / near) * (count - near))
  return first + min(count - 1, near + far)


def _attention(
    config, params, x, read, merged=None, bias=None, sees=None, kind=None
):
  """Attend to what is read, and to `merged`; positions are of one's own."""
  length, dim = len(read), config.head_dim
  read = read if merged is None else np.concatenate([read, merged])
  query, key, value = (
      _project(params[name], y).reshape(len(y), -1, dim)
      for name, y in (('query', x), ('key', read), ('value', read))
  )
  if config.qk_norm:
    query = _norm(config, params['query_norm'], query)
    key = _norm(config, params['key_norm'], key)
  if config.positions == 'rope' and kind is not None:
    lanes = config.rotated_dim or dim
    query[..., :lanes] = _rotate(query[..., :lanes], kind)
    key[:length, :, :lanes] = _rotate(key[:length, :, :lanes], kind)
  heads = []
  for head in range(config.num_heads):
    own = head * config.num_kv_heads // config.num_heads
    scores = query[:, head] @ key[:, own].T * config.query_scale
    scores = _cap(scores, config.attention_cap)
    if sees is not None:
      scores[:, :length] += bias[head]
      scores[:, :length][~sees] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    heads.append(weights @ value[:, own])
  return _project(params['out'], np.concatenate(heads, axis=-1))


def _rotate(x: np.ndarray, kind) -> np.ndarray:
  """Rotate [length, heads, lanes] as complex numbers."""
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
