# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART, of which others are variations: a `families.Family`.

Those share the fields of config.json and the names of tensors, and differ in a
few parts of `encoder_decoder.EncoderDecoder`.
"""

from collections.abc import Collection, Mapping
import dataclasses
import math
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.networks import encoder_decoder

NAME = 'BART'
DEFAULTS = {
    'bart': {
        'activation_function': 'gelu',
        'max_position_embeddings': 1024,
        'scale_embedding': False,
        'tie_word_embeddings': True,
        'bos_token_id': 0,
        'pad_token_id': 1,
        'eos_token_id': 2,
        'decoder_start_token_id': 2,
        'forced_eos_token_id': 2,
    },
}
_ACTIVATIONS = {
    'gelu': 'gelu_exact',
    'gelu_new': 'gelu',
    'relu': 'relu',
    'silu': 'silu',
    'swish': 'silu',
}
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'd_model',
    'num_heads': 'encoder_attention_heads',
    'num_encoder_layers': 'encoder_layers',
    'num_decoder_layers': 'decoder_layers',
    'mlp_dim': 'encoder_ffn_dim',
}
_LOGITS_BIAS = 'final_logits_bias'
# The embedding has several names, and any of them may be the stored one.
_EMBEDDINGS = (
    'shared.weight',
    'encoder.embed_tokens.weight',
    'decoder.embed_tokens.weight',
    'lm_head.weight',
)
_ATTENTIONS = {
    'encoder': {'self_attn': 'attention'},
    'decoder': {
        'self_attn': 'self_attention',
        'encoder_attn': 'encoder_decoder_attention',
    },
}
_NORMS = {
    'encoder': {'self_attn_layer_norm': 'attention_layer_norm'},
    'decoder': {
        'self_attn_layer_norm': 'self_attention_layer_norm',
        'encoder_attn_layer_norm': 'cross_attention_layer_norm',
    },
}
_LINEAR = {'weight': 'kernel', 'bias': 'bias'}
_NORM = {'weight': 'scale', 'bias': 'bias'}


def of_config(
    file: epath.Path,
    config: Mapping[str, Any],
    dtype: Any,
    model: str = 'a BART',
    **parts: Any,
) -> encoder_decoder.EncoderDecoder:
  """Return the network of a config.json with BART's fields.

  `model` is what to pass instead of one that is refused, `parts` are fields of
  the network that are not those of a BART.
  """
  allowed = {
      'activation_function': tuple(_ACTIVATIONS),
      'scale_embedding': (False, True),
      'tie_word_embeddings': (True,),
      'quantization_config': (None,),
      # Both stacks have one width of heads and of feed-forward blocks here.
      'decoder_attention_heads': (config.get('encoder_attention_heads'),),
      'decoder_ffn_dim': (config.get('encoder_ffn_dim'),),
      # Of fairseq; transformers does not read it.
      'normalize_before': (None, False, parts.get('pre_norm', False)),
  }
  sizes = *_SIZES.values(), 'max_position_embeddings'
  families.check_config(file, config, sizes, allowed, model)
  fields = {
      **{ours: config[theirs] for ours, theirs in _SIZES.items()},
      'mlp_activations': (_ACTIVATIONS[config['activation_function']],),
      'max_positions': config['max_position_embeddings'],
      'embedding_scale': (
          math.sqrt(config['d_model']) if config['scale_embedding'] else 1.0
      ),
      'dtype': dtype,
  }
  try:
    return encoder_decoder.EncoderDecoder(**(fields | parts))
  except ValueError as error:
    raise errors.CheckpointError(f'{file}: {error}') from error


def tensor_names(
    folder: epath.Path,
    stored: Collection[str],
    network: Any,
    name: str = NAME,
    ignored: str = r'(en|de)coder\.version',
) -> tuple[dict[str, families.Source], dict[str, str]]:
  """Return which tensor is which parameter; see `families.Family`.

  `name` names the family in errors, and `ignored` is a pattern of tensors that
  no network uses.
  """
  # Models without a head write no prefix.
  inner = {x: x.removeprefix('model.') for x in stored}
  kept = [x for x in stored if not re.fullmatch(ignored, inner[x])]
  embeddings = sorted(
      (x for x in kept if inner[x] in _EMBEDDINGS),
      key=lambda x: _EMBEDDINGS.index(inner[x]),
  )
  ours = {x: _parameter(inner[x]) for x in kept if x not in embeddings}
  families.check_all_known(folder, name, [x for x in ours if not ours[x]])
  sources = {
      parameter: families.Source(x, parameter.endswith('/kernel'))
      for x, parameter in ours.items()
  }
  for first in embeddings[:1]:  # without one, a parameter will be missing
    sources['token_embedder/embedding'] = families.Source(first)
  return sources, dict.fromkeys(embeddings[1:], *embeddings[:1])


def of_tensors(
    network: encoder_decoder.EncoderDecoder, stored: Collection[str]
) -> encoder_decoder.EncoderDecoder:
  """Return the network with a bias of the logits if one is stored."""
  return dataclasses.replace(network, logits_bias=_LOGITS_BIAS in stored)


def _parameter(name: str) -> str | None:
  """Return the parameter of a tensor, None for an unknown one."""
  if name == _LOGITS_BIAS:
    return 'decoder/logits_bias/bias'
  if match := re.fullmatch(r'(encoder|decoder)\.layers\.(\d+)\.(.+)', name):
    stack, layer, inner = match.groups()
    if (found := _IN_LAYER[stack].get(inner)) is not None:
      return f'{stack}/layers_{layer}/{found}'
    return None
  return _OUTSIDE_LAYERS.get(name)


def _in_layer(stack: str) -> dict[str, str]:
  """Return parameters of a layer by tensors, as fc1.weight."""
  projections = {
      f'{theirs}.{x}_proj': f'{ours}/{projection}'
      for theirs, ours in _ATTENTIONS[stack].items()
      for x, projection in (
          ('q', 'query'), ('k', 'key'), ('v', 'value'), ('out', 'out')
      )
  }  # fmt: skip
  projections |= {'fc1': 'mlp/wi', 'fc2': 'mlp/wo'}
  norms = {**_NORMS[stack], 'final_layer_norm': 'mlp_layer_norm'}
  return {
      f'{theirs}.{kind}': f'{ours}/{our_kind}'
      for names, kinds in ((projections, _LINEAR), (norms, _NORM))
      for theirs, ours in names.items()
      for kind, our_kind in kinds.items()
  }


_IN_LAYER = {stack: _in_layer(stack) for stack in _ATTENTIONS}
_OUTSIDE_LAYERS = {
    f'{stack}.{theirs}': f'{stack}/{ours}'
    for stack in _ATTENTIONS
    for theirs, ours in (
        ('embed_positions.weight', 'embedder/position_embedder/embedding'),
        ('layernorm_embedding.weight', 'embedder/embedding_layer_norm/scale'),
        ('layernorm_embedding.bias', 'embedder/embedding_layer_norm/bias'),
        ('layer_norm.weight', f'{stack}_norm/scale'),
        ('layer_norm.bias', f'{stack}_norm/bias'),
    )
}
