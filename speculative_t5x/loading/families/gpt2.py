# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""GPT-2: a family."""

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.loading.families import llama
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only

NAME = 'GPT-2'
FIELDS = {
    'gpt2': {
        **families.of_sizes(
            vocab_size=(50_257, 'vocab_size'),
            n_positions=(1024, 'max_positions'),
            n_embd=(768, 'emb_dim'),
            n_layer=(12, 'num_layers'),
            n_head=(12, 'num_heads'),
            n_inner=(lambda x: 4 * x['n_embd'], 'mlp_dim'),
        ),
        'activation_function': families.Field(
            'gelu_new', families.ACTIVATIONS, ours='mlp_activations'
        ),
        'layer_norm_epsilon': families.Field(
            1e-5, families.NUMBER, ours='norm_eps'
        ),
        'scale_attn_weights': families.Field(True, (True,)),
        **families.absent(False, 'scale_attn_by_inverse_layer_idx'),
        'tie_word_embeddings': families.Field(
            True, (True, False), ours='logits_via_embedding'
        ),
        **families.unchecked(bos_token_id=50_256, eos_token_id=50_256),
        **llama.FULL_ATTENTION,
        **llama.ABSENT,
    },
}
tensor_names = tensor_maps.TensorMap(
    NAME,
    (
        (r'^transformer\.', ''),  # none in the first files
        (r'^h\.(\d+)\.', r'decoder/layers_\1/'),
        (r'^wte\.weight$', 'decoder/token_embedder/embedding'),
        (r'^wpe\.weight$', 'decoder/position_embedder/embedding'),
        (r'^ln_f\.', 'decoder/decoder_norm.'),
        (r'/ln_1\.', '/pre_self_attention_layer_norm.'),
        (r'/ln_2\.', '/pre_mlp_layer_norm.'),
        (r'/attn\.c_attn\.', '/self_attention/query,key,value.'),
        (r'/attn\.c_proj\.', '/self_attention/out.'),
        (r'/mlp\.c_fc\.', '/mlp/wi.'),
        (r'/mlp\.c_proj\.', '/mlp/wo.'),
    ),
    ignored=r'\.attn\.(bias|masked_bias)$',  # the mask
    is_transposed=False,
).sources


def of_config(file, config) -> decoder_only.DecoderOnly:
  width, heads = config['n_embd'], config['n_head']
  if width % heads:
    raise errors.CheckpointError(
        f'{file} has n_embd {width}, which n_head, {heads}, does not divide.'
        ' Download the file again.'
    )
  return decoder_only.DecoderOnly(
      **families.sizes(FIELDS['gpt2'], config),
      head_dim=width // heads,
      positions=config_lib.LEARNED,
      norm=config_lib.LAYER,
      qkv_bias=True,
      out_bias=True,
      mlp_bias=True,
  )
