# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART, of which others are variations: a `families.Family`.

Those share the fields of config.json and the names of tensors, and differ in a
few parts of `encoder_decoder.EncoderDecoder`.
"""

from collections.abc import Collection, Mapping
import dataclasses
import math
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import encoder_decoder

NAME = 'BART'
_ACTIVATIONS = {
    'gelu': 'gelu_exact',
    'gelu_new': 'gelu',
    'relu': 'relu',
    'silu': 'silu',
    'swish': 'silu',
}
LIKE_BART = {
    'vocab_size': families.Field(50_265, families.SIZE),
    'd_model': families.Field(1024, families.SIZE, 'hidden_size'),
    'encoder_layers': families.Field(12, families.SIZE),
    'decoder_layers': families.Field(12, families.SIZE),
    'encoder_attention_heads': families.Field(
        16, families.SIZE, 'num_attention_heads'
    ),
    'encoder_ffn_dim': families.Field(4096, families.SIZE),
    # Both stacks have one width of heads and of feed-forward blocks here.
    'decoder_attention_heads': families.Field(
        16, lambda x: (x['encoder_attention_heads'],)
    ),
    'decoder_ffn_dim': families.Field(4096, lambda x: (x['encoder_ffn_dim'],)),
    'max_position_embeddings': families.Field(1024, families.SIZE),
    'activation_function': families.Field('gelu', tuple(_ACTIVATIONS)),
    'scale_embedding': families.Field(False, families.FLAG),
    'tie_word_embeddings': families.Field(True, (True,)),
    'tie_encoder_decoder': families.Field(False, (False, None)),
    'bos_token_id': families.Field(0),
    'pad_token_id': families.Field(1),
    'eos_token_id': families.Field(2),
    'decoder_start_token_id': families.Field(2),
    'forced_eos_token_id': families.Field(2),
    **families.ABSENT,
}
FIELDS = {
    'bart': {
        **LIKE_BART,
        # Of fairseq; transformers does not read it.
        'normalize_before': families.Field(False, (False, None)),
        # Of the first BARTs there.
        'force_bos_token_to_be_generated': families.Field(
            False, families.FLAG
        ),
        'forced_bos_token_id': families.Field(
            lambda x: x['bos_token_id']
            if x['force_bos_token_to_be_generated']
            else None
        ),
    },
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
_EMBEDDING = 'token_embedder/embedding'
_POSITIONS = 'embedder/position_embedder'
_EMBEDDING_NORM = 'embedder/embedding_layer_norm'


def _layer(attentions: Mapping[str, str]) -> dict[str, str]:
  """Return tensors of a layer with attentions, by their names here."""
  norm_of = lambda ours: ours.replace('encoder_decoder', 'cross')
  projections = {
      f'{ours}/{part}': f'{theirs}.{short}_proj'
      for ours, theirs in attentions.items()
      for part, short in (
          ('query', 'q'), ('key', 'k'), ('value', 'v'), ('out', 'out')
      )
  }  # fmt: skip
  projections |= {'mlp/wi': 'fc1', 'mlp/wo': 'fc2'}
  norms = {
      f'{norm_of(ours)}_layer_norm': f'{theirs}_layer_norm'
      for ours, theirs in {**attentions, 'mlp': 'final'}.items()
  }
  with_biases = tensor_maps.with_biases
  return with_biases(projections) | with_biases(norms, 'scale')


TENSORS = tensor_maps.TensorMap(
    NAME,
    {
        'encoder': _layer({'attention': 'self_attn'}),
        'decoder': _layer({
            'self_attention': 'self_attn',
            'encoder_decoder_attention': 'encoder_attn',
        }),
    },
    {
        'shared.weight': _EMBEDDING,
        'encoder.embed_tokens.weight': _EMBEDDING,
        'decoder.embed_tokens.weight': _EMBEDDING,
        _LOGITS_BIAS: 'decoder/logits_bias/bias',
        **{
            f'{stack}.{theirs}': f'{stack}/{ours}'
            for stack in ('encoder', 'decoder')
            for theirs, ours in (
                ('embed_positions.weight', f'{_POSITIONS}/embedding'),
                ('layernorm_embedding.weight', f'{_EMBEDDING_NORM}/scale'),
                ('layernorm_embedding.bias', f'{_EMBEDDING_NORM}/bias'),
                ('layer_norm.weight', f'{stack}_norm/scale'),
                ('layer_norm.bias', f'{stack}_norm/bias'),
            )
        },
    },
    embedding=_EMBEDDING,
    ignored=r'(en|de)coder\.version',
)
tensor_names = TENSORS.sources


def of_config(
    file: epath.Path,
    config: Mapping[str, Any],
    **parts: Any,
) -> encoder_decoder.EncoderDecoder:
  """Return the network of a complete config.json with BART's fields.

  `parts` are fields of the network that are not those of a BART.
  """
  fields = {
      **{ours: config[theirs] for ours, theirs in _SIZES.items()},
      'mlp_activations': (_ACTIVATIONS[config['activation_function']],),
      'max_positions': config['max_position_embeddings'],
      'embedding_scale': (
          math.sqrt(config['d_model']) if config['scale_embedding'] else 1.0
      ),
  }
  return encoder_decoder.EncoderDecoder(**(fields | parts))


def of_tensors(
    network: encoder_decoder.EncoderDecoder, stored: Collection[str]
) -> encoder_decoder.EncoderDecoder:
  """Return the network with a bias of the logits if one is stored."""
  return dataclasses.replace(network, logits_bias=_LOGITS_BIAS in stored)
