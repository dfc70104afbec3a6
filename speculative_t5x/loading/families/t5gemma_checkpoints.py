# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma: a `families.Family`.

Its config.json holds one of Gemma 2 for the encoder and one for the decoder.
"""

from collections.abc import Mapping
import types
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
# What is not stated of the whole model is that of its decoder.
OF_BOTH = {
    'encoder': families.Field(None),
    'decoder': families.Field(None),
    'tie_word_embeddings': families.Field(True, families.FLAG),
    'decoder_start_token_id': families.Field(None),
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
FIELDS = {'t5gemma': {**OF_BOTH, 'vocab_size': families.Field(256_000)}}
OF_STACK = {
    **families.with_defaults(
        gemma3.LIKE_GEMMA,
        vocab_size=256_000,
        max_position_embeddings=8192,
        final_logit_softcapping=30.0,
    ),
    'attn_logit_softcapping': families.Field(50.0, families.NUMBER_OR_NONE),
}


def _layer(
    blocks: Mapping[str, str], also: Mapping[str, str]
) -> dict[str, str]:
  """Return tensors of a layer with attentions, by their names here."""
  norm_of = lambda ours: ours.replace('encoder_decoder', 'cross')
  own = {x: y for x, y in llama.LLAMA_LAYER.items() if 'norm' not in x}
  return {
      f'{place}_{norm_of(ours)}_layer_norm/scale':
          f'{place}_{theirs}_layernorm.weight'
      for ours, theirs in {**blocks, 'mlp': 'feedforward'}.items()
      for place in ('pre', 'post')
  } | {
      name.replace('self_attention', ours): tensor.replace('self_attn', theirs)
      for ours, theirs in blocks.items()
      for name, tensor in (own | also).items()
  }  # fmt: skip


def tensor_map(
    name: str,
    outside: Mapping[str, str],
    decoder: Mapping[str, str],
    also: Mapping[str, str] = types.MappingProxyType({}),
    **others: Any,
) -> tensor_maps.TensorMap:
  """Return the names of an encoder-decoder of Gemma.

  Args:
    name: See `TensorMap`.
    outside: Likewise, but for norms.
    decoder: Tensors of the attentions of its decoder by their names here.
    also: Further tensors of an attention by parameter.
    **others: Other attributes of `TensorMap`.
  """
  norms = {
      f'{stack}.norm.weight': f'{stack}/{stack}_norm/scale'
      for stack in ('encoder', 'decoder')
  }
  layers = {
      'encoder': _layer({'attention': 'self_attn'}, also),
      'decoder': _layer(decoder, also),
  }
  return tensor_maps.TensorMap(
      name, layers, outside | norms, head='lm_head.out_proj.weight', **others
  )


tensor_names = tensor_map(
    NAME,
    {
        f'{stack}.embed_tokens.weight': f'{stack}/token_embedder/embedding'
        for stack in ('encoder', 'decoder')
    },
    {
        'self_attention': 'self_attn',
        'encoder_decoder_attention': 'cross_attn',
    },
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> t5gemma.T5Gemma:
  encoder, decoder = (
      _stack(file, config, stack) for stack in ('encoder', 'decoder')
  )
  return t5gemma.T5Gemma(**decoder, encoder=config_lib.Stack(**encoder))


def _stack(
    file: epath.Path, config: Mapping[str, Any], stack: str
) -> dict[str, Any]:
  """Return the sizes of a stack, as fields of `config_lib.Stack`."""
  with errors.reading(f'{stack} of {file}'):
    stated = {'vocab_size': config['vocab_size']} | dict(config[stack])
  # The whole model's counts, whatever a stack says, as in transformers 5.
  stated['tie_word_embeddings'] = bool(config['tie_word_embeddings'])
  fields = families.complete(file, stated, OF_STACK, f'{stack} of {NAME}')
  window, rope = fields['sliding_window'], llama.rope(file, fields)
  kinds = {
      has_window: config_lib.LayerKind(
          window if has_window else None,
          *rope,
          # As many on both sides of the encoder, the query included.
          ahead=window - 1 if has_window and stack == 'encoder' else 0,
      )
      for has_window in (False, True)
  }
  kinds = llama.layer_kinds(file, fields, [True, False], kinds)
  return gemma3.gemma_fields(fields) | {'kinds': kinds}
