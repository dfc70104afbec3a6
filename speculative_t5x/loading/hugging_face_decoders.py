# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the Hugging Face families of decoders alone have in common.

A family is a map of tensor names and a map of its config.json's fields to those
of a network. Most are Llama with other parts.
"""

from collections.abc import Mapping
import math
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import rope as rope_lib

# Flax's activations by Hugging Face's.
ACTIVATIONS = {
    'gelu_new': 'gelu',
    'gelu_pytorch_tanh': 'gelu',
    'relu': 'relu',
    'silu': 'silu',
    'swish': 'silu',
}
# Parts that no network here has, and the values of their fields without them.
WITHOUT = {
    'quantization_config': (None,),
    'add_cross_attention': (None, False),
    'use_bidirectional_attention': (None, False),
    'partial_rotary_factor': (None, 1.0),
}


def number(file: epath.Path, name: str, value: Any) -> float:
  """Return a field that must be a positive number."""
  if type(value) not in (int, float) or not 0 < value < math.inf:
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, which is not a positive'
        ' number. Write the one that the model was trained with into it, or'
        ' download the file again.'
    )
  return float(value)


def rope(
    file: epath.Path, config: Mapping[str, Any], layer_type: str | None = None
) -> tuple[float, rope_lib.Scaling | None]:
  """Return theta and scaling of RoPE.

  transformers 5 writes both as `rope_parameters`, some by the type of a layer;
  before, they are `rope_theta` and `rope_scaling`.
  """
  with errors.reading(file):
    fields = config.get('rope_parameters')
    if fields is None:
      scaling = config.get('rope_scaling') or {}
      fields = {'rope_theta': config.get('rope_theta'), **scaling}
    fields = dict(fields.get(layer_type, fields))
  theta = number(file, 'rope_theta', fields.get('rope_theta'))
  kind = fields.get('rope_type', fields.get('type', 'default'))
  if kind == 'default':
    return theta, None
  read = lambda name: number(file, name, fields.get(name))
  if kind == 'linear':
    return theta, rope_lib.Scaling(read('factor'))
  if kind == 'llama3':
    return theta, rope_lib.Scaling(
        read('factor'),
        int(read('original_max_position_embeddings')),
        read('low_freq_factor'),
        read('high_freq_factor'),
    )
  raise errors.CheckpointError(
      f'{file} has rope_type {errors.shown(kind)}, and the network that runs'
      ' here has default, linear or llama3. Pass another model, or one without'
      ' this scaling.'
  )


LAYER_TYPES = {'full_attention': False, 'sliding_attention': True}


def layer_types(file: epath.Path, config: Mapping[str, Any]) -> list[bool]:
  """Return which layers have a window, by `layer_types`."""
  with errors.reading(file):
    types = list(config['layer_types'])
  for each in types:
    if each not in list(LAYER_TYPES):
      raise errors.CheckpointError(
          f'{file} has the layer type {errors.shown(each)}, and the network'
          f' that runs here has {" and ".join(LAYER_TYPES)}. Pass another'
          ' model.'
      )
  return [LAYER_TYPES[each] for each in types]


# Tensors of a layer by parameter.
LLAMA_LAYER = {
    'pre_self_attention_layer_norm/scale': 'input_layernorm.weight',
    'pre_mlp_layer_norm/scale': 'post_attention_layernorm.weight',
    **{
        f'self_attention/{ours}/{kind}': f'self_attn.{theirs}_proj.{their_kind}'
        for ours, theirs in zip(('query', 'key', 'value', 'out'), 'qkvo')
        for kind, their_kind in (('kernel', 'weight'), ('bias', 'bias'))
    },
    **{
        f'mlp/{ours}/{kind}': f'mlp.{theirs}_proj.{their_kind}'
        for ours, theirs in (('wi_0', 'gate'), ('wi_1', 'up'), ('wo', 'down'))
        for kind, their_kind in (('kernel', 'weight'), ('bias', 'bias'))
    },
}
QK_NORMS = {
    'self_attention/query_norm/scale': 'self_attn.q_norm.weight',
    'self_attention/key_norm/scale': 'self_attn.k_norm.weight',
}


def decoder_map(
    name: str, layer: Mapping[str, str]
) -> tensor_maps.TensorMap:
  """Return the names of a decoder alone whose other tensors are Llama's."""
  return tensor_maps.TensorMap(
      name,
      {'decoder': layer},
      {
          'embed_tokens.weight': 'decoder/token_embedder/embedding',
          'norm.weight': 'decoder/decoder_norm/scale',
      },
      before={'decoder': 'layers.'},
  )
