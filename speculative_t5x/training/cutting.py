# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Smaller networks cut out of a larger one, to be trained on.

Legend: embed, joined (heads times their width), mlp, heads.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import numbers
from typing import Any

import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import t5
from speculative_t5x.speculation import ranges

Params = Mapping[str, Any]
_STACKS = ('encoder', 'decoder')


@dataclasses.dataclass(frozen=True)
class Network:
  """A network and its parameters.

  Attributes:
    config: of the network.
    params: under T5X's names.
  """

  config: t5.T5Config
  params: Params


def take_layers(
    network: Network, encoder: Sequence[int], decoder: Sequence[int]
) -> Network:
  """Returns the network of some layers, in the order given.

  Args:
    network: any.
    encoder: numbers of the encoder's layers, from 0 on.
    decoder: likewise of the decoder's.
  Raises:
    ValueError: for a layer that there is not, or no layer.
  """
  config, params = network.config, dict(network.params)
  taken = {'encoder': tuple(encoder), 'decoder': tuple(decoder)}
  for stack, layers in taken.items():
    count = getattr(config, f'num_{stack}_layers')
    kind = _whole(0, count - 1)
    if not layers or not all(map(kind.includes, layers)):
      raise ValueError(
          f'{stack}_layers must be one or more of the layers 0 to {count - 1}'
          f' of the network that is cut, got {layers}.'
      )
    params[stack] = _take(params[stack], layers)
  config = dataclasses.replace(
      config,
      num_encoder_layers=len(encoder),
      num_decoder_layers=len(decoder),
  )
  return Network(config, params)


def _whole(least: int, most: int) -> ranges.Kind:
  return ranges.Kind(
      f'be a whole number from {least} to {most}',
      numbers.Integral,
      lambda x: least <= x <= most,
  )


def _take(stack: Params, layers: Sequence[int]) -> Params:
  rest = {k: v for k, v in stack.items() if not k.startswith('layers_')}
  return rest | {
      f'layers_{new}': stack[f'layers_{old}'] for new, old in enumerate(layers)
  }


def without_encoder(network: Network) -> Network:
  """Returns the decoder alone, which reads another network's encoder output."""
  params = {k: v for k, v in network.params.items() if k != 'encoder'}
  config = dataclasses.replace(
      network.config, num_encoder_layers=0, encoder_dim=network.config.emb_dim
  )
  return Network(config, params)


def narrow(network: Network, num_heads: int, mlp_dim: int) -> Network:
  """Returns the network with the largest heads and feed-forward columns.

  The size of a head is the product of the norms of its value and its output
  matrices. The heads of a stack's self-attention are chosen for all its layers
  at once, since the layers share the position bias. The size of a feed-forward
  column is the product of the norms of its kernels.

  Args:
    network: any.
    num_heads: at most the network's.
    mlp_dim: likewise.
  Raises:
    ValueError: for a number out of range.
  """
  config = network.config
  for name, value in (('num_heads', num_heads), ('mlp_dim', mlp_dim)):
    ranges.check_settings(_whole(1, getattr(config, name)), **{name: value})
  params = dict(network.params)
  for stack in _STACKS:
    params[stack] = _narrow_stack(config, params[stack], num_heads, mlp_dim)
  config = dataclasses.replace(config, num_heads=num_heads, mlp_dim=mlp_dim)
  return Network(config, params)


def _narrow_stack(
    config: t5.T5Config, stack: Params, num_heads: int, mlp_dim: int
) -> Params:
  layers = [name for name in stack if name.startswith('layers_')]
  sizes = lambda attention: _head_sizes(config, attention)
  own = [_self_attention(stack[name]) for name in layers]
  shared = _largest(
      sum(sizes(stack[x][name]) for x, name in zip(layers, own, strict=True)),
      num_heads,
  )
  narrowed = dict(stack)
  bias = stack['relpos_bias']['rel_embedding']
  narrowed['relpos_bias'] = {'rel_embedding': bias[shared]}
  for name, self_attention in zip(layers, own, strict=True):
    layer = dict(stack[name])
    layer[self_attention] = _take_heads(config, layer[self_attention], shared)
    if (cross := layer.get('encoder_decoder_attention')) is not None:
      heads = _largest(sizes(cross), num_heads)
      layer['encoder_decoder_attention'] = _take_heads(config, cross, heads)
    layer['mlp'] = _take_columns(layer['mlp'], mlp_dim)
    narrowed[name] = layer
  return narrowed


def _self_attention(layer: Params) -> str:
  return 'self_attention' if 'self_attention' in layer else 'attention'


def _head_sizes(config: t5.T5Config, attention: Params) -> np.ndarray:
  """Returns the size of each head, [heads] in the dtype of the parameters."""
  shape = config.num_heads, config.head_dim
  value = attention['value']['kernel'].reshape(-1, *shape)
  out = attention['out']['kernel'].reshape(*shape, -1)
  norm = lambda x, axes: np.sqrt(np.sum(np.square(x), axis=axes))
  return norm(np.asarray(value), (0, 2)) * norm(np.asarray(out), (1, 2))


def _largest(sizes: np.ndarray, count: int) -> np.ndarray:
  """Returns the indices of the largest sizes, ascending."""
  return np.sort(np.argsort(-sizes, kind='stable')[:count])


def _take_heads(
    config: t5.T5Config, attention: Params, heads: np.ndarray
) -> Params:
  columns = (
      heads[:, None] * config.head_dim + np.arange(config.head_dim)
  ).ravel()
  cut = (
      lambda name, kernel: kernel[columns]
      if name == 'out'
      else kernel[:, columns]
  )
  return {
      name: {'kernel': cut(name, jnp.asarray(each['kernel']))}
      for name, each in attention.items()
  }


def _take_columns(mlp: Params, mlp_dim: int) -> Params:
  is_out = lambda name: name == 'wo'
  sizes = 1.0
  for name, each in mlp.items():
    axis = 1 if is_out(name) else 0
    sizes = sizes * np.linalg.norm(np.asarray(each['kernel']), axis=axis)
  columns = _largest(sizes, mlp_dim)
  cut = lambda name, x: x[columns] if is_out(name) else x[:, columns]
  return {
      name: {'kernel': cut(name, jnp.asarray(each['kernel']))}
      for name, each in mlp.items()
  }
