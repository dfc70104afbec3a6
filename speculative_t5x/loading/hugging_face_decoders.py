# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Common parts of the Hugging Face families of decoders alone.

A family is a map of tensor names and a map of its config.json's fields to those
of a network. Most are Llama with other parts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
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
_FULL, _SLIDING = 'full_attention', 'sliding_attention'
# Of all decoders alone: parts that no network here has.
ABSENT: families.Fields = {
    'add_cross_attention': families.Field(False, (False, None)),
    'is_causal': families.Field(True, (True, None)),
    'attention_chunk_size': families.Field(None, (None,)),
    **families.ABSENT,
}
# Of those without windows, whose cache has one where these say so.
FULL_ATTENTION: families.Fields = {
    'sliding_window': families.Field(None, (None,)),
    'layer_types': families.Field(None, (None,)),
}
_NUMBER = families.Field(None, families.NUMBER)
_TRAINED = 'original_max_position_embeddings'
_SCALINGS = {
    'default': (),
    'linear': ('factor',),
    'llama3': ('factor', _TRAINED, 'low_freq_factor', 'high_freq_factor'),
}
_WHOLE = {'partial_rotary_factor': families.Field(None, (None, 1.0))}
# Of those that rotate queries and keys.
ROPE: families.Fields = {
    'rope_theta': families.Field(10_000.0),
    'rope_scaling': families.Field(None),
    'rope_parameters': families.Field(None),
    'max_position_embeddings': families.Field(2048),
    **_WHOLE,
}
# Of RoPE itself, and by its kind those of the scaling, in the order of
# `rope_lib.Scaling`.
_OF_ROPE: families.Fields = {
    'rope_type': families.Field('default', tuple(_SCALINGS), 'type'),
    'rope_theta': _NUMBER,
    **_WHOLE,
    # A model whose types of layers have their own passes these one by one.
    **dict.fromkeys((_FULL, _SLIDING), families.Field(None, (None,))),
}


def rope(
    file: epath.Path,
    config: Mapping[str, Any],
    fields: Mapping[str, Any] | None = None,
    theta: str = 'rope_theta',
) -> tuple[float, rope_lib.Scaling | None]:
  """Return theta and scaling of RoPE.

  transformers 5 writes both as `rope_parameters`; before, they are `rope_theta`
  and `rope_scaling`.

  Args:
    file: For messages.
    config: Its fields, complete.
    fields: Those of RoPE; None for what transformers takes.
    theta: The field beside them that has theta where they have none.
  """
  with errors.reading(file):
    if fields is None:
      fields = config['rope_scaling'] or config['rope_parameters'] or {}
    found = {
        'rope_theta': config[theta],
        _TRAINED: config['max_position_embeddings'],
        **fields,
    }
  found = families.complete(file, found, _OF_ROPE, 'RoPE')
  of_scaling = dict.fromkeys(_SCALINGS[found['rope_type']], _NUMBER)
  found = families.complete(file, found, of_scaling, 'RoPE')
  numbers = [found[name] for name in of_scaling]
  scaling = rope_lib.Scaling(*numbers) if numbers else None
  return float(found['rope_theta']), scaling


def layer_types(
    file: epath.Path, config: Mapping[str, Any], by_turns: Sequence[bool]
) -> Sequence[bool]:
  """Return which layers have a window: by `layer_types`, else by turns."""
  if config['layer_types'] is None:
    return by_turns
  with errors.reading(file):
    types = list(config['layer_types'])
  known = [_FULL] if config['sliding_window'] is None else [_FULL, _SLIDING]
  for each in types:
    if each not in known:
      raise errors.CheckpointError(
          f'{file} has the layer type {errors.shown(each)}, and the network'
          f' that runs here has {" and ".join(known)}. Pass another model.'
      )
  if len(types) != config['num_hidden_layers']:
    raise errors.CheckpointError(
        f'{file} has {len(types)} layer_types and num_hidden_layers'
        f' {config["num_hidden_layers"]}. Download it again.'
    )
  return [each == _SLIDING for each in types]


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
