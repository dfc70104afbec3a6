# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what T5X's logs say of speculative decoding."""

from absl import logging
import pytest

from speculative_t5x.rules import lenience
from tests.t5x_guest import tiny_pair


@pytest.fixture
def lines(monkeypatch):
  """Return the lines that are logged from now on."""
  found = []
  monkeypatch.setattr(
      logging, 'info', lambda text, *args: found.append(text % args)
  )
  return found


def test_decoding_names_drafter_rule_and_policy(lines):
  model = tiny_pair.model()
  options = {'rule': lenience.make_rule(0.5)}
  model.predict_batch_with_aux(
      tiny_pair.state(model), tiny_pair.batch(1), decoder_params=options
  )
  (line,) = (line for line in lines if 'drafter' in line)
  for said in ('(model), gamma 3', 'lenience=0.5', 'not lossless', 'fixed'):
    assert said in line
