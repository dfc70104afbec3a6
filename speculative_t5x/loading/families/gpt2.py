# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""GPT-2: a `families.Family`."""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only

NAME = 'GPT-2'
FIELDS = {
    'gpt2': {
        'vocab_size': families.Field(50_257, families.SIZE),
        'n_positions': families.Field(
            1024, families.SIZE, 'max_position_embeddings'
        ),
        'n_embd': families.Field(768, families.SIZE, 'hidden_size'),
        'n_layer': families.Field(12, families.SIZE, 'num_hidden_layers'),
        'n_head': families.Field(12, families.SIZE, 'num_attention_heads'),
        'n_inner': families.Field(lambda x: 4 * x['n_embd'], families.SIZE),
        'activation_function': families.Field(
            'gelu_new', tuple(llama.ACTIVATIONS)
        ),
        'layer_norm_epsilon': families.Field(1e-5, families.NUMBER),
        'scale_attn_weights': families.Field(True, families.FLAG),
        'scale_attn_by_inverse_layer_idx': families.Field(
            False, (False, None)
        ),
        'tie_word_embeddings': families.Field(True, (True, False)),
        'bos_token_id': families.Field(50_256),
        'eos_token_id': families.Field(50_256),
        **llama.FULL_ATTENTION,
        **llama.ABSENT,
    },
}
# Query, key and value lie in one tensor, [in, out] as all others.
_PROJECTIONS = {
    'self_attention/query': 'attn.c_attn',
    'self_attention/key': 'attn.c_attn',
    'self_attention/value': 'attn.c_attn',
    'self_attention/out': 'attn.c_proj',
    'mlp/wi': 'mlp.c_fc',
    'mlp/wo': 'mlp.c_proj',
}
_NORMS = {
    'pre_self_attention_layer_norm': 'ln_1',
    'pre_mlp_layer_norm': 'ln_2',
}
tensor_names = tensor_maps.TensorMap(
    NAME,
    {
        'decoder': tensor_maps.with_biases(_PROJECTIONS)
        | tensor_maps.with_biases(_NORMS, 'scale')
    },
    {
        'wte.weight': 'decoder/token_embedder/embedding',
        'wpe.weight': 'decoder/position_embedder/embedding',
        'ln_f.weight': 'decoder/decoder_norm/scale',
        'ln_f.bias': 'decoder/decoder_norm/bias',
    },
    before={'decoder': 'h.'},
    optional=r'^transformer\.',  # none in the first files
    ignored=r'h\.\d+\.attn\.(bias|masked_bias)',  # the mask
    is_transposed=False,
).sources


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> decoder_only.DecoderOnly:
  width, heads = config['n_embd'], config['n_head']
  if width % heads:
    raise errors.CheckpointError(
        f'{file} has n_embd {width}, which n_head, {heads}, does not divide.'
        ' Download the file again.'
    )
  return decoder_only.DecoderOnly(
      vocab_size=config['vocab_size'],
      emb_dim=width,
      num_layers=config['n_layer'],
      num_heads=heads,
      head_dim=width // heads,
      mlp_dim=config['n_inner'],
      mlp_activations=(llama.ACTIVATIONS[config['activation_function']],),
      positions=config_lib.LEARNED,
      max_positions=config['n_positions'],
      norm=config_lib.LAYER,
      norm_eps=float(config['layer_norm_epsilon']),
      qkv_bias=True,
      out_bias=True,
      mlp_bias=True,
      query_scale=None if config['scale_attn_weights'] else 1.0,
      logits_via_embedding=config['tie_word_embeddings'],
  )
