# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders alone beside transformers; see `beside_transformers`."""

import pytest

from tests import decoders_by_hand
from tests.loading import beside_transformers

pytestmark = pytest.mark.exhaustive

OTHERS = {
    'gpt2-scores': {
        'scale_attn_weights': False, 'n_inner': ..., 'n_head': ...,
        'num_attention_heads': 3, 'activation_function': 'relu',
        'layer_norm_epsilon': 1e-2, 'vocab_size': 101,
    },
    'gpt2-untied': {'tie_word_embeddings': False, 'eos_token_id': 77},
    'llama-biases': {
        'head_dim': None, 'attention_bias': True, 'mlp_bias': True,
    },
    # As Llama 2's: neither theta nor heads of keys.
    'llama-2': {
        'rope_theta': ..., 'rope_scaling': None, 'num_key_value_heads': ...,
        'head_dim': ..., 'hidden_act': 'gelu_new', 'vocab_size': 97,
    },
    'llama-linear': {
        'rope_theta': 77.0, 'rope_scaling': {'type': 'linear', 'factor': 3.0},
        'num_key_value_heads': 1, 'tie_word_embeddings': True,
        'rms_norm_eps': 1e-2, 'dtype': 'float16',
    },
    'llama-parameters': {
        'rope_scaling': ..., 'rope_theta': 77.0,
        'rope_parameters': {'rope_type': 'default'},
    },
    'qwen3-biases': {
        'attention_bias': True, 'rope_theta': ...,
        'tie_word_embeddings': False, 'dtype': 'bfloat16',
    },
    'gemma3-pattern': {
        'num_key_value_heads': 2, 'head_dim': 16, 'layer_types': ...,
        'sliding_window_pattern': 2, 'rope_theta': ..., 'rope_scaling': ...,
        'rope_local_base_freq': 77.0, 'final_logit_softcapping': ...,
        'attention_bias': True, 'sliding_window': 3,
    },
    'gemma3-untied': {'tie_word_embeddings': False, 'num_key_value_heads': 4},
}


@pytest.fixture(
    scope='module',
    params=[*decoders_by_hand.FIELDS, *OTHERS],
)
def pair(request, tmp_path_factory):
  name = request.param
  fields = decoders_by_hand.FIELDS[name.split('-')[0]] | OTHERS.get(name, {})
  return beside_transformers.pair(
      beside_transformers.transformers.AutoModelForCausalLM,
      fields,
      tmp_path_factory.mktemp(name),
      dtype=fields.get('dtype', 'float32'),
  )


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(2)


@pytest.mark.parametrize('penalty', [0.0, 1.0, 2.0])
def test_beams(pair, penalty):
  pair.check_beams(penalty)
