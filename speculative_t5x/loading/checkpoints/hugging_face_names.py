# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's names for the tensors of a Hugging Face T5."""

import re

_ATTENTION = {'q': 'query', 'k': 'key', 'v': 'value', 'o': 'out'}
_MLP = ('wi', 'wi_0', 'wi_1', 'wo')

# Within a block: Hugging Face numbers the sublayers, T5X names them.
_ENCODER_BLOCK = {
    **{
        f'layer.0.SelfAttention.{theirs}': f'attention/{ours}/kernel'
        for theirs, ours in _ATTENTION.items()
    },
    'layer.0.layer_norm': 'pre_attention_layer_norm/scale',
    **{f'layer.1.DenseReluDense.{name}': f'mlp/{name}/kernel' for name in _MLP},
    'layer.1.layer_norm': 'pre_mlp_layer_norm/scale',
}
_DECODER_BLOCK = {
    **{
        f'layer.0.SelfAttention.{theirs}': f'self_attention/{ours}/kernel'
        for theirs, ours in _ATTENTION.items()
    },
    'layer.0.layer_norm': 'pre_self_attention_layer_norm/scale',
    **{
        f'layer.1.EncDecAttention.{theirs}': (
            f'encoder_decoder_attention/{ours}/kernel'
        )
        for theirs, ours in _ATTENTION.items()
    },
    'layer.1.layer_norm': 'pre_cross_attention_layer_norm/scale',
    **{f'layer.2.DenseReluDense.{name}': f'mlp/{name}/kernel' for name in _MLP},
    'layer.2.layer_norm': 'pre_mlp_layer_norm/scale',
}
_BLOCKS = {'encoder': _ENCODER_BLOCK, 'decoder': _DECODER_BLOCK}
_IN_BLOCK = re.compile(r'(encoder|decoder)\.block\.(\d+)\.(.+)\.weight')

_OUTSIDE_BLOCKS = {
    'lm_head.weight': 'decoder/logits_dense/kernel',
    **{
        f'{stack}.{theirs}.weight': f'{stack}/{ours}'
        for stack in _BLOCKS
        for theirs, ours in (
            ('final_layer_norm', f'{stack}_norm/scale'),
            (
                'block.0.layer.0.SelfAttention.relative_attention_bias',
                'relpos_bias/rel_embedding',
            ),
        )
    },
}

# The embedding has several names, any of which may be the one that is stored.
EMBEDDINGS = (
    'shared.weight',
    'encoder.embed_tokens.weight',
    'decoder.embed_tokens.weight',
)
HEAD = 'lm_head.weight'
EMBEDDING = 'token_embedder/embedding'
# In early PyTorch copies of T5, and used by no network.
IGNORED = (
    'decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight',
)


def t5x_name(name: str) -> str | None:
  """T5X's name for a tensor, None for one that a T5 does not have.

  >>> t5x_name('decoder.block.11.layer.1.EncDecAttention.q.weight')
  'decoder/layers_11/encoder_decoder_attention/query/kernel'
  """
  if name in EMBEDDINGS:
    return EMBEDDING
  if name in _OUTSIDE_BLOCKS:
    return _OUTSIDE_BLOCKS[name]
  if match := _IN_BLOCK.fullmatch(name):
    stack, number, rest = match.groups()
    if rest in _BLOCKS[stack]:
      return f'{stack}/layers_{number}/{_BLOCKS[stack][rest]}'
  return None
