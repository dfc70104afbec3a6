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
from speculative_t5x.loading import hugging_face_decoders as decoders
from speculative_t5x.loading import tensor_maps
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import decoder_only_modules as modules
from speculative_t5x.networks import t5gemma

NAME = 'T5Gemma'
DEFAULTS = {
    't5gemma': {
        'tie_word_embeddings': True,
        'pad_token_id': 0,
        'eos_token_id': 1,
        'bos_token_id': 2,
    },
}
_OF_STACK = {
    'hidden_activation': 'gelu_pytorch_tanh',
    'head_dim': 256,
    'rms_norm_eps': 1e-6,
    'query_pre_attn_scalar': 256,
    'sliding_window': 4096,
    'rope_theta': 1e4,
    'attn_logit_softcapping': 50.0,
    'final_logit_softcapping': 30.0,
}
def _layer(
    blocks: Mapping[str, str], also: Mapping[str, str]
) -> dict[str, str]:
  """Return tensors of a layer with attentions, by their names here."""
  norm_of = lambda ours: ours.replace('encoder_decoder', 'cross')
  own = {x: y for x, y in decoders.LLAMA_LAYER.items() if 'norm' not in x}
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
    file: epath.Path, config: Mapping[str, Any], dtype: Any
) -> t5gemma.T5Gemma:
  encoder, decoder = (
      _stack(file, config, stack, dtype) for stack in ('encoder', 'decoder')
  )
  with llama.naming(file):
    return t5gemma.T5Gemma(**decoder, encoder=modules.Sizes(**encoder))


def _stack(
    file: epath.Path, config: Mapping[str, Any], stack: str, dtype: Any
) -> dict[str, Any]:
  """Return the sizes of a stack, as fields of `modules.Sizes`."""
  with errors.reading(f'{stack} of {file}'):
    shared = {'vocab_size': config.get('vocab_size')}
    fields = shared | _OF_STACK | dict(config[stack])
    # The head is the embedding where either says so, as in transformers.
    ties = dict(config['decoder']).get('tie_word_embeddings', True)
  fields['tie_word_embeddings'] = ties or config['tie_word_embeddings']
  families.check_config(
      file, fields, ('hidden_size', 'sliding_window'), {}, 'a T5Gemma'
  )
  read = lambda name: decoders.number(file, name, fields[name])
  cap = lambda name: None if fields[name] is None else read(name)
  has_window = [True, False]
  if fields.get('layer_types') is not None:
    has_window = decoders.layer_types(file, fields)
  window = fields['sliding_window']
  kinds = {
      is_local: modules.LayerKind(
          window if is_local else None,
          *decoders.rope(file, fields, layer_type),
          # As many on both sides of the encoder, the query included.
          ahead=window - 1 if is_local and stack == 'encoder' else 0,
      )
      for layer_type, is_local in decoders.LAYER_TYPES.items()
  }
  return llama.llama_fields(
      file,
      {**fields, 'hidden_act': fields['hidden_activation']},
      dtype,
      'a T5Gemma',
      kinds=[kinds[x] for x in has_window],
      norm=modules.RMS_PLUS_ONE,
      post_norms=True,
      query_scale=read('query_pre_attn_scalar') ** -0.5,
      attention_cap=cap('attn_logit_softcapping'),
      logits_cap=cap('final_logit_softcapping'),
      embedding_scale=fields['hidden_size'] ** 0.5,
      mlp_bias=False,
  )
