# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints in the layouts of other projects, for tests.

Nothing here uses the package's own knowledge of a layout: T5X's older one is
written by Flax and TensorStore, files of safetensors as their format says, and
names of Hugging Face are spelled out layer by layer.
"""

from collections.abc import Callable, Collection
import json
import math
import pathlib
import re
import struct
from typing import Any

from flax import serialization
from flax import traverse_util
import jax.numpy as jnp
import numpy as np
import tensorstore as ts

from speculative_t5x.networks import t5

# The location of an array in its spec.
DRIVERS: dict[str, Callable[[str], dict[str, Any]]] = {
    'file': lambda path: {'kvstore': {'driver': 'file', 'path': path}},
    'gfile': lambda path: {'kvstore': {'driver': 'gfile', 'path': path}},
    'gcs': lambda path: {
        'kvstore': {
            'driver': 'gcs', 'bucket': 't5x-dummy-bucket', 'path': path,
        }
    },
    # T5X's own form for gs://.
    'path beside the kvstore': lambda path: {
        'kvstore': {'driver': 'gcs', 'bucket': 't5x-dummy-bucket'},
        'path': path,
    },
}  # fmt: skip


def write_legacy(
    folder: pathlib.Path,
    params: Any,
    *,
    step: int = 7,
    driver: str = 'file',
    inline: Collection[str] | None = None,
    max_chunk: int = 10**9,
    wrap: Callable[[dict], dict] | None = None,
) -> pathlib.Path:
  """Write T5X's older layout, in one of DRIVERS; return the step's folder.

  The parameters named by `inline`, by default all vectors, are in the msgpack
  file itself. A chunk has whole rows. `wrap` changes the tree that T5X writes.
  """
  step_folder = folder / f'checkpoint_{step}'
  step_folder.mkdir(parents=True)
  target = {}
  for name, array in traverse_util.flatten_dict(params, sep='/').items():
    array = np.asarray(array)
    is_inline = array.ndim == 1 if inline is None else name in inline
    target[name] = array if is_inline else _write_zarr(
        step_folder, f'target.{name.replace("/", ".")}', array, driver,
        max_chunk,
    )  # fmt: skip
  tree = {
      'target': traverse_util.unflatten_dict(target, sep='/'),
      'state': {'step': np.int32(step)},
  }
  tree = wrap(tree) if wrap else {'version': 3, 'optimizer': tree}
  (step_folder / 'checkpoint').write_bytes(
      serialization.msgpack_serialize(tree)
  )
  return step_folder


def scanned(
    config: t5.T5Config, params: Any, axis: int = 1, splits_heads: bool = True
) -> Any:
  """Return the tree of T5X's scanned layers with given parameters.

  That of `t5x.examples.scalable_t5` has each head on an axis of its own.
  """
  found = dict(params)
  for stack in ('encoder', 'decoder'):
    outside = dict(params[stack])
    count = getattr(config, f'num_{stack}_layers')
    layers = [outside.pop(f'layers_{i}') for i in range(count)]
    if splits_heads:
      layers = [split_heads(config, layer) for layer in layers]
    names = [traverse_util.flatten_dict(layer) for layer in layers]
    stacked = {
        name: np.stack([layer[name] for layer in names], axis)
        for name in names[0]
    }
    found[stack] = outside | {stack: traverse_util.unflatten_dict(stacked)}
  return found


def split_heads(config: t5.T5Config, layer: Any) -> Any:
  """Return a layer's parameters with each head on an axis of its own."""
  heads = config.num_heads, config.head_dim
  found = {}
  for name, x in traverse_util.flatten_dict(layer).items():
    if name[-2] in ('query', 'key', 'value'):
      x = x.reshape(-1, *heads)
    elif name[-2] == 'out':
      x = x.reshape(*heads, -1)
    found[name] = np.asarray(x)
  return traverse_util.unflatten_dict(found)


