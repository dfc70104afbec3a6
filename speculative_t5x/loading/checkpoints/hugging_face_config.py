# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The config.json of a Hugging Face T5, and its sizes under T5X's names."""

from typing import Any

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.files import json_file

# What a model type means where its config.json is silent.
_DEFAULTS = {
    't5': {
        'feed_forward_proj': 'relu',
        'pad_token_id': 0,
        'eos_token_id': 1,
    },
    'mt5': {
        'feed_forward_proj': 'gated-gelu',
        'pad_token_id': 0,
        'eos_token_id': 1,
        'decoder_start_token_id': 0,
    },
}
_ACTIVATIONS = {
    'relu': ('relu',),
    'gated-gelu': ('gelu', 'linear'),
    'gated-silu': ('silu', 'linear'),
}
# The function that each of them computes, which a config may name as well.
_FUNCTIONS = {'relu': 'relu', 'gated-gelu': 'gelu_new', 'gated-silu': 'silu'}
# T5X has these built in.
_FIXED = {
    'relative_attention_num_buckets': 32,
    'relative_attention_max_distance': 128,
    'layer_norm_epsilon': 1e-6,
}
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'd_model',
    'num_heads': 'num_heads',
    'head_dim': 'd_kv',
    'num_encoder_layers': 'num_layers',
    'mlp_dim': 'd_ff',
}


def read(file: epath.Path) -> dict[str, Any]:
  """Reads a config.json, with its model type's defaults where it is silent.

  Raises:
    errors.CheckpointError: if the file is no JSON, or of another model type
      than T5 and mT5.
  """
  return _with_defaults(file, read_json(file))


def fields(file: epath.Path, config: dict[str, Any]) -> dict[str, Any]:
  """Returns the fields of `T5Config` that say what network a config is of.

  Args:
    file: for the messages.
    config: from `read`.
  Returns:
    vocab_size, emb_dim, num_heads, head_dim, num_encoder_layers,
    num_decoder_layers, mlp_dim, mlp_activations and logits_via_embedding.
  Raises:
    errors.CheckpointError: if the network is not T5 1.0's or 1.1's.
  """
  _check_network(file, config)
  sizes = {ours: _size(file, config, name) for ours, name in _SIZES.items()}
  num_decoder_layers = sizes['num_encoder_layers']
  if config.get('num_decoder_layers') is not None:  # optional
    num_decoder_layers = _size(file, config, 'num_decoder_layers')
  return {
      **sizes,
      'num_decoder_layers': num_decoder_layers,
      'mlp_activations': _ACTIVATIONS[config['feed_forward_proj']],
      'logits_via_embedding': _is_scaled(config),
  }


def _is_scaled(config: dict[str, Any]) -> bool:
  """Returns whether the output head is the scaled embedding, as in T5 1.0.

  An unscaled head may be the embedding too. From version 5 on, transformers
  writes tie_word_embeddings true for every model; scale_decoder_outputs says
  which T5 scales, and no mT5 does.
  """
  if config['model_type'] == 'mt5':
    return False
  is_scaled = config.get('scale_decoder_outputs')
  if is_scaled is None:
    is_scaled = config.get('tie_word_embeddings')
  return is_scaled is not False


def _with_defaults(file: epath.Path, config: dict[str, Any]) -> dict[str, Any]:
  model_type = config.get('model_type')
  if not isinstance(model_type, str) or model_type not in _DEFAULTS:
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, _DEFAULTS))} have the network that runs'
        ' here. Pass a T5 1.0, T5 1.1 or mT5.'
    )
  return _DEFAULTS[model_type] | config


def _check_network(file: epath.Path, config: dict[str, Any]) -> None:
  if 'quantization_config' in config:
    raise errors.CheckpointError(
        f'{file} is of a quantized model (quantization_config), which is not'
        ' read here. Pass the model that it was made from.'
    )
  activations = config['feed_forward_proj']
  if not isinstance(activations, str) or activations not in _ACTIVATIONS:
    raise errors.CheckpointError(
        f'{file} has feed_forward_proj {errors.shown(activations)}; only'
        f' {", ".join(_ACTIVATIONS)} are known here.'
    )
  for name in ('tie_word_embeddings', 'scale_decoder_outputs'):
    if not isinstance(config.get(name), bool | None):
      raise errors.CheckpointError(
          f'{file} has {name} {errors.shown(config[name])}, which is neither'
          ' true nor false. Copy or download it again.'
      )
  function = _FUNCTIONS[activations]
  for name, value in (*_FIXED.items(), ('dense_act_fn', function)):
    if config.get(name) not in (None, value):
      raise errors.CheckpointError(
          f'{file} has {name} {errors.shown(config[name])}; T5X and the network'
          f' here have {value} built in, so the model would compute something'
          ' else.'
      )


def _size(file: epath.Path, config: dict[str, Any], name: str) -> int:
  value = config.get(name)
  if not isinstance(value, int) or isinstance(value, bool) or value < 1:
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, which is no size. Copy or'
        ' download it again.'
    )
  return value


def read_json(file: epath.Path) -> dict[str, Any]:
  """Reads a JSON object.

  Raises:
    errors.CheckpointError: if the file holds none.
  """
  try:
    return json_file.read(file)
  except errors.CheckpointError:
    raise
  except (OSError, ValueError) as error:
    raise errors.CheckpointError(
        f'{file} cannot be read as JSON: {errors.first_line(error)}. Copy or'
        ' download it again.'
    ) from error
