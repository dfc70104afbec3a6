# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the bytes per step, against counts by hand, and of reading them."""

import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.simulation import simulated_walltimes
from tests import tiny

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
    model = simulated_walltimes.make_model(config)
    assert _bytes(model, rows) == bytes_by_hand(config, rows)

  def test_weights_of_the_first_layers(self):
    """A step that leaves early reads the weights of a shorter network."""
    config = tiny.config(num_decoder_layers=3)
    cut = tiny.truncate(simulated_walltimes.make_model(config), 1)
    short = tiny.config(num_decoder_layers=1)
    found, expected = map(_bytes, (cut, simulated_walltimes.make_model(short)))
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
