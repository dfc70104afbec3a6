# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of operations per part, against counts of matrix products by hand."""

import dataclasses

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.loading.drafters import in_order_source
from speculative_t5x.loading.drafters import shared_encoder_source
from speculative_t5x.networks import t5
from speculative_t5x.research.measurement import operations
from speculative_t5x.speculation import theory
from tests import tiny

GAMMA, LENGTH, INPUTS_LENGTH = 3, 20, 16
# So wide that norms and activations are negligible.
TARGET = tiny.config(
    vocab_size=4096, emb_dim=256, num_heads=4, head_dim=64, mlp_dim=512,
    merge_projections=True,
)  # fmt: skip
DRAFT = dataclasses.replace(TARGET, num_decoder_layers=1, mlp_dim=1024)


def _model(config) -> models.Model:
  """Returns a model without parameter values, because nothing is run."""
  return models.Model(config, models.abstract_params(config), 0)


def _count(rows=1, num_decodes=1, drafter=None) -> operations.Operations:
  decoder = token_decoder.TokenDecoder(
      _model(TARGET),
      drafter or draft_model_source.from_model(_model(DRAFT)),
      gamma=GAMMA,
      length=LENGTH,
      num_decodes=num_decodes,
  )
  inputs = np.ones((rows, INPUTS_LENGTH), np.int32)
  return operations.count(decoder, *tiny.requests(inputs, length=LENGTH))


def by_hand(
    config: t5.T5Config, positions: int, num_logits: int | None = None
) -> int:
  """Returns 2 M K N of every product of one row, attention included."""
  joined = config.num_heads * config.head_dim
  slots = LENGTH + GAMMA + 1
  kernels = (
      3 * config.emb_dim * joined  # query, key and value
      + 3 * joined * config.emb_dim  # out, cross query, cross out
      + 3 * config.emb_dim * config.mlp_dim  # two in, one out
  )
  attention = 2 * joined * (slots + INPUTS_LENGTH)
  layers = config.num_decoder_layers * positions * (kernels + attention)
  num_logits = positions if num_logits is None else num_logits
  return 2 * (layers + num_logits * config.emb_dim * config.vocab_size)


class TestCount:

  def test_matrix_products_dominate(self):
    found = _count()
    expected = {
        'target': by_hand(TARGET, 1),
        'verify': by_hand(TARGET, GAMMA + 1),
        # The first call of a block computes logits of one position only.
        'draft': by_hand(DRAFT, 2, num_logits=1)
        + (GAMMA - 1) * by_hand(DRAFT, 1),
        'draft_token': by_hand(DRAFT, 1),
    }
    for name, value in expected.items():
      # Matrix products are a lower bound, and nearly all operations.
      assert 1 <= getattr(found, name) / value < 1.02, name

  def test_rows_are_all_decodes(self):
    one, six = _count(), _count(rows=2, num_decodes=3)
    assert six.verify == pytest.approx(6 * one.verify, rel=0.01)

  def test_draft_on_the_targets_encoder(self):
    config = dataclasses.replace(
        DRAFT, num_encoder_layers=0, emb_dim=128, encoder_dim=TARGET.emb_dim
    )
    found = _count(drafter=shared_encoder_source.from_model(_model(config)))
    expected = by_hand(config, 2, num_logits=1)
    expected += (GAMMA - 1) * by_hand(config, 1)
    assert 1 <= found.draft / expected < 1.03

  def test_early_exit(self):
    """Each call feeds one position: the target has fed all others."""
    found = _count(drafter=early_exit_source.of_network(TARGET, 1))
    config = dataclasses.replace(TARGET, num_decoder_layers=1)
    assert 1 <= found.draft / (GAMMA * by_hand(config, 1)) < 1.02
    assert found.draft_token < found.target

  def test_drafters_in_order(self):
    """Each one's calls take its own parameters, or the target's."""
    drafters = (
        early_exit_source.of_network(TARGET, 1),
        draft_model_source.from_model(_model(DRAFT)),
    )
    alone = [_count(drafter=each).draft for each in drafters]
    assert _count(drafter=in_order_source.from_drafters(drafters)).draft == sum(
        alone
    )


class TestFactor:

  @pytest.mark.parametrize('alpha', [0.0, 0.5, 0.8, 1.0])
  @pytest.mark.parametrize('gamma', [1, 5])
  def test_is_theorem_3_11(self, alpha, gamma):
    """Operations per position are equal, and alpha is constant."""
    target, draft = 1000.0, 70.0
    counted = operations.Operations(
        target, (gamma + 1) * target, gamma * draft, draft
    )
    steps = 10**9
    calls = steps / theory.expected_tokens(alpha, gamma)
    expected = theory.operations_factor(alpha, gamma, draft / target)
    assert counted.factor(steps, calls) == pytest.approx(expected)
    assert counted.ops_coefficient == draft / target


def test_no_program_is_compiled(monkeypatch):
  """Compiling a large model would take too long.

  Abstract parameters could not be run either.
  """
  monkeypatch.setattr(
      jax.stages.Lowered, 'compile', lambda *_, **__: pytest.fail('compiled')
  )
  assert _count().target > 0
