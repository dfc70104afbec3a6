# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma 2, its part of text: a `families.Family`.

Its config.json holds one of Gemma 3 for the text of the encoder, beside one of
images, and one for the decoder.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.loading.families import gemma3
from speculative_t5x.loading.families import llama
from speculative_t5x.loading.families import t5gemma_checkpoints
from speculative_t5x.networks import decoder_only_modules as modules
from speculative_t5x.networks import t5gemma

NAME = 'T5Gemma 2'
DEFAULTS = {
    't5gemma2': {
        **t5gemma_checkpoints.DEFAULTS['t5gemma'],
        'encoder': {},
        'decoder': {},
    },
}
_OF_STACK = {
    **gemma3.DEFAULTS['gemma3_text'],
    'vocab_size': 262_208,
    'hidden_size': 2304,
    'intermediate_size': 9216,
    'num_hidden_layers': 26,
}
_TIED = {'tie_word_embeddings': True}  # as the whole model's is
_EOI = 256_000  # the end of an image, whose embedding is a row of its own
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
    decoders.QK_NORMS,
    # Earlier versions of transformers write no text_model.
    optional=r'^model\.|\btext_model\.',
    ignored=r'encoder\.(vision_tower|multi_modal_projector)\..*',
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> t5gemma.T5Gemma:
  families.check_config(
      file, config, (), {'tie_word_embeddings': (True,)}, 'a T5Gemma 2'
  )
  with errors.reading(f'encoder and decoder of {file}'):
    of_encoder, of_decoder = dict(config['encoder']), dict(config['decoder'])
    text = dict(of_encoder.get('text_config', {}))
    of_encoder = {'eoi_token_index': _EOI, **of_encoder}
  families.check_config(
      file, of_encoder, ('eoi_token_index',), {}, 'a T5Gemma 2'
  )
  encoder, decoder = (
      gemma3.gemma_fields(
          file, _OF_STACK | fields | _TIED, dtype, 'a T5Gemma 2'
      )
      | {'unscaled_id': of_encoder['eoi_token_index']}
      for fields in (text, of_decoder)
  )
  encoder['kinds'] = [_of_both_sides(kind) for kind in encoder['kinds']]
  with llama.naming(file):
    return t5gemma.T5Gemma(
        **decoder,
        encoder=modules.Sizes(**encoder),
        merged_attention=True,
        shares_embedding=True,
    )


def _of_both_sides(kind: modules.LayerKind) -> modules.LayerKind:
  """Return the kind of an encoder's layer, half of whose window is ahead."""
  if kind.window is None:
    return kind
  ahead = kind.window // 2
  return dataclasses.replace(kind, window=(kind.window + 1) // 2, ahead=ahead)
