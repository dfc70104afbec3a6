# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Smaller T5 networks cut out of larger ones, to be trained on.

A `config` is a `t5.T5Config`.

Legend: embed, joined (heads times their width), mlp, heads.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from speculative_t5x.speculation import ranges

Params = Mapping[str, Any]


def take_layers(
    config: Any,
    params: Params,
    encoder: Sequence[int] | None,
    decoder: Sequence[int],
) -> tuple[Any, Params]:
  """Return the network of some layers, in the order given.

  They are numbered from 0 on; None is all of the encoder's. The parameters are
  under T5X's names.

  Raises:
    ValueError: for a layer that there is not, or no layer.
  """
  if encoder is None:
    encoder = range(config.num_encoder_layers)
  params = dict(params)
  for stack, layers in {'encoder': encoder, 'decoder': decoder}.items():
    count = getattr(config, f'num_{stack}_layers')
    for layer in layers or [None]:
      ranges.check_settings(
          ranges.whole(0, count - 1), **{f'{stack}_layers': layer}
      )
    old = params[stack]
    rest = {k: v for k, v in old.items() if not k.startswith('layers_')}
    params[stack] = rest | {
        f'layers_{i}': old[f'layers_{layer}'] for i, layer in enumerate(layers)
    }
  config = dataclasses.replace(
      config,
      num_encoder_layers=len(encoder),
      num_decoder_layers=len(decoder),
  )
  return config, params


def narrow(
    config: Any,
    params: Params,
    num_heads: int | None,
    mlp_dim: int | None,
) -> tuple[Any, Params]:
  """Return the network with the largest heads and feed-forward columns.

  The size of a head is the product of the norms of its value and its output
  matrices. The heads of a stack's self-attention are chosen for all its layers
  at once, since the layers of a T5 share the position bias. The size of a
  feed-forward column is the product of the norms of its kernels.

  The parameters are under T5X's names; None keeps all heads or columns.

  Raises:
    ValueError: for a number out of range.
  """
  sizes = {'num_heads': num_heads, 'mlp_dim': mlp_dim}
  for name, size in sizes.items():
    most = getattr(config, name)
    sizes[name] = most if size is None else size
    ranges.check_settings(ranges.whole(1, most), **{name: sizes[name]})
  stacks = {
      stack: _narrow_stack(config, params[stack], **sizes)
      for stack in ('encoder', 'decoder')
  }
  return dataclasses.replace(config, **sizes), {**params, **stacks}


def _narrow_stack(
    config: Any, stack: Params, num_heads: int, mlp_dim: int
) -> Params:
  layers = {k: dict(v) for k, v in stack.items() if k.startswith('layers_')}
  own = 'self_attention'
  if own not in layers['layers_0']:
    own = 'attention'  # as the encoder's layers name their only one
  heads = _largest(
      sum(_head_sizes(config, layer[own]) for layer in layers.values()),
      num_heads,
  )
  for layer in layers.values():
    layer[own] = _take_heads(config, layer[own], heads)
    if (cross := layer.get('encoder_decoder_attention')) is not None:
      largest = _largest(_head_sizes(config, cross), num_heads)
      layer['encoder_decoder_attention'] = _take_heads(config, cross, largest)
    columns = _largest(_column_sizes(layer['mlp']), mlp_dim)
    layer['mlp'] = _take(layer['mlp'], 'wo', columns)
  cut = {**stack, **layers}
  for tree in (cut, *layers.values()):  # all layers have a table, or each one
    if 'relpos_bias' in tree:
      table = tree['relpos_bias']['rel_embedding']
      tree['relpos_bias'] = {'rel_embedding': table[heads]}
  return cut


def _head_sizes(config: Any, attention: Params) -> np.ndarray:
  """Return the size of each head, [heads] in the dtype of the parameters."""
  shape = config.num_heads, config.head_dim
  value = attention['value']['kernel'].reshape(-1, *shape)
  out = attention['out']['kernel'].reshape(*shape, -1)
  norm = lambda x, axes: np.sqrt(np.sum(np.square(x), axis=axes))
  return norm(np.asarray(value), (0, 2)) * norm(np.asarray(out), (1, 2))


def _largest(sizes: np.ndarray, count: int) -> np.ndarray:
  """Return the indices of the largest sizes, ascending."""
  return np.sort(np.argsort(-sizes, kind='stable')[:count])


def _take_heads(
    config: Any, attention: Params, heads: np.ndarray
) -> Params:
  width = config.head_dim
  joined = (heads[:, None] * width + np.arange(width)).ravel()
  return _take(attention, 'out', joined)


def _column_sizes(mlp: Params) -> np.ndarray:
  sizes = 1.0
  for name, each in mlp.items():
    axis = 1 if name == 'wo' else 0
    sizes = sizes * np.linalg.norm(np.asarray(each['kernel']), axis=axis)
  return sizes


def _take(block: Params, last: str, places: np.ndarray) -> Params:
  """Return kernels with some of a block's inner units.

  They are [embed, inner], but for the one named `last`: [inner, embed].
  """
  kernels = {name: each['kernel'] for name, each in block.items()}
  return {
      name: {'kernel': x[places] if name == last else x[:, places]}
      for name, x in kernels.items()
  }
