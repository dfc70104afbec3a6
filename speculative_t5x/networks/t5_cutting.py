# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Smaller T5 networks cut out of larger ones, to be trained on.

Legend: embed, joined (heads times their width), mlp, heads.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from speculative_t5x.speculation import ranges

Params = Mapping[str, Any]


def cut(
    config: Any,
    params: Params,
    *,
    decoder_layers: Sequence[int],
    encoder_layers: Sequence[int] | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
) -> tuple[Any, Params]:
  """Return a smaller network of some layers, largest heads and columns.

  The size of a head is the product of the norms of its value and its output
  matrices. The heads of a stack's self-attention are chosen for all its layers
  at once, since the layers of a T5 share the position bias. The size of a
  feed-forward column is the product of the norms of its kernels.

  Args:
    config: A `t5.T5Config`.
    params: Its parameters, under T5X's names.
    decoder_layers: Numbers of layers, from 0 on, in the order wanted.
    encoder_layers: Likewise; None for all.
    num_heads: How many heads; None for all.
    mlp_dim: How many columns; None for all.
  Raises:
    ValueError: for a layer that there is not, no layer, or a number out of
      range.
  """
  if encoder_layers is None:
    encoder_layers = range(config.num_encoder_layers)
  sizes = {'num_heads': num_heads, 'mlp_dim': mlp_dim}
  for name, size in sizes.items():
    most = getattr(config, name)
    sizes[name] = most if size is None else size
    ranges.check_settings(ranges.whole(1, most), **{name: sizes[name]})
  stacks = {}
  for stack, layers in (
      ('encoder', encoder_layers), ('decoder', decoder_layers)
  ):  # fmt: skip
    count = getattr(config, f'num_{stack}_layers')
    for layer in layers or [None]:
      ranges.check_settings(
          ranges.whole(0, count - 1), **{f'{stack}_layers': layer}
      )
    old = params[stack]
    kept = {k: v for k, v in old.items() if not k.startswith('layers_')}
    for i, layer in enumerate(layers):
      kept[f'layers_{i}'] = old[f'layers_{layer}']
    stacks[stack] = _narrow_stack(config, kept, **sizes)
  config = dataclasses.replace(
      config,
      num_encoder_layers=len(encoder_layers),
      num_decoder_layers=len(decoder_layers),
      **sizes,
  )
  return config, {**params, **stacks}


def _narrow_stack(
    config: Any, stack: Params, num_heads: int, mlp_dim: int
) -> Params:
  layers = {k: dict(v) for k, v in stack.items() if k.startswith('layers_')}
  own = 'self_attention'
  if own not in layers['layers_0']:
    own = 'attention'  # as the encoder's layers name their only one
  attention = ('value', 'out'), config.head_dim
  # Layers share the biases of positions, which are per head.
  heads = _largest(
      sum(_unit_sizes(layer[own], *attention) for layer in layers.values()),
      num_heads,
  )
  for layer in layers.values():
    layer[own] = _take(layer[own], heads, config.head_dim)
    if (cross := layer.get('encoder_decoder_attention')) is not None:
      largest = _largest(_unit_sizes(cross, *attention), num_heads)
      cross = _take(cross, largest, config.head_dim)
      layer['encoder_decoder_attention'] = cross
    columns = _largest(_unit_sizes(layer['mlp'], layer['mlp'], 1), mlp_dim)
    layer['mlp'] = _take(layer['mlp'], columns, 1)
  cut = {**stack, **layers}
  for tree in (cut, *layers.values()):  # all layers have a table, or each one
    if 'relpos_bias' in tree:
      table = tree['relpos_bias']['rel_embedding']
      tree['relpos_bias'] = {'rel_embedding': table[heads]}
  return cut


_LAST = 'out', 'wo'  # kernels [inner, embed]; all others are [embed, inner]


def _unit_sizes(
    block: Params, names: Iterable[str], width: int
) -> np.ndarray:
  """Return the product of norms of kernels, per inner unit of a width."""
  sizes = 1.0
  for name in names:
    kernel = np.asarray(block[name]['kernel'])
    kernel = kernel.T if name in _LAST else kernel
    units = kernel.reshape(len(kernel), -1, width)
    sizes = sizes * np.sqrt(np.sum(np.square(units), axis=(0, 2)))
  return sizes


def _largest(sizes: np.ndarray, count: int) -> np.ndarray:
  """Return the indices of the largest sizes, ascending."""
  return np.sort(np.argsort(-sizes, kind='stable')[:count])


def _take(block: Params, units: np.ndarray, width: int) -> Params:
  """Return kernels with some of a block's inner units."""
  places = (units[:, None] * width + np.arange(width)).ravel()
  kernels = {name: each['kernel'] for name, each in block.items()}
  return {
      name: {'kernel': x[places] if name in _LAST else x[:, places]}
      for name, x in kernels.items()
  }
