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
DEFAULTS = {
    'llama': {
        'hidden_act': 'silu',
        'rms_norm_eps': 1e-6,
        'tie_word_embeddings': False,
        'eos_token_id': 2,
    },
}
_SIZES = (
    'vocab_size', 'hidden_size', 'num_hidden_layers', 'num_attention_heads',
    'num_key_value_heads', 'head_dim', 'intermediate_size',
)  # fmt: skip
tensor_names = decoders.decoder_map(NAME, decoders.LLAMA_LAYER).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> decoder_only.DecoderOnly:
  kind = decoder_only.LayerKind(None, *decoders.rope(file, config))
  return like_llama(file, config, dtype, 'a Llama', kinds=(kind,))


def like_llama(
    file: epath.Path,
    config: Mapping[str, Any],
    dtype: Any,
    model: str,
    **parts: Any,
) -> decoder_only.DecoderOnly:
  """Return the network of a config.json with Llama's fields.

  `model` is what to pass instead of one that is refused, `parts` are fields of
  the network that are not those of a Llama.
  """
  fields = llama_fields(file, config, dtype, model, **parts)
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
    file: epath.Path,
    config: Mapping[str, Any],
    dtype: Any,
    model: str,
    **parts: Any,
) -> dict[str, Any]:
  """Return the fields of `like_llama`'s network."""
  config = dict(config)
  heads = config.get('num_attention_heads')
  if config.get('num_key_value_heads') is None:
    config['num_key_value_heads'] = heads
  width = config.get('hidden_size')
  if config.get('head_dim') is None and {type(heads), type(width)} == {int}:
    config['head_dim'] = width // max(heads, 1)
  allowed = {
      'hidden_act': tuple(decoders.ACTIVATIONS),
      'attention_bias': (None, False, True),
      'mlp_bias': (None, False, True),
      'tie_word_embeddings': (False, True),
      **decoders.WITHOUT,
  }
  families.check_config(file, config, _SIZES, allowed, model)
  has_bias = bool(config.get('attention_bias'))
  sizes = dict(
      vocab_size=config['vocab_size'],
      emb_dim=config['hidden_size'],
      num_layers=config['num_hidden_layers'],
      num_heads=config['num_attention_heads'],
      num_kv_heads=config['num_key_value_heads'],
      head_dim=config['head_dim'],
      mlp_dim=config['intermediate_size'],
      mlp_activations=(decoders.ACTIVATIONS[config['hidden_act']], 'linear'),
      norm_eps=decoders.number(
          file, 'rms_norm_eps', config.get('rms_norm_eps')
      ),
      qkv_bias=has_bias,
      out_bias=has_bias,
      mlp_bias=bool(config.get('mlp_bias')),
      logits_via_embedding=config['tie_word_embeddings'],
      dtype=dtype,
  )
  return sizes | parts
