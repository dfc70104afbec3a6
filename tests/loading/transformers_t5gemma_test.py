# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma and T5Gemma 2 beside transformers; see `beside_transformers`.

transformers 4.57.6 computes T5Gemma right only so: in eager attention, without
a cache, and with every mask given. It has no T5Gemma 2, which is compared with
a later version.
"""

import pytest

from tests.loading import beside_transformers
from tests.loading import t5gemma_folders_test

pytestmark = pytest.mark.exhaustive


transformers = beside_transformers.transformers
_is_second = hasattr(transformers, 'T5Gemma2ForConditionalGeneration')


@pytest.fixture(
    scope='module', params=['second'] if _is_second else ['tied', 'untied']
)
def pair(request, tmp_path_factory):
  fields = t5gemma_folders_test.FIELDS | {'vocab_size': 96}
  if _is_second:
    fields = t5gemma_folders_test.FIELDS_2
  elif request.param == 'untied':
    fields |= {
        'tie_word_embeddings': False,
        'encoder': fields['encoder'] | {'attention_bias': True},
        'decoder': fields['decoder'] | {
            'attention_bias': True, 'num_key_value_heads': 4,
            'tie_word_embeddings': False,
        },
    }  # fmt: skip
  return beside_transformers.pair(
      transformers.AutoModelForSeq2SeqLM,
      fields,
      tmp_path_factory.mktemp(request.param),
  )


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(2, generates=_is_second)
