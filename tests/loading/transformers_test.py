# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders alone beside transformers; see `beside_transformers`."""

import pytest

from tests import decoders_by_hand
from tests.loading import beside_transformers

pytestmark = pytest.mark.exhaustive

OTHERS = {
    'llama': {'head_dim': None, 'attention_bias': True, 'mlp_bias': True},
    'gemma3': {'num_key_value_heads': 2, 'head_dim': 16},
}


@pytest.fixture(
    scope='module',
    params=[(name, {}) for name in decoders_by_hand.FIELDS] + [*OTHERS.items()],
    ids=lambda param: param[0] + ('-other' if param[1] else ''),
)
def pair(request, tmp_path_factory):
  name, changes = request.param
  return beside_transformers.pair(
      beside_transformers.transformers.AutoModelForCausalLM,
      decoders_by_hand.FIELDS[name] | changes,
      tmp_path_factory.mktemp(name),
  )


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(2)
