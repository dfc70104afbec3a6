# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma and T5Gemma 2 beside transformers; see `beside_transformers`.

transformers 4.57.6 computes T5Gemma right only so: in eager attention, without
a cache, and with every mask given. It has no T5Gemma 2, which is compared with
a later version.
"""

import pytest

from tests import t5gemma_by_hand
from tests.loading import beside_transformers

pytestmark = pytest.mark.exhaustive


transformers = beside_transformers.transformers
_is_second = hasattr(transformers, 'T5Gemma2ForConditionalGeneration')


_FIRST, _SECOND = t5gemma_by_hand.FIELDS.values()
_PLAIN = {'rope_parameters': None, 'final_logit_softcapping': None}
FIELDS = {
    'tied': _FIRST | {'vocab_size': 96},
    'untied': _FIRST | {
        'vocab_size': 96,
        'tie_word_embeddings': False,
        'encoder': _FIRST['encoder'] | {'attention_bias': True},
        'decoder': _FIRST['decoder'] | {
            'attention_bias': True, 'num_key_value_heads': 4,
            'tie_word_embeddings': False,
        },
    },
    'plain': _FIRST | {
        'vocab_size': 96,
        'encoder': _FIRST['encoder'] | {
            'attn_logit_softcapping': None, 'rope_theta': 77.0,
            'layer_types': ['full_attention', 'sliding_attention'] * 2,
        },
        'decoder': _FIRST['decoder'] | {
            'attn_logit_softcapping': None, 'final_logit_softcapping': None,
            'rms_norm_eps': 1e-2, 'hidden_activation': 'silu',
        },
    },
    'second': _SECOND,
    'second-plain': _SECOND | {
        'encoder': _SECOND['encoder'] | {
            'text_config': _SECOND['encoder']['text_config'] | _PLAIN,
        },
        'decoder': _SECOND['decoder'] | _PLAIN | {
            'attention_bias': True, 'sliding_window': 3,
        },
    },
}  # fmt: skip


@pytest.fixture(
    scope='module',
    params=[x for x in FIELDS if x.startswith('second') == _is_second],
)
def pair(request, tmp_path_factory):
  return beside_transformers.pair(
      transformers.AutoModelForSeq2SeqLM,
      FIELDS[request.param],
      tmp_path_factory.mktemp(request.param),
  )


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(2, generates=_is_second)


@pytest.mark.skipif(not _is_second, reason='its generate is wrong')
@pytest.mark.parametrize('penalty', [0.0, 1.0, 2.0])
def test_beams(pair, penalty):
  pair.check_beams(penalty)
