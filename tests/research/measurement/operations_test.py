# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of operations and bytes per step, against counts by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import in_order_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research.measurement import operations
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.simulation import random_models
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
  """Return a model without parameter values, because nothing is run."""
  return models.Model(config, models.abstract_params(config), num_params=0)


def _count(rows=1, num_decodes=1, drafter=None) -> operations.Operations:
  decoder = token_decoder.TokenDecoder(
      _model(TARGET),
      drafter or model_drafting.of_model(_model(DRAFT)),
      gamma=GAMMA,
      max_tokens=LENGTH,
      num_decodes=num_decodes,
  )
  inputs = np.ones((rows, INPUTS_LENGTH), np.int32)
  return operations.count(decoder, *tiny.batches(inputs, length=LENGTH))


def by_hand(
    config: t5.T5Config, positions: int, num_logits: int | None = None
) -> int:
  """Return 2 M K N of every product of one row, attention included."""
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
    found = _count(drafter=model_drafting.of_model(_model(config)))
    expected = by_hand(config, 2, num_logits=1)
    expected += (GAMMA - 1) * by_hand(config, 1)
    assert 1 <= found.draft / expected < 1.03

  def test_early_exit(self):
    """Each call feeds one position: the target has fed all others."""
    found = _count(drafter=tiny.early_exit(TARGET, 1))
    config = dataclasses.replace(TARGET, num_decoder_layers=1)
    assert 1 <= found.draft / (GAMMA * by_hand(config, 1)) < 1.02
    assert found.draft_token < found.target

  def test_drafters_in_order(self):
    """Each one's calls take its own parameters, or the target's."""
    drafters = (
        tiny.early_exit(TARGET, 1),
        model_drafting.of_model(_model(DRAFT)),
    )
    alone = [_count(drafter=each).draft for each in drafters]
    assert _count(drafter=in_order_drafting.joined(drafters)).draft == sum(
        alone
    )


@pytest.mark.parametrize('alpha', [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize('gamma', [1, 5])
def test_factor_is_theorem_3_11(alpha, gamma):
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


OUTPUTS, INPUTS = 20, 9
CONFIGS = {
    'T5 1.1': dict(),
    'bfloat16': dict(dtype=jnp.bfloat16),
    'T5 1.0': dict(logits_via_embedding=True, mlp_activations=('relu',)),
    'encoder': dict(num_encoder_layers=5),
}


def bytes_by_hand(config, rows: int) -> int:
  """Return the bytes of a step: weights, head, and caches of all rows."""
  embed, joined = config.emb_dim, config.num_heads * config.head_dim
  num_kernels = len(config.mlp_activations) + 1
  layer = (
      3 * embed * joined + joined * embed  # self-attention
      + embed * joined + joined * embed  # query and out over the inputs
      + num_kernels * embed * config.mlp_dim
      + 3 * embed  # norms
  )  # fmt: skip
  weights = (
      config.num_decoder_layers * layer
      + embed  # the last norm
      + embed * config.vocab_size  # the head
  )
  slots = OUTPUTS + 1  # and one for a row that has ended
  kept = 2 * config.num_decoder_layers * joined * (slots + INPUTS)
  # A byte says of each input token whether it is one.
  read = (weights + rows * kept) * jnp.dtype(config.dtype).itemsize
  return read + rows * INPUTS


def _bytes(model, rows=1) -> int:
  decoder = token_decoder.TokenDecoder(
      model, model_drafting.of_model(model), gamma=4, max_tokens=OUTPUTS
  )
  return read_floor.step_bytes(decoder, rows, INPUTS)


class TestStepBytes:

  @pytest.mark.parametrize('rows', [1, 3])
  @pytest.mark.parametrize('name', CONFIGS)
  def test_bytes_of_the_decoder(self, name, rows):
    config = tiny.config(**CONFIGS[name])
    model = random_models.make_model(config)
    assert _bytes(model, rows) == bytes_by_hand(config, rows)

  def test_weights_of_the_first_layers(self):
    """A step that leaves early reads the weights of a shorter network."""
    config = tiny.config(num_decoder_layers=3)
    cut = tiny.truncate(random_models.make_model(config), 1)
    short = tiny.config(num_decoder_layers=1)
    found, expected = map(_bytes, (cut, random_models.make_model(short)))
    assert found == expected


class TestReader:

  @pytest.mark.parametrize('num_bytes', [100, 10**6])
  def test_time_of_unread_bytes_is_estimated(self, monkeypatch, num_bytes):
    """Only a part of many bytes is read, and its time is scaled."""
    row = 2048 * 4
    monkeypatch.setattr(read_floor, 'MAX_BYTES', 10 * row)
    reader = read_floor.FloorReader(num_bytes)
    spans = iter([1.0, 9.0, 2.0])
    monkeypatch.setattr(
        step_times, 'seconds', lambda _: read_floor._READS * next(spans)
    )
    for _ in range(3):
      reader.time_round()
    num_rows = 1 if num_bytes < row else 10
    assert reader.floor_s() == pytest.approx(2 * num_bytes / (num_rows * row))

  def test_every_byte_is_read(self):
    """The program sums all rows, which are of ones."""
    reader = read_floor.FloorReader(7 * 2048 * 4)
    assert reader._read_often().tolist() == [2048] * 7
