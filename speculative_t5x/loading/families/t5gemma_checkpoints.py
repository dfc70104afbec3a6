# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma: a `families.Family`.

Its config.json holds one of Gemma 2 for the encoder and one for the decoder.
"""

from collections.abc import Collection, Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import hugging_face_decoders as decoders
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
_LAYER = {
    name: tensor
    for name, tensor in decoders.LLAMA_LAYER.items()
    if 'norm' not in name
}


def _norms(names: Mapping[str, str]) -> dict[str, str]:
  return {
      f'{place}_{ours}_layer_norm/scale': f'{place}_{theirs}_layernorm.weight'
      for place in ('pre', 'post')
      for ours, theirs in names.items()
  }


_MAPS = {
    'encoder': decoders.TensorMap(
        NAME,
        {
            name.replace('self_attention', 'attention'): tensor
            for name, tensor in _LAYER.items()
        }
        | _norms({'attention': 'self_attn', 'mlp': 'feedforward'}),
        {
            'embed_tokens.weight': 'encoder/token_embedder/embedding',
            'norm.weight': 'encoder/encoder_norm/scale',
        },
        prefix='model.encoder.',
        stack='encoder',
    ),
    'decoder': decoders.TensorMap(
        NAME,
        _LAYER
        | {
            name.replace('self_attention', 'encoder_decoder_attention'):
                tensor.replace('self_attn', 'cross_attn')
            for name, tensor in _LAYER.items()
            if name.startswith('self_attention')
        }
        | _norms({
            'self_attention': 'self_attn',
            'cross_attention': 'cross_attn',
            'mlp': 'feedforward',
        }),
        decoders.LLAMA_OUTSIDE,
        prefix='model.decoder.',
        head='lm_head.out_proj.weight',
    ),
}  # fmt: skip


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
  kinds = {
      is_local: modules.LayerKind(
          fields['sliding_window'] if is_local else None,
          *decoders.rope(file, fields, layer_type),
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


def tensor_names(
    folder: epath.Path, stored: Collection[str], network: t5gemma.T5Gemma
) -> tuple[dict[str, families.Source], dict[str, str]]:
  prefix = _MAPS['encoder'].prefix
  of_encoder = [name for name in stored if name.startswith(prefix)]
  others = [name for name in stored if not name.startswith(prefix)]
  sources, _ = _MAPS['encoder'].sources(folder, of_encoder, network)
  of_decoder, copies = _MAPS['decoder'].sources(folder, others, network)
  return sources | of_decoder, copies