def _write_zarr(
    folder: pathlib.Path,
    path: str,
    array: np.ndarray,
    driver: str,
    max_chunk: int,
) -> dict[str, Any]:
  """Write an array and return its spec in a checkpoint."""
  rows = max(1, max_chunk // math.prod(array.shape[1:]))
  metadata = {
      'compressor': {'id': 'gzip', 'level': 1},
      'shape': list(array.shape),
      'chunks': [min(rows, array.shape[0]), *array.shape[1:]],
  }
  spec = {'driver': 'zarr', 'dtype': array.dtype.name, 'metadata': metadata}
  local = {'driver': 'file', 'path': f'{folder}/{path}'}
  store = ts.open({**spec, 'kvstore': local}, create=True).result()
  store.write(array).result()
  return {**spec, **DRIVERS[driver](path)}


def hugging_face_tensors(
    config: t5.T5Config, params: Any
) -> dict[str, np.ndarray]:
  """Return the tensors of a Hugging Face T5 with the given parameters."""
  tensors = {'shared.weight': params['token_embedder']['embedding']}
  for stack in ('encoder', 'decoder'):
    tree = params[stack]
    bias = 'layer.0.SelfAttention.relative_attention_bias.weight'
    holders = [tree]
    if config.bias_per_layer:
      count = getattr(config, f'num_{stack}_layers')
      holders = [tree[f'layers_{i}'] for i in range(count)]
    for i, holder in enumerate(holders):
      table = holder['relpos_bias']['rel_embedding']
      tensors[f'{stack}.block.{i}.{bias}'] = table.T
    norm = tree[f'{stack}_norm']['scale']
    tensors[f'{stack}.final_layer_norm.weight'] = norm
  for i in range(config.num_encoder_layers):
    layer, block = params['encoder'][f'layers_{i}'], f'encoder.block.{i}'
    tensors |= _attention(f'{block}.layer.0.SelfAttention', layer['attention'])
    tensors |= _mlp(f'{block}.layer.1.DenseReluDense', layer['mlp'])
    norms = ('pre_attention_layer_norm', 'pre_mlp_layer_norm')
    tensors |= _norms(block, layer, norms)
  for i in range(config.num_decoder_layers):
    layer, block = params['decoder'][f'layers_{i}'], f'decoder.block.{i}'
    own, cross = layer['self_attention'], layer['encoder_decoder_attention']
    tensors |= _attention(f'{block}.layer.0.SelfAttention', own)
    tensors |= _attention(f'{block}.layer.1.EncDecAttention', cross)
    tensors |= _mlp(f'{block}.layer.2.DenseReluDense', layer['mlp'])
    norms = (
        'pre_self_attention_layer_norm',
        'pre_cross_attention_layer_norm',
        'pre_mlp_layer_norm',
    )
    tensors |= _norms(block, layer, norms)
  if not config.logits_via_embedding:
    tensors['lm_head.weight'] = params['decoder']['logits_dense']['kernel'].T
  return {k: np.ascontiguousarray(x) for k, x in tensors.items()}


def _attention(prefix: str, layer: Any) -> dict[str, np.ndarray]:
  names = dict(q='query', k='key', v='value', o='out')
  return {
      f'{prefix}.{theirs}.weight': layer[ours]['kernel'].T
      for theirs, ours in names.items()
  }


def _mlp(prefix: str, layer: Any) -> dict[str, np.ndarray]:
  return {f'{prefix}.{k}.weight': layer[k]['kernel'].T for k in layer}


def _norms(block: str, layer: Any, names) -> dict[str, np.ndarray]:
  return {
      f'{block}.layer.{i}.layer_norm.weight': layer[name]['scale']
      for i, name in enumerate(names)
  }


def renamed(params: Any, *rules: tuple[str, str]) -> dict[str, np.ndarray]:
  """Return tensors, kernels as [out, in], under names that others give them.

  Each rule, a pattern and what takes its place, is applied to all names.
  """
  found = {}
  for name, array in traverse_util.flatten_dict(params, sep='/').items():
    array = array.T if name.endswith('/kernel') else array
    for pattern, theirs in rules:
      name = re.sub(pattern, theirs, name)
    found[name] = np.ascontiguousarray(array, np.float32)
  return found


def hugging_face_config(config: t5.T5Config, **overrides) -> dict[str, Any]:
  """Return a config.json as transformers 4 writes it, with overrides."""
  activations = {
      ('relu',): 'relu',
      ('gelu', 'linear'): 'gated-gelu',
      ('silu', 'linear'): 'gated-silu',
  }
  fields = {
      'architectures': ['T5ForConditionalGeneration'],
      'd_ff': config.mlp_dim,
      'd_kv': config.head_dim,
      'd_model': config.emb_dim,
      'feed_forward_proj': activations[tuple(config.mlp_activations)],
      'layer_norm_epsilon': 1e-6,
      'model_type': 'umt5' if config.bias_per_layer else 't5',
      'num_decoder_layers': config.num_decoder_layers,
      'num_heads': config.num_heads,
      'num_layers': config.num_encoder_layers,
      'relative_attention_max_distance': 128,
      'relative_attention_num_buckets': 32,
      'vocab_size': config.vocab_size,
  }
  if not config.logits_via_embedding:  # true is not written
    fields['tie_word_embeddings'] = False
  return fields | overrides


def write_hugging_face(
    folder: pathlib.Path,
    fields: dict[str, Any],
    tensors: dict[str, np.ndarray],
    shards: int = 1,
) -> pathlib.Path:
  """Write a Hugging Face folder, in several files if shards is above 1.

  A field that is `...` is left out.
  """
  folder.mkdir(parents=True, exist_ok=True)
  fields = {name: x for name, x in fields.items() if x is not ...}
  (folder / 'config.json').write_text(json.dumps(fields))
  if shards == 1:
    write_safetensors(tensors, folder / 'model.safetensors')
    return folder
  names = sorted(tensors)
  weight_map = {}
  for i in range(shards):
    file = f'model-{i + 1:05d}-of-{shards:05d}.safetensors'
    part = names[i::shards]
    write_safetensors({k: tensors[k] for k in part}, folder / file)
    weight_map |= dict.fromkeys(part, file)
  (folder / 'model.safetensors.index.json').write_text(
      json.dumps({'metadata': {}, 'weight_map': weight_map})
  )
  return folder


def write_safetensors(
    tensors: dict[str, np.ndarray], file: pathlib.Path
) -> None:
  """Write https://github.com/huggingface/safetensors#format."""
  names = {
      'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16', 'int8': 'I8'
  }  # fmt: skip
  header, end = {'__metadata__': {'format': 'pt'}}, 0
  for name, tensor in tensors.items():
    header[name] = {
        'dtype': names[tensor.dtype.name],
        'shape': tensor.shape,
        'data_offsets': [end, end + tensor.nbytes],
    }
    end += tensor.nbytes
  text = json.dumps(header).encode()
  with file.open('wb') as out:
    out.write(struct.pack('<Q', len(text)) + text)
    for tensor in tensors.values():
      out.write(tensor.tobytes())


def cast(params: Any, dtype) -> Any:
  """Return a parameter tree of host arrays in a dtype."""
  flat = traverse_util.flatten_dict(params)
  return traverse_util.unflatten_dict(
      {k: np.array(jnp.asarray(x, dtype)) for k, x in flat.items()}
  )
