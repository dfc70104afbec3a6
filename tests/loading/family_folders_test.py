# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of all families but T5: one table of cases, loaded and refused."""

import dataclasses

import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import rope
from speculative_t5x.speculation import contracts
from tests import decoders_by_hand
from tests import encoder_decoders_by_hand
from tests import t5gemma_by_hand
from tests import tiny_decoders
from tests import tiny_encoder_decoders
from tests.loading.checkpoints import steps

CONFIGS = (
    decoders_by_hand.CONFIGS
    | tiny_encoder_decoders.CONFIGS
    | t5gemma_by_hand.CONFIGS
)
_WRITERS = (
    dict.fromkeys(decoders_by_hand.FIELDS, decoders_by_hand.write)
    | dict.fromkeys(
        encoder_decoders_by_hand.FIELDS, encoder_decoders_by_hand.write
    )
    | dict.fromkeys(t5gemma_by_hand.FIELDS, t5gemma_by_hand.write)
)
_ALONE = contracts.SpecialIds(1, contracts.NO_TOKEN, None)
_CHAT = dataclasses.replace(_ALONE, other_ends=(3,))
_SPECIAL_IDS = tiny_encoder_decoders.SPECIAL_IDS | {
    'gpt2': _ALONE, 'llama': _CHAT, 'qwen3': _ALONE, 'gemma3': _CHAT,
    **dict.fromkeys(t5gemma_by_hand.FIELDS, t5gemma_by_hand.SPECIAL_IDS),
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
  """Return a function that writes the folder of a family."""
  return lambda name, fields: _WRITERS[name](tmp_path, name, **fields)


@pytest.mark.parametrize('name', _WRITERS)
def test_parameters_and_ids(write, name):
  checkpoint, config = checkpoints.open(write(name, {})), CONFIGS[name]
  assert checkpoint.network() == config
  assert checkpoint.special_ids == _SPECIAL_IDS[name]
  steps.assert_holds(checkpoint.folder, tiny_decoders.params(config), config)


@pytest.mark.parametrize(
    ('name', 'overrides', 'changes'),
    [
        ('llama', dict(head_dim=None), dict(head_dim=6, query_scale=6**-0.5)),
        ('llama', dict(num_key_value_heads=None), dict(num_kv_heads=4)),
        (
            'llama',
            dict(
                rope_theta=None,
                rope_scaling=None,
                rope_parameters={'rope_type': 'default', 'rope_theta': 7.0},
            ),
            dict(kinds=(decoder_only.LayerKind(None, 7.0),)),
        ),
        (  # as in Llama 2
            'llama',
            dict(rope_theta=..., rope_scaling=None),
            dict(kinds=(decoder_only.LayerKind(None, 1e4),)),
        ),
        (
            'llama',
            dict(
                rope_theta=7.0,
                rope_scaling=None,
                rope_parameters={'rope_type': 'default'},
            ),
            dict(kinds=(decoder_only.LayerKind(None, 7.0),)),
        ),
        (
            'llama',
            dict(
                max_position_embeddings=32,
                rope_scaling={
                    'type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0,
                    'high_freq_factor': 4.0,
                },
            ),
            {},
        ),
        (
            'qwen3',
            dict(rope_theta=...),
            dict(kinds=(decoder_only.LayerKind(None, 1e4),)),
        ),
        (
            'gemma3',
            dict(
                rope_theta=..., rope_local_base_freq=...,
                rope_parameters={'full_attention': {}},
            ),
            {},
        ),
        (
            'llama',
            dict(attention_bias=True, mlp_bias=True),
            dict(qkv_bias=True, out_bias=True, mlp_bias=True),
        ),
        (
            'gemma3',
            dict(
                layer_types=None,
                sliding_window_pattern=2,
                rope_scaling=None,
                rope_parameters={
                    'full_attention': {
                        'rope_type': 'linear', 'factor': 4.0,
                        'rope_theta': 9.0,
                    },
                    'sliding_attention': {
                        'rope_type': 'default', 'rope_theta': 5.0
                    },
                },
            ),
            dict(
                kinds=(
                    decoder_only.LayerKind(8, 5.0),
                    decoder_only.LayerKind(None, 9.0, rope.Scaling(4.0)),
                )
            ),
        ),
        ('gpt2', dict(n_inner=None), dict(mlp_dim=96)),
        ('bart', dict(forced_bos_token_id=None), dict(decoder_prompt=(2,))),
        ('bart', dict(scale_embedding=True), dict(embedding_scale=24**0.5)),
        (
            'bart',
            dict(activation_function='gelu_new'),
            dict(mlp_activations=('gelu',)),
        ),
        (
            'marian',
            dict(activation_function='relu', scale_embedding=False),
            dict(mlp_activations=('relu',), embedding_scale=1.0),
        ),
        ('nllb', dict(forced_bos_token_id=None), dict(decoder_prompt=())),
        ('nllb', dict(pad_token_id=5), dict(position_offset=6)),
    ],
)  # fmt: skip
def test_fields(write, name, overrides, changes):
  expected = dataclasses.replace(CONFIGS[name], **changes)
  assert checkpoints.open(write(name, overrides)).network() == expected


@pytest.mark.parametrize(
    ('name', 'overrides', 'named'),
    [
        ('llama', dict(rope_scaling={'rope_type': 'yarn'}), 'yarn'),
        ('llama', dict(rope_scaling=7), 'config.json'),
        ('llama', dict(rope_theta=None), 'rope_theta None'),
        ('llama', dict(rope_scaling={'partial_rotary_factor': 0.5}),
         'partial_rotary_factor'),
        ('llama', dict(rope_scaling={'full_attention': {'rope_theta': 7.0}}),
         'full_attention'),
        ('qwen3', dict(rope_scaling={'rope_theta': None}), 'rope_theta None'),
        ('gemma3', dict(rope_parameters={'rope_theta': 7.0}), 'rope_theta'),
        ('llama', dict(sliding_window=8), 'sliding_window'),
        ('qwen3', dict(sliding_window=8, layer_types=['sliding_attention'] * 3),
         'sliding_attention'),
        ('gemma3', dict(layer_types=['full_attention'] * 2), '2 layer_types'),
        ('llama', dict(hidden_act='gelu'), 'hidden_act'),
        ('llama', dict(num_key_value_heads=3), 'num_kv_heads'),
        ('llama', dict(eos_token_id=[1, 99]), 'eos_token_id 99'),
        ('llama', dict(tie_word_embeddings=True), 'lm_head.weight'),
        ('llama', dict(num_hidden_layers=4), 'layers_3'),
        ('llama', dict(attention_bias=True), 'query/bias'),
        ('gpt2', dict(n_head=5), 'n_head'),
        ('gemma3', dict(layer_types=['linear_attention']), 'linear_att'),
        ('qwen3', dict(model_type='qwen3_moe'), 'qwen3_moe'),
        ('bart', dict(activation_function='tanh'), 'activation_function'),
        ('bart', dict(decoder_attention_heads=2), 'decoder_attention_heads'),
        ('bart', dict(decoder_ffn_dim=8), 'decoder_ffn_dim'),
        ('bart', dict(encoder_attention_heads=5, decoder_attention_heads=5),
         'query'),
        ('qwen3', dict(use_sliding_window=True), 'use_sliding_window'),
        ('bart', dict(forced_bos_token_id=96), 'forced_bos_token_id 96'),
        ('bart', dict(forced_decoder_ids=[[1, 5]]), 'forced_decoder_ids'),
        ('bart', dict(bad_words_ids=[[96]]), 'bad_words_ids 96'),
        ('bart', dict(bad_words_ids=[5]), 'config.json'),
        ('bart', dict(decoder_layers=4), 'layers_3'),
        ('bart', dict(max_position_embeddings=60), 'position_embedder'),
        ('nllb', dict(pad_token_id=None), 'pad_token_id None'),
        ('nllb', dict(pad_token_id=2, eos_token_id=3), 'pad_token_id 2'),
        ('t5gemma', dict(encoder=7), 'encoder of'),
        ('t5gemma', dict(decoder=dict(hidden_activation='gelu')), 'hidden_act'),
        ('t5gemma', dict(encoder=dict(num_key_value_heads=2)), 'num_kv_heads'),
        ('t5gemma', dict(decoder=dict(sliding_window=None)), 'sliding_window'),
        ('t5gemma', dict(decoder=dict(rope_scaling={'rope_type': 'yarn'})),
         'yarn'),
        ('t5gemma', dict(tie_word_embeddings=False), 'logits_dense'),
        ('t5gemma2', dict(encoder=7), 'encoder of'),
        ('t5gemma2', dict(encoder=dict(eoi_token_index=None)),
         'eoi_token_index'),
        ('t5gemma2', dict(decoder=dict(hidden_size=32)), 'emb_dim is 24'),
        ('t5gemma2', dict(decoder=dict(vocab_size=95)), 'vocab_size is 96'),
        ('t5gemma2', dict(tie_word_embeddings=False), 'tie_word_embed'),
    ],
)  # fmt: skip
def test_refused(write, name, overrides, named):

  def read(folder):
    checkpoint = checkpoints.open(folder)
    models.find_model(checkpoint).load()
    _ = checkpoint.special_ids

  steps.refuse(read, write(name, overrides), named)
