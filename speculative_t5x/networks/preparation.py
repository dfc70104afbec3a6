# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The checkpoint's parameter tree made ready for decoding, once.

Kept apart from the network so that what is saved stays T5X's tree whatever
decoding prefers.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.networks import layers
from speculative_t5x.networks import t5

Params = Any

# A TPU multiplies a matrix by one vector on its vector unit, several times as
# slowly as it reads the matrix, and by four on its matrix unit, at no more than
# the reading. `speculative-t5x tpu-preflight` compiles and compares both.
_MIN_BLOCKS = {'tpu': 4}

_SELF_ATTENTION_NAMES = ('query', 'key', 'value')


def prepare_config(config: t5.T5Config, platform: str) -> t5.T5Config:
  """The network that `prepare` makes parameters for.

  Args:
    config: of the network that the checkpoint holds.
    platform: of the devices to decode on, as JAX names it.
  """
  return dataclasses.replace(
      config,
      separate_head=config.logits_via_embedding,
      min_block=_MIN_BLOCKS.get(platform, 1),
  )


def prepare(
    config: t5.T5Config, params: Params
) -> tuple[t5.T5Config, Params]:
  """Casts parameters to the network's dtype and transposes a tied head.

  A block of tokens reads a head stored [vocab, embed] up to twice as slowly as
  one stored [embed, vocab]. The head is not cast: T5 multiplies it in float32,
  so that it counts as it was read.

  Args:
    config: of the network that the checkpoint holds.
    params: its parameter tree, as T5X names it; arrays on any mesh.
  Returns:
    The config and the parameters to decode with. Same values, but for the
    cast.
  """
  if config.logits_via_embedding:
    head = {'kernel': params['token_embedder']['embedding'].T}
  else:
    head = params['decoder']['logits_dense']
  config = prepare_config(config, jax.default_backend())
  cast = jax.tree.map(lambda x: jnp.asarray(x, config.dtype), params)
  return config, {**cast, 'decoder': {**cast['decoder'], 'logits_dense': head}}


def merge(
    config: t5.T5Config, params: Params
) -> tuple[t5.T5Config, Params]:
  """Merges kernels that share an input, for decoding on one device.

  Query, key and value of self-attention become one kernel, and so do the input
  projections of the feed-forward block: fewer and larger products a step,
  which is what a step on one device is made of. On a mesh they would cut
  across the heads.

  Args:
    config: from `prepare`.
    params: from `prepare`.
  Returns:
    The config and the parameters to decode with. Same values.
  """
  mlp_names = tuple(layers.mlp_input_names(config.mlp_activations))
  merged = {
      'token_embedder': params['token_embedder'],
      'encoder': _merge_stack(params['encoder'], 'attention', mlp_names),
      'decoder': _merge_stack(params['decoder'], 'self_attention', mlp_names),
  }
  return merge_config(config), merged


def merge_config(config: t5.T5Config) -> t5.T5Config:
  """The network that `merge` makes parameters for."""
  return dataclasses.replace(config, merge_projections=True)


def _merge_stack(stack: Params, attention: str, mlp_names) -> Params:
  return {
      name: _merge_layer(part, attention, mlp_names)
      if name.startswith('layers_')
      else part
      for name, part in stack.items()
  }


def _merge_layer(layer: Params, attention: str, mlp_names) -> Params:
  merged_attention = _merge_kernels(
      layer[attention], _SELF_ATTENTION_NAMES, 'query_key_value'
  )
  merged_mlp = _merge_kernels(layer['mlp'], mlp_names, 'wi')
  return {**layer, attention: merged_attention, 'mlp': merged_mlp}


def _merge_kernels(block: Params, names: tuple[str, ...], to: str) -> Params:
  kernels = [block[name]['kernel'] for name in names]
  rest = {name: part for name, part in block.items() if name not in names}
  return {**rest, to: {'merged': {'kernel': jnp.concatenate(kernels, axis=1)}}}
