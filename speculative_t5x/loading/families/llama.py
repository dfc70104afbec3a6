# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Llama, of which most decoders alone are variations: a `families.Family`.

Those share fields of config.json and names of tensors, and differ in a few
parts of `decoder_only.DecoderOnly`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import rope as rope_lib

NAME = 'Llama'
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
# Of those that are Llama with other parts.
LIKE_LLAMA = {
    'vocab_size': families.Field(32_000, families.SIZE),
    'hidden_size': families.Field(4096, families.SIZE),
    'intermediate_size': families.Field(11_008, families.SIZE),
    'num_hidden_layers': families.Field(32, families.SIZE),
    'num_attention_heads': families.Field(32, families.SIZE),
    'num_key_value_heads': families.Field(
        lambda x: x['num_attention_heads'], families.SIZE
    ),
    'head_dim': families.Field(
        lambda x: x['hidden_size'] // x['num_attention_heads'],
        families.SIZE,
    ),
    'rms_norm_eps': families.Field(1e-6, families.NUMBER),
    'attention_bias': families.Field(False, families.FLAG),
    'tie_word_embeddings': families.Field(False, (False, True)),
    'bos_token_id': families.Field(1),
    'eos_token_id': families.Field(2),
    **ROPE,
    **ABSENT,
}
FIELDS = {
    'llama': {
        **LIKE_LLAMA,
        'hidden_act': families.Field('silu', tuple(ACTIVATIONS)),
        'mlp_bias': families.Field(False, families.FLAG),
        **FULL_ATTENTION,
    }
}
# Tensors of a layer by parameter.
LLAMA_LAYER = {
    'pre_self_attention_layer_norm/scale': 'input_layernorm.weight',
    'pre_mlp_layer_norm/scale': 'post_attention_layernorm.weight',
    **tensor_maps.with_biases({
        'self_attention/query': 'self_attn.q_proj',
        'self_attention/key': 'self_attn.k_proj',
        'self_attention/value': 'self_attn.v_proj',
        'self_attention/out': 'self_attn.o_proj',
        'mlp/wi_0': 'mlp.gate_proj',
        'mlp/wi_1': 'mlp.up_proj',
        'mlp/wo': 'mlp.down_proj',
    }),
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


tensor_names = decoder_map(NAME, LLAMA_LAYER).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> decoder_only.DecoderOnly:
  kind = config_lib.LayerKind(None, *rope(file, config))
  return decoder_only.DecoderOnly(
      **network_fields(config),
      kinds=(kind,),
      mlp_bias=bool(config['mlp_bias']),
  )


def network_fields(
    config: Mapping[str, Any], activation: str = 'hidden_act'
) -> dict[str, Any]:
  """Return the fields of a network that a config.json states as Llama's does.

  Args:
    config: It, complete.
    activation: Its field that names the activation.
  """
  has_bias = bool(config['attention_bias'])
  return dict(
      vocab_size=config['vocab_size'],
      emb_dim=config['hidden_size'],
      num_layers=config['num_hidden_layers'],
      num_heads=config['num_attention_heads'],
      num_kv_heads=config['num_key_value_heads'],
      head_dim=config['head_dim'],
      mlp_dim=config['intermediate_size'],
      mlp_activations=(ACTIVATIONS[config[activation]], 'linear'),
      norm_eps=float(config['rms_norm_eps']),
      qkv_bias=has_bias,
      out_bias=has_bias,
      logits_via_embedding=config['tie_word_embeddings'],
  )


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


def layer_kinds(
    file: epath.Path,
    config: Mapping[str, Any],
    by_turns: Sequence[bool],
    kinds: Mapping[bool, config_lib.LayerKind],
) -> list[config_lib.LayerKind]:
  """Return the kinds of the layers, or of the first ones, which take turns.

  Args:
    file: For messages.
    config: Its fields, complete.
    by_turns: Which layers have a window, where `layer_types` does not say it.
    kinds: The kinds of layers with a window and without one.
  """
  if config['layer_types'] is None:
    return [kinds[x] for x in by_turns]
  with errors.reading(file):
    types = list(config['layer_types'])
  known = [_FULL] if config['sliding_window'] is None else [_FULL, _SLIDING]
  for layer_type in types:
    if layer_type not in known:
      raise errors.CheckpointError(
          f'{file} has the layer type {errors.shown(layer_type)}, and the'
          f' network that runs here has {" and ".join(known)}. Pass another'
          ' model.'
      )
  if len(types) != config['num_hidden_layers']:
    raise errors.CheckpointError(
        f'{file} has {len(types)} layer_types and num_hidden_layers'
        f' {config["num_hidden_layers"]}. Download it again.'
    )
  return [kinds[x == _SLIDING] for x in types]
