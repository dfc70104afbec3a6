# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma, and T5Gemma 2's part of text: a family.

The config.json of a T5Gemma holds one of Gemma 2 for the encoder and one for
the decoder. That of a T5Gemma 2 holds one of Gemma 3 for the text of the
encoder, beside one of images, and one for the decoder.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.loading.families import gemma3
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import t5gemma

NAME = 'T5Gemma'
_STACKS = 'encoder', 'decoder'
# What is not stated of the whole model is that of its decoder.
_OF_BOTH = {
    'tie_word_embeddings': families.Field(True, families.FLAG),
    **families.unchecked(
        encoder=None, decoder=None, decoder_start_token_id=None
    ),
    **{
        name: families.Field(
            lambda x, name=name: dict(x['decoder']).get(
                name, gemma3.LIKE_GEMMA[name].default
            )
        )
        for name in ('pad_token_id', 'eos_token_id', 'bos_token_id')
    },
    **families.ABSENT,
}
FIELDS = {
    't5gemma': {**_OF_BOTH, 'vocab_size': families.Field(256_000)},
    't5gemma2': {
        **families.with_defaults(_OF_BOTH, encoder={}, decoder={}),
        'tie_word_embeddings': families.Field(True, (True,)),
    },
}
# Of a stack of T5Gemma; those of T5Gemma 2 have Gemma 3's.
OF_STACK = {
    **families.with_defaults(
        gemma3.LIKE_GEMMA,
        vocab_size=256_000,
        max_position_embeddings=8192,
        final_logit_softcapping=30.0,
    ),
    'attn_logit_softcapping': families.Field(
        50.0, families.NUMBER_OR_NONE, ours='attention_cap'
    ),
}
_OF_ENCODER_2 = {
    'text_config': families.Field({}),
    # The end of an image, whose embedding is a row of its own.
    'eoi_token_index': families.Field(256_000, families.SIZE),
}


_LAYERS = (
    (r'^(en|de)coder\.layers\.(\d+)\.', r'\1coder/layers_\2/'),
    (r'^(en|de)coder\.norm\.', r'\1coder/\1coder_norm.'),
    (r'^(encoder/.*)self_attn', r'\1attention'),
    (r'_self_attn_layernorm\.', '_self_attention_layer_norm.'),
    (r'_attention_layernorm\.', '_attention_layer_norm.'),
    (r'_cross_attn_layernorm\.', '_cross_attention_layer_norm.'),
    (r'_feedforward_layernorm\.', '_mlp_layer_norm.'),
    (r'/self_attn\.', '/self_attention/'),
    (r'/attention\.', '/attention/'),
    (r'/cross_attn\.', '/encoder_decoder_attention/'),
    (r'^lm_head\.out_proj\.', 'lm_head.'),
)
_FIRST = tensor_maps.TensorMap(
    NAME,
    (
        (r'^model\.', ''),
        (
            r'^(en|de)coder\.embed_tokens\.weight$',
            r'\1coder/token_embedder/embedding',
        ),
        *_LAYERS,
    ),
)
_SECOND = tensor_maps.TensorMap(
    NAME,
    (
        # Earlier versions of transformers write no text_model.
        (r'^model\.|\btext_model\.', ''),
        (
            r'^(en|de)coder\.embed_tokens\.weight$',
            'decoder/token_embedder/embedding',
        ),
        (
            r'^(en|de)coder\.embed_tokens\.eoi_embedding$',
            'decoder/token_embedder/unscaled',
        ),
        *_LAYERS,
    ),
    ignored=r'encoder\.(vision_tower|multi_modal_projector)\.|inv_freq$',
)


def tensor_names(folder, stored, network):
  names = _SECOND if network.merged_attention else _FIRST
  return names.sources(folder, stored, network)


def of_config(file, config) -> t5gemma.T5Gemma:
  is_second = config['model_type'] == 't5gemma2'
  of_stack = _of_second if is_second else _of_first
  encoder, decoder = (of_stack(file, config, stack) for stack in _STACKS)
  encoder['kinds'] = [_both_sides(x, is_second) for x in encoder['kinds']]
  return t5gemma.T5Gemma(
      **decoder,
      encoder=config_lib.Stack(**encoder),
      merged_attention=is_second,
      shares_embedding=is_second,
  )


def _of_first(
    file: epath.Path, config: Mapping[str, Any], stack: str
) -> dict[str, Any]:
  """Return the sizes of a stack, as fields of `config_lib.Stack`."""
  with errors.reading(f'{stack} of {file}'):
    stated = {'vocab_size': config['vocab_size']} | dict(config[stack])
  # The whole model's counts, whatever a stack says, as in transformers 5.
  stated['tie_word_embeddings'] = bool(config['tie_word_embeddings'])
  fields = families.complete(file, stated, OF_STACK, f'{stack} of {NAME}')
  rope = llama.rope(file, fields)
  kinds = {
      False: config_lib.LayerKind(None, *rope),
      True: config_lib.LayerKind(fields['sliding_window'], *rope),
  }
  kinds = llama.layer_kinds(file, fields, [True, False], kinds)
  return gemma3.gemma_fields(OF_STACK, fields) | {'kinds': kinds}


def _of_second(
    file: epath.Path, config: Mapping[str, Any], stack: str
) -> dict[str, Any]:
  """Return the sizes of a stack, as fields of `config_lib.Stack`."""
  name = f'{stack} of {NAME} 2'
  with errors.reading(f'{stack} of {file}'):
    encoder = families.complete(file, config['encoder'], _OF_ENCODER_2, name)
    stated = encoder['text_config']
    if stack == 'decoder':
      stated = config['decoder']
    stated = stated | {'tie_word_embeddings': True}  # as the whole model's is
  fields = families.complete(file, stated, gemma3.FIELDS['gemma3_text'], name)
  unscaled = {'unscaled_id': encoder['eoi_token_index']}
  return gemma3.gemma3_fields(file, fields) | unscaled


def _both_sides(
    kind: config_lib.LayerKind, is_second: bool
) -> config_lib.LayerKind:
  """Return the kind of an encoder's layer, whose window has two sides."""
  if (window := kind.window) is None:
    return kind
  if not is_second:  # as many on both, the query included
    return dataclasses.replace(kind, ahead=window - 1)
  half = (window + 1) // 2
  return dataclasses.replace(kind, window=half, ahead=window // 2)
