# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares a checkpoint's parameter tree for decoding, once per model.

This is separate from the network, so that saved trees always have T5X's layout.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import layers
from speculative_t5x.networks import t5

Params = Any

# A TPU multiplies a matrix by one vector on its vector unit, several times more
# slowly than it reads the matrix. It multiplies by four vectors on its matrix
# unit, in no more time than it reads the matrix. `speculative-t5x
# tpu-preflight` compiles and compares both.
_MIN_BLOCKS = {'tpu': 4}

_SELF_ATTENTION_NAMES = ('query', 'key', 'value')


def prepare_config(config: t5.T5Config, platform: str) -> t5.T5Config:
  """Returns the config of the network that takes the output of `prepare`.

  Args:
    config: the config of the checkpoint's network.
    platform: JAX's name of the platform to decode on, e.g. 'tpu'.
  """
  return dataclasses.replace(
      config,
      separate_head=config.logits_via_embedding,
      min_block=_MIN_BLOCKS.get(platform, 1),
  )


def prepare(config: t5.T5Config, params: Params) -> tuple[t5.T5Config, Params]:
  """Casts parameters to the network's dtype and transposes a tied head.

  With a block of tokens, reading a head stored as [vocab, embed] takes up to
  twice as long as reading one stored as [embed, vocab]. The head keeps its
  dtype, because T5 computes the logits in float32.

  Args:
    config: the config of the checkpoint's network.
    params: its parameter tree, under T5X's names; arrays on any mesh.
  Returns:
    The config and the parameters to decode with. Values change only by the
    cast.
  """
  if config.logits_via_embedding:
    head = {'kernel': params['token_embedder']['embedding'].T}
  else:
    head = params['decoder']['logits_dense']
  config = prepare_config(config, jax.default_backend())
  cast = jax.tree.map(lambda x: jnp.asarray(x, config.dtype), params)
  return config, {**cast, 'decoder': {**cast['decoder'], 'logits_dense': head}}


def merge(config: t5.T5Config, params: Params) -> tuple[t5.T5Config, Params]:
  """Merges kernels that share an input, for decoding on one device.

  The query, key and value kernels of self-attention become one kernel, and so
  do the input projections of the feed-forward block. A step on one device is
  faster with fewer and larger products. On a mesh, partitioning a merged kernel
  would split it across heads.

  Args:
    config: the config that `prepare` returned.
    params: the parameters that `prepare` returned.
  Returns:
    The config and the parameters to decode with. Values are unchanged.
  """
  mlp_names = tuple(layers.mlp_input_names(config.mlp_activations))
  stacks = {'encoder': 'attention', 'decoder': 'self_attention'}
  merged = {
      name: _merge_stack(part, stacks[name], mlp_names)
      if name in stacks
      else part
      for name, part in params.items()
  }
  return merge_config(config), merged


def merge_config(config: t5.T5Config) -> t5.T5Config:
  """Returns the config of the network that takes the output of `merge`."""
  return dataclasses.replace(config, merge_projections=True)


def shorten_head(
    config: t5.T5Config, params: Params, ids: np.ndarray
) -> tuple[t5.T5Config, Params]:
  """Restricts the head to some tokens; all others get logit -inf.

  Args:
    config: the config that `prepare` or `merge` returned.
    params: the parameters that it returned.
    ids: [n] int, the tokens, different from each other.
  Returns:
    The config and the parameters to decode with. The remaining logits are
    unchanged.
  Raises:
    ValueError: if there is no id, or one that is repeated or outside the
      network's vocabulary.
  """
  _check_ids(ids, config.vocab_size)
  places = np.full((config.vocab_size,), len(ids), np.int32)
  places[ids] = np.arange(len(ids))
  decoder = params['decoder']
  kernel = jnp.take(decoder['logits_dense']['kernel'], ids, axis=1)
  short = {
      **decoder,
      'logits_dense': {'kernel': kernel},
      'short_vocabulary': {'places': jnp.asarray(places)},
  }
  config = dataclasses.replace(config, head_size=len(ids))
  return config, {**params, 'decoder': short}


def _check_ids(ids: np.ndarray, vocab_size: int) -> None:
  if not len(ids) or len(np.unique(ids)) != len(ids):
    raise ValueError(
        'A short vocabulary must have at least one token, and none twice; got'
        f' {len(ids)} tokens, {len(np.unique(ids))} of them different.'
    )
  if min(ids) < 0 or max(ids) >= vocab_size:
    raise ValueError(
        f'A short vocabulary has tokens from {min(ids)} to {max(ids)}, but the'
        f' network has only {vocab_size} logits. Take tokens of its vocabulary.'
    )


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
