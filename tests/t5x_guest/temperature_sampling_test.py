# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own sampler decodes this package's requests with the same weights."""

import jax
import numpy as np
import pytest

from speculative_t5x.jobs import t5x_baseline
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.t5x_guest import temperature_sampling
from tests import tiny
from tests.t5x_guest import tiny_pair

_LENGTH = 10


def _requests(**options):
  rows = np.asarray(tiny.encoder_tokens(3, 9))
  return list(tiny.requests(rows, batch_size=2, length=_LENGTH, **options))


@pytest.mark.parametrize('overrides', [{}, tiny_pair.T5_1_0])
def test_greedy_outputs_are_those_of_plain_decoding(overrides):
  """Of merged kernels and a tied head, with a row that fills the batch."""
  decoder = tiny.decoder(tiny.config(**overrides), length=_LENGTH, gamma=2)
  assert decoder.target.config.merge_projections
  way = temperature_sampling.TemperatureSampling(decoder).way(
      sampling_lib.GREEDY
  )
  for request in _requests(sampling=sampling_lib.GREEDY):
    found, plain = jax.device_get((way(request), decoder.plain(request)))
    np.testing.assert_array_equal(found.sequences, plain.sequences)
    for name in ('num_tokens', 'num_calls', 'num_steps', 'calls_by_width'):
      np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


def test_samples_follow_seed_and_sampling():
  decoder = tiny.decoder(tiny.config(), length=_LENGTH, gamma=2)
  sampler = temperature_sampling.TemperatureSampling(decoder)
  make = lambda seed: _requests(sampling=sampling_lib.Sampling(1.0), seed=seed)
  way = sampler.way(sampling_lib.Sampling(1.0))
  first, again, other = (
      jax.device_get(way(make(seed)[0])).sequences for seed in (1, 1, 2)
  )
  np.testing.assert_array_equal(first, again)
  assert np.any(first != other)
  # Top-k 1 is argmax, and is not taken for another sampling.
  topk = sampler.way(sampling_lib.Sampling(1.0, topk=1))
  greedy = jax.device_get(decoder.plain(_requests()[0])).sequences
  np.testing.assert_array_equal(
      jax.device_get(topk(make(1)[0])).sequences, greedy
  )


def test_what_t5x_does_not_have():
  decoder = tiny.decoder(tiny.config(), length=_LENGTH, gamma=2)
  sampler = temperature_sampling.TemperatureSampling(decoder)
  for settings in ({'minp': 0.1}, {'typicalp': 0.5}, {'topk': 2, 'topp': 0.5}):
    assert sampler.way(sampling_lib.Sampling(1.0, **settings)) is None


def test_outputs_that_may_not_end():
  decoder = tiny.decoder(tiny.config(), length=_LENGTH, gamma=2, may_end=False)
  sampler = temperature_sampling.TemperatureSampling(decoder)
  found = sampler.way(sampling_lib.GREEDY)(_requests()[0])
  assert jax.device_get(found.num_tokens).tolist() == [_LENGTH] * 2


def test_a_job_finds_it():
  decoder = tiny.decoder(tiny.config(), length=_LENGTH, gamma=2)
  found = t5x_baseline.of(decoder)
  assert isinstance(found, temperature_sampling.TemperatureSampling)
  assert found.name and found.version
