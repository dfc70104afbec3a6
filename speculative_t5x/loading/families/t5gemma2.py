# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma 2, its part of text: a `families.Family`.

Its config.json holds one of Gemma 3 for the text of the encoder, beside one of
images, and one for the decoder.
"""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading.families import gemma3
from speculative_t5x.loading.families import llama
from speculative_t5x.loading.families import t5gemma_checkpoints
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import t5gemma

NAME = 'T5Gemma 2'
FIELDS = {
    't5gemma2': {
        **families.with_defaults(
            t5gemma_checkpoints.OF_BOTH, encoder={}, decoder={}
        ),
        'tie_word_embeddings': families.Field(True, (True,)),
    }
}
_OF_ENCODER = {
    'text_config': families.Field({}),
    # The end of an image, whose embedding is a row of its own.
    'eoi_token_index': families.Field(256_000, families.SIZE, 'eoi_token_id'),
}
_TIED = {'tie_word_embeddings': True}  # as the whole model's is
_EMBEDDER = 'decoder/token_embedder'
tensor_names = t5gemma_checkpoints.tensor_map(
    NAME,
    {
        f'{stack}.embed_tokens.{theirs}': f'{_EMBEDDER}/{ours}'
        for theirs, ours in (
            ('weight', 'embedding'), ('eoi_embedding', 'unscaled')
        )
        for stack in ('encoder', 'decoder')
    },
    {'self_attention': 'self_attn'},
    llama.QK_NORMS,
    # Earlier versions of transformers write no text_model.
    optional=r'^model\.|\btext_model\.',
    ignored=r'encoder\.(vision_tower|multi_modal_projector)\..*',
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> t5gemma.T5Gemma:
  complete = functools.partial(families.complete, file, network=NAME)
  with errors.reading(f'encoder and decoder of {file}'):
    of_encoder = complete(config['encoder'], _OF_ENCODER)
    of_stacks = [
        complete(x | _TIED, gemma3.FIELDS['gemma3_text'])
        for x in (of_encoder['text_config'], config['decoder'])
    ]
  encoder, decoder = (
      gemma3.gemma3_fields(file, fields)
      | {'unscaled_id': of_encoder['eoi_token_index']}
      for fields in of_stacks
  )
  encoder['kinds'] = [_of_both_sides(kind) for kind in encoder['kinds']]
  return t5gemma.T5Gemma(
      **decoder,
      encoder=config_lib.Stack(**encoder),
      merged_attention=True,
      shares_embedding=True,
  )


def _of_both_sides(kind: config_lib.LayerKind) -> config_lib.LayerKind:
  """Return the kind of an encoder's layer, half of whose window is ahead."""
  if kind.window is None:
    return kind
  ahead = kind.window // 2
  return dataclasses.replace(kind, window=(kind.window + 1) // 2, ahead=ahead)
