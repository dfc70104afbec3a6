# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares a checkpoint's parameter tree for decoding, once per model.

This is separate from the network, so that saved trees always have T5X's layout.
"""

from collections.abc import Iterable
import dataclasses
from typing import Any

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import t5_layers as layers
from speculative_t5x.networks import t5_modules

Params = Any
Leaves = Iterable[tuple[str, jax.Array]]  # by names such as HEAD

# A TPU multiplies a matrix by one vector on its vector unit, several times more
# slowly than it reads the matrix. It multiplies by four vectors on its matrix
# unit, in no more time than it reads the matrix. `speculative-t5x
# tpu-preflight` compiles and compares both.
_MIN_BLOCKS = {'tpu': 4}

_EMBEDDING = 'token_embedder/embedding'
HEAD = 'decoder/logits_dense/kernel'


def prepare_config(config: t5_modules.Sizes, platform: str) -> t5_modules.Sizes:
  """Return the config of the network that takes the output of `prepare`.

  Args:
    config: The config of the checkpoint's network.
    platform: JAX's name of the platform to decode on, e.g. 'tpu'.
  """
  return dataclasses.replace(
      config,
      separate_head=config.logits_via_embedding,
      min_block=_MIN_BLOCKS.get(platform, 1),
  )


def prepare(
    config: t5_modules.Sizes, params: Params
) -> tuple[t5_modules.Sizes, Params]:
  """Cast parameters to the network's dtype and transpose a tied head.

  With a block of tokens, reading a head stored as [vocab, embed] takes up to
  twice as long as reading one stored as [embed, vocab]. The head keeps its
  dtype, because T5 computes the logits in float32.

  Args:
    config: The config of the checkpoint's network.
    params: Its parameter tree, under T5X's names; arrays on any mesh.
  Returns:
    The config and the parameters to decode with. Values change only by the
    cast.
  """
  leaves = traverse_util.flatten_dict(params, sep='/').items()
  prepared = traverse_util.unflatten_dict(
      dict(prepare_each(config, leaves)), sep='/'
  )
  return prepare_config(config, jax.default_backend()), prepared


def prepare_each(config: t5_modules.Sizes, leaves: Leaves) -> Leaves:
  """Prepare named parameters one at a time; hold none: see `prepare`."""
  for name, leaf in leaves:
    if name == _EMBEDDING and config.logits_via_embedding:
      yield HEAD, leaf.T
    yield name, leaf if name == HEAD else jnp.asarray(leaf, config.dtype)
    del leaf  # or it would stay while the next one is read


def merge_each(config: t5_modules.Sizes, leaves: Leaves) -> Leaves:
  """Merge kernels that share an input, for decoding on one device.

  The query, key and value kernels of self-attention become one kernel, and so
  do the input projections of the feed-forward block. A step on one device is
  faster with fewer and larger products. On a mesh, partitioning a merged kernel
  would split it across heads.

  Args:
    config: The config of the network.
    leaves: Named parameters, as `prepare_each` yields them. Those that wait for
      the others of their kernel are held, and no more.
  Yields:
    The parameters of the network of `merge_config`. Values are unchanged.
  Raises:
    ValueError: at the end, if a part of a merged kernel is missing.
  """
  waiting = {}
  for name, leaf in leaves:
    if merged := merged_kernel(config, name):
      waiting[name] = leaf
      name, parts = merged
      if not waiting.keys() >= set(parts):
        continue
      leaf = jnp.concatenate([waiting.pop(part) for part in parts], axis=1)
      jax.block_until_ready(leaf)  # only then is the memory of its parts free
    yield name, leaf
    del leaf
  if waiting:
    raise ValueError(
        f'The parameters have {min(waiting)} without the others that it is'
        ' merged with. Give all parameters of the network.'
    )


def separate(config: t5_modules.Sizes, params: Params) -> Params:
  """Return prepared parameters under T5X's names, as T5X's network reads them.

  Kernels that were merged are copied, all others are shared.

  Args:
    config: The config of the prepared network, without a shortened head.
    params: Its parameters, on one device.
  """
  found = {}
  for name, leaf in traverse_util.flatten_dict(params, sep='/').items():
    block, is_merged, _ = name.partition('/merged/')
    if is_merged:
      block, _, kind = block.rpartition('/')
      parts = ('query', 'key', 'value')
      if kind == 'wi':
        parts = layers.mlp_input_names(config.mlp_activations)
      kernels = jnp.split(leaf, len(parts), axis=1)
      for part, kernel in zip(parts, kernels, strict=True):
        found[f'{block}/{part}/kernel'] = kernel
    elif name != HEAD or not config.logits_via_embedding:
      found[name] = leaf
  return traverse_util.unflatten_dict(found, sep='/')


def merged_kernel(
    config: t5_modules.Sizes, name: str
) -> tuple[str, tuple[str, ...]] | None:
  """Return the name of the merged kernel that a kernel becomes a part of.

  Args:
    config: The config of the network.
    name: Name of the parameter, e.g. decoder/layers_0/mlp/wi_0/kernel.
  Returns:
    That name, and the names of all parts, in order; None for what is not
    merged.
  """
  block, _, part = name.removesuffix('/kernel').rpartition('/')
  match block.rpartition('/')[2]:
    case 'attention' | 'self_attention':
      merged, parts = 'query_key_value', ('query', 'key', 'value')
    case 'mlp':
      merged, parts = 'wi', layers.mlp_input_names(config.mlp_activations)
    case _:
      return None
  if part not in parts:
    return None
  return (
      f'{block}/{merged}/merged/kernel',
      tuple(f'{block}/{part}/kernel' for part in parts),
  )


def merge_config(config: t5_modules.Sizes) -> t5_modules.Sizes:
  """Return the config of the network that takes the output of `merge_each`."""
  return dataclasses.replace(config, merge_projections=True)


def shorten_head(
    config: t5_modules.Sizes, params: Params, ids: np.ndarray
) -> tuple[t5_modules.Sizes, Params]:
  """Restrict the head to some tokens; all others get logit -inf.

  Args:
    config: The config of a prepared network.
    params: Its parameters.
    ids: [n] int, the tokens, different from each other.
  Returns:
    The config and the parameters to decode with. The remaining logits are
    unchanged.
  Raises:
    ValueError: if there is no id, or one that is repeated or outside the
      network's vocabulary.
  """
  different = {int(i) for i in ids if 0 <= i < config.vocab_size}
  if not 0 < len(ids) == len(different):
    raise ValueError(
        'A short vocabulary must have at least one token, each once and from 0'
        f' to {config.vocab_size - 1}; got {len(ids)} tokens, of which'
        f' {len(different)} are different and in this range.'
    )
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
