# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART, Marian (OPUS-MT), and NLLB and M2M-100 without experts: a family.

They share the fields of config.json and the names of tensors, and differ in a
few parts of `encoder_decoder.EncoderDecoder`.
"""

import dataclasses
import math

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import encoder_decoder

NAME = 'BART'
_BART = {
    **families.of_sizes(
        vocab_size=(50_265, 'vocab_size'),
        d_model=(1024, 'emb_dim'),
        encoder_layers=(12, 'num_encoder_layers'),
        decoder_layers=(12, 'num_decoder_layers'),
        encoder_attention_heads=(16, 'num_heads'),
        encoder_ffn_dim=(4096, 'mlp_dim'),
        max_position_embeddings=(1024, 'max_positions'),
    ),
    # Both stacks have one width of heads and of feed-forward blocks here.
    'decoder_attention_heads': families.Field(
        16, lambda x: (x['encoder_attention_heads'],)
    ),
    'decoder_ffn_dim': families.Field(4096, lambda x: (x['encoder_ffn_dim'],)),
    'activation_function': families.Field(
        'gelu',
        {'gelu': ('gelu_exact',), **families.ACTIVATIONS},
        ours='mlp_activations',
    ),
    'scale_embedding': families.Field(False, families.FLAG),
    'tie_word_embeddings': families.Field(True, (True,)),
    # Of fairseq; transformers does not read it.
    **families.absent(False, 'tie_encoder_decoder', 'normalize_before'),
    **families.unchecked(
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
    ),
    **families.ABSENT,
}
FIELDS = {
    'bart': {
        **_BART,
        **families.unchecked(forced_bos_token_id=None),
    },
    'marian': {
        **families.with_defaults(
            _BART,
            vocab_size=58_101,
            bos_token_id=None,
            pad_token_id=58_100,
            eos_token_id=0,
            decoder_start_token_id=58_100,
            forced_eos_token_id=0,
        ),
        # Both languages have one vocabulary here.
        'share_encoder_decoder_embeddings': families.Field(True, (True,)),
    },
    'm2m_100': {
        **families.with_defaults(
            _BART,
            vocab_size=128_112,
            activation_function='relu',
            scale_embedding=True,
            forced_eos_token_id=None,
        ),
        # The number before the first position.
        'pad_token_id': families.Field(1, families.ID),
    },
}
_LOGITS_BIAS = 'final_logits_bias'
_EMBEDDING = 'token_embedder/embedding'
_TENSORS = tensor_maps.TensorMap(
    NAME,
    (
        (r'^model\.', ''),
        (rf'^{_LOGITS_BIAS}$', 'decoder/logits_bias/bias'),
        (r'^(shared|(en|de)coder\.embed_tokens)\.weight$', _EMBEDDING),
        (r'^(en|de)coder\.layers\.(\d+)\.', r'\1coder/layers_\2/'),
        (
            r'^(en|de)coder\.embed_positions\.weight$',
            r'\1coder/embedder/position_embedder/embedding',
        ),
        (
            r'^(en|de)coder\.layernorm_embedding\.',
            r'\1coder/embedder/embedding_layer_norm.',
        ),
        (r'^(en|de)coder\.layer_norm\.', r'\1coder/\1coder_norm.'),
        (r'^(encoder/.*)self_attn', r'\1attention'),
        (r'/self_attn', '/self_attention'),
        (r'/encoder_attn_layer_norm', '/cross_attention_layer_norm'),
        (r'/encoder_attn', '/encoder_decoder_attention'),
        (r'attention\.', 'attention/'),
        (r'/final_layer_norm\.', '/mlp_layer_norm.'),
        (r'/fc1\.', '/mlp/wi.'),
        (r'/fc2\.', '/mlp/wo.'),
    ),
    embedding=_EMBEDDING,
    ignored=r'(en|de)coder\.version$',
)
# Some files hold the sinusoids, which the network computes.
_WITH_SINUSOIDS = dataclasses.replace(
    _TENSORS, ignored=r'(en|de)coder\.(version$|embed_positions\.)'
)


def tensor_names(folder, stored, network):
  is_learned = network.positions == config_lib.LEARNED
  names = _TENSORS if is_learned else _WITH_SINUSOIDS
  return names.sources(folder, stored, network)


def of_config(file, config) -> encoder_decoder.EncoderDecoder:
  scale = math.sqrt(config['d_model']) if config['scale_embedding'] else 1.0
  fields = families.sizes(_BART, config) | {'embedding_scale': scale}
  match config['model_type']:
    case 'marian':
      fields |= dict(
          positions=config_lib.SINUSOID, position_offset=0, embedding_norm=False
      )
    case 'm2m_100':
      if (start := config['decoder_start_token_id']) == config['pad_token_id']:
        raise errors.CheckpointError(
            f'{file} has pad_token_id {start}, which decoder_start_token_id is'
            ' too. transformers gives such a start no position. Write the id of'
            ' padding that the model was trained with.'
        )
      fields |= dict(
          positions=config_lib.TENSOR2TENSOR,
          max_positions=None,  # transformers computes as many as are needed
          position_offset=config['pad_token_id'] + 1,
          pre_norm=True,
          embedding_norm=False,
          # Who decodes, or generation_config.json, chooses its language.
          decoder_prompt=(),
      )
  return encoder_decoder.EncoderDecoder(**fields)


def of_tensors(network, stored) -> encoder_decoder.EncoderDecoder:
  """Return the network with a bias of the logits if one is stored."""
  return dataclasses.replace(network, logits_bias=_LOGITS_BIAS in stored)
