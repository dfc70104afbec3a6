# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Llama, all versions of text: a `families.Family`."""

from collections.abc import Iterator, Mapping
import contextlib
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.networks import decoder_only

NAME = 'Llama'
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
    **decoders.ROPE,
    **decoders.ABSENT,
}
FIELDS = {
    'llama': {
        **LIKE_LLAMA,
        'hidden_act': families.Field('silu', tuple(decoders.ACTIVATIONS)),
        'mlp_bias': families.Field(False, families.FLAG),
        **decoders.FULL_ATTENTION,
    }
}
tensor_names = decoders.decoder_map(NAME, decoders.LLAMA_LAYER).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> decoder_only.DecoderOnly:
  kind = decoder_only.LayerKind(None, *decoders.rope(file, config))
  fields = llama_fields(config, dtype, kinds=(kind,))
  with naming(file):
    return decoder_only.DecoderOnly(**fields)


@contextlib.contextmanager
def naming(file: epath.Path) -> Iterator[None]:
  """Name the file of sizes that a network refuses."""
  try:
    yield
  except ValueError as error:
    raise errors.CheckpointError(f'{file}: {error}') from error


def llama_fields(
    config: Mapping[str, Any],
    dtype: Any,
    activation: str = 'hidden_act',
    **parts: Any,
) -> dict[str, Any]:
  """Return the fields of the network of a config.json with Llama's fields.

  Args:
    config: It, complete.
    dtype: To decode in.
    activation: Its field that names the activation.
    **parts: Fields of the network that are not those of a Llama.
  """
  has_bias = bool(config['attention_bias'])
  sizes = dict(
      vocab_size=config['vocab_size'],
      emb_dim=config['hidden_size'],
      num_layers=config['num_hidden_layers'],
      num_heads=config['num_attention_heads'],
      num_kv_heads=config['num_key_value_heads'],
      head_dim=config['head_dim'],
      mlp_dim=config['intermediate_size'],
      mlp_activations=(decoders.ACTIVATIONS[config[activation]], 'linear'),
      norm_eps=float(config['rms_norm_eps']),
      qkv_bias=has_bias,
      out_bias=has_bias,
      mlp_bias=bool(config.get('mlp_bias')),
      logits_via_embedding=config['tie_word_embeddings'],
      dtype=dtype,
  )
  return sizes | parts
