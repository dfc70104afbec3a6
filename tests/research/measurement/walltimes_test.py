# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the values of measured records."""

import dataclasses
import types

import numpy as np
import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling
from tests import tiny
from tests import tiny_decoders
from tests import workloads

EXAMPLES, BATCH_SIZE, LENGTH, GAMMA = 70, 32, 12, 1
REPEATS, ROUNDS = 2, 7
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
TEMPERATURES_AND_SEEDS = [(0.0, 0), (1.0, 1)]


pytestmark = pytest.mark.usefixtures('unchecked_types')


def batches(temperature, seed):
  return tiny.batches(
      np.asarray(tiny.encoder_tokens(EXAMPLES, 9)),
      BATCH_SIZE,
      length=LENGTH,
      seed=seed,
      sampling=sampling.Sampling(temperature),
  )


@pytest.fixture(scope='module')
def decoder():
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, matmul_precision='highest'
  )


@pytest.fixture(scope='module')
def sweep(decoder):
  """Return a measurement of each configuration, and what was observed."""
  parts, readers, found = [], [], []

  def keep(cls, made):
    return lambda *args: made.append(cls(*args)) or made[-1]

  programs = part_programs.PartPrograms(decoder)
  bind_encoders, encoded = programs.bind_encoders, []

  def watch_encoders(request):
    encoded.append(request.inputs.tolist())
    return bind_encoders(request)

  with pytest.MonkeyPatch.context() as patch, workloads.instant_parts():
    patch.setattr(programs, 'bind_encoders', watch_encoders)
    patch.setattr(step_times, 'Parts', keep(step_times.Parts, parts))
    reader = keep(read_floor.FloorReader, readers)
    patch.setattr(read_floor, 'FloorReader', reader)
    for temperature, seed in TEMPERATURES_AND_SEEDS:
      record, plain, speculative = walltimes.measure(
          programs,
          batches(temperature, seed),
          run_record.RunRecord(gamma=GAMMA, repeats=REPEATS, rounds=ROUNDS),
          'a test',
      )
      found.append(
          types.SimpleNamespace(
              record=record, plain=plain, speculative=speculative,
              parts=parts[-1], readers=readers[-1], encoded=list(encoded),
          )
      )  # fmt: skip
      encoded.clear()
  return found


def test_reference(sweep):
  """A run like the plain one: rows that fill a batch are not compared."""
  for found, temperature in zip(sweep, (0.0, 1.0)):
    settings = dataclasses.replace(
        found.record,
        temperature=temperature,
        reference=run_record.Reference('other', '1'),
    )
    reference = walltimes._reference(
        settings, found.plain, found.plain, found.speculative
    )
    assert (reference.name, reference.version) == ('other', '1')
    assert reference.identical == (None if temperature else EXAMPLES)
    assert reference.run == found.record.baseline
    assert reference.speedup == found.record.speedup
    assert reference.speedup_ci95 == found.record.speedup_ci95


class TestRecord:

  def test_parts(self, sweep):
    for each in sweep:
      record = each.record
      median = {k: np.median(v) for k, v in each.parts.seconds.items()}
      for name in ('t1', 't_verify', 't_draft', 't_draft2', 't_call'):
        assert getattr(record, f'{name}_ms') == 1e3 * median[name]
      assert record.c == pytest.approx(record.t_draft_ms / record.t1_ms)
      assert record.verify_cost_ratio == pytest.approx(
          record.t_verify_ms / record.t1_ms
      )
      assert record.floor_ms == 1e3 * each.readers.floor_s() > 0
      assert record.floor_ratio == record.t1_ms / record.floor_ms

  def test_encoders_are_timed_on_each_batch(self, sweep):
    """Their time depends on how long the inputs are."""
    for each, (temperature, seed) in zip(
        sweep, TEMPERATURES_AND_SEEDS, strict=True
    ):
      expected = [
          batch.inputs.tolist()
          for batch in batches(temperature, seed)
          for _ in range(REPEATS)
      ]
      # Compiled on the first batch.
      assert each.encoded == [expected[0], *expected]

  def test_floor_is_of_a_step_of_the_batch(self, sweep, decoder):
    expected = read_floor.step_bytes(decoder, BATCH_SIZE, 9)
    assert {each.readers.num_bytes for each in sweep} == {expected}

  def test_bound_is_of_the_encoders_of_each_batch(self, sweep):
    for each in sweep:
      windows = [
          each.parts.times(slice(batch * REPEATS, (batch + 1) * REPEATS))
          for batch in range(3)
      ]
      fields = {
          **walltimes._bound(each.plain, each.speculative, windows),
          **walltimes._reading(windows, CONFIG),
      }
      assert each.record == dataclasses.replace(each.record, **fields)


def _compared(plain_s, speculative_s):
  """Compare 1.1 s of plain parts with 0.95 s of speculative ones."""

  def run(seconds, *steps):
    decoded = [
        types.SimpleNamespace(work=loop.Work(n, 3 * n, np.array([n])))
        for n in steps
    ]
    return interleaved.Run(None, (seconds / 2,) * 2, 0.0, decoded, steps)

  # The machine is three times as fast at the second batch.
  windows = [
      step_times.PartTimes(0.075, 0.0375, 1.5, 2.25, 0.15, 0.45, 3.0, ()),
      step_times.PartTimes(0.025, 0.0125, 0.5, 0.75, 0.05, 0.15, 1.0, ()),
  ]
  found = walltimes._bound(
      run(plain_s, 400, 800), run(speculative_s, 200, 200), windows
  )
  return run_record.RunRecord(**found)


class TestBound:

  def test_runs_as_long_as_their_parts(self):
    found = _compared(1.1, 0.95)
    assert found.bound_speedup == pytest.approx(1.1 / 0.95)
    assert found.loop_efficiency == pytest.approx(1)
    assert found.warnings == ()

  @pytest.mark.parametrize(
      ('plain_s', 'speculative_s', 'warning'),
      [
          (1.06, 1.0, 'plain decoding took 0.960 times t1'),
          (1.14, 1.0, 'plain decoding took 1.040 times t1'),
      ],
  )
  def test_warnings(self, plain_s, speculative_s, warning):
    (found,) = _compared(plain_s, speculative_s).warnings
    assert found.startswith(warning)

  def test_a_decoder_alone_reads_a_prompt(self):
    (name,) = walltimes._reading([], tiny_decoders.CONFIGS['gpt2'])
    assert name == 'prompt_s'
