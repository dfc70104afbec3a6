# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares a checkpoint's parameter tree for decoding, once per model.

This is separate from the network, so that saved trees always have T5X's layout.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from flax import traverse_util
import jax
import jax.numpy as jnp

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import layers

Params = Any
Leaves = Iterable[tuple[str, jax.Array]]  # by names such as HEAD

# A TPU multiplies a matrix by one vector on its vector unit, several times more
# slowly than it reads the matrix. It multiplies by four vectors on its matrix
# unit, in no more time than it reads the matrix. `speculative-t5x
# preflight` compiles and compares both.
MIN_BLOCKS = {'tpu': 4}

# Both stacks of T5 share it; a decoder alone has its own.
_EMBEDDINGS = 'token_embedder/embedding', 'decoder/token_embedder/embedding'
HEAD = 'decoder/logits_dense/kernel'
# Which only a head on the last features of a target has.
FEATURES = 'decoder/features/read/kernel'
_MASKS = 'decoder/mask_embedder/embedding'
_RECURRENCE = 'decoder/recurrence/token/embedding'


def block_sizes(
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, int | None]:
  """Return the sizes of a head that drafts blocks, by names of `config.Form`.

  Shapes are by parameters' names; other networks have the sizes of no head.
  """
  return {
      'num_masks': shapes[_MASKS][0] if _MASKS in shapes else 0,
      'recurrence_dim': (
          shapes[_RECURRENCE][1] if _RECURRENCE in shapes else None
      ),
  }


def prepare(config: Any, params: Params) -> tuple[Any, Params]:
  """Cast parameters to the network's dtype and transpose a tied head.

  With a block of tokens, reading a head stored as [vocab, embed] takes up to
  twice as long as reading one stored as [embed, vocab]. The head keeps its
  dtype, because T5 computes the logits in float32.

  The parameters are under T5X's names, on any mesh. Values change only by the
  cast.
  """
  leaves = traverse_util.flatten_dict(params, sep='/').items()
  prepared = traverse_util.unflatten_dict(
      dict(prepare_each(config, leaves)), sep='/'
  )
  return config.prepared(jax.default_backend(), merged=False), prepared


def prepare_each(config: config_lib.Form, leaves: Leaves) -> Leaves:
  """Prepare named parameters one at a time; hold none: see `prepare`."""
  for name, leaf in leaves:
    if name in _EMBEDDINGS and config.logits_via_embedding:
      yield HEAD, leaf.T
    yield name, leaf if name == HEAD else jnp.asarray(leaf, config.dtype)
    del leaf  # or it would stay while the next one is read


def merge_each(config: config_lib.Form, leaves: Leaves) -> Leaves:
  """Merge kernels that share an input, for decoding on one device.

  The query, key and value kernels of self-attention become one kernel, and so
  do the input projections of the feed-forward block. A step on one device is
  faster with fewer and larger products. On a mesh, partitioning a merged kernel
  would split it across heads.

  The leaves, all of the network's, are as `prepare_each` yields them. Those
  that wait for the others of their kernel are held, and no more. Values are
  unchanged.
  """
  waiting = {}
  for name, leaf in leaves:
    if merged := merged_kernel(config, name):
      waiting[name] = leaf
      name, parts = merged
      if not waiting.keys() >= set(parts):
        continue
      leaf = jnp.concatenate([waiting.pop(part) for part in parts], axis=-1)
      jax.block_until_ready(leaf)  # only then is the memory of its parts free
    yield name, leaf
    del leaf


def separate(config: config_lib.Form, params: Params) -> Params:
  """Return prepared parameters under T5X's names, as T5X's network reads them.

  Kernels that were merged are copied, all others are shared. They are on one
  device, and the head is not a short one.
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
    config: config_lib.Form, name: str
) -> tuple[str, tuple[str, ...]] | None:
  """Return the name of the merged kernel that a kernel becomes a part of.

  With it come the names of all parts, in order; None for what is not merged.
  Biases are merged as their kernels are.
  """
  path, _, kind = name.rpartition('/')
  block, _, part = path.rpartition('/')
  match block.rpartition('/')[2]:
    case 'attention' | 'self_attention':
      merged, parts = 'query_key_value', ('query', 'key', 'value')
    case 'mlp':
      merged, parts = 'wi', layers.mlp_input_names(config.mlp_activations)
    case _:
      return None
  if part not in parts or kind not in ('kernel', 'bias'):
    return None
  return (
      f'{block}/{merged}/merged/{kind}',
      tuple(f'{block}/{part}/{kind}' for part in parts),
  )
