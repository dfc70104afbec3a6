# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of acceptance on given text."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.speculation import sampling as sampling_lib
from tests import exhaustive
from tests import tiny

ROWS, LENGTH, GAMMA, OTHER_GAMMA = 32, 12, 3, 5
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
INPUTS = tiny.encoder_tokens(ROWS, 9)
NOISE = 0.1  # of the draft model
SAMPLED = sampling_lib.Sampling()
# Each parameter, of one side alone.
_FILTERS = [
    sampling_lib.Sampling(0.6),
    sampling_lib.Sampling(top_k=4),
    sampling_lib.Sampling(top_p=0.5),
    sampling_lib.Sampling(min_p=0.3),
    sampling_lib.Sampling(typical_p=0.4),
]


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return tiny.decoder(
      CONFIG,
      gamma=GAMMA,
      length=LENGTH,
      noise=NOISE,
      matmul_precision='highest',
  )


def batch(seed=0, sampling=SAMPLED, draft_sampling=None, limits=LENGTH):
  (made,) = tiny.batches(
      INPUTS,
      length=LENGTH,
      seed=seed,
      sampling=sampling,
      draft_sampling=draft_sampling,
  )
  limits = jnp.broadcast_to(jnp.asarray(limits, jnp.int32), (ROWS,))
  return made.replace(limits=limits)


def plain_texts(**options):
  """Return the plain outputs of the target, and their scores."""
  asked = batch(**options)
  decoded = tiny.decoded(decoder().alone, asked)
  written = acceptance.Written(asked, decoded.sequences, decoded.num_tokens)
  return decoded, acceptance.score(decoder(), written)


def distributions_of(noise, sequences, sampling):
  """Return the distribution of each token of a tiny model, teacher-forced."""
  params = tiny.params(CONFIG, noise=noise)
  logits = tiny.teacher_forced(CONFIG, params, batch().inputs, sequences)
  return np.asarray(_standardize(logits, sampling))


def lenient_betas(lenience, sequences, target, draft, sampling):
  """Return what is accepted with a lenience, by Appendix A.5."""
  if sampling == sampling_lib.GREEDY:  # before standardization
    whole = distributions_of(0.0, sequences, sampling_lib.Sampling(1.0))
    largest = np.max(whole, axis=-1, keepdims=True)
    return np.sum(draft * (whole >= lenience * largest), axis=-1)
  return np.sum(np.minimum(target / lenience, draft), axis=-1)


_standardize = jax.jit(sampling_lib.standardize)


class TestScore:

  @pytest.mark.parametrize(
      ('sampling', 'draft_sampling'),
      [
          (sampling_lib.GREEDY, sampling_lib.GREEDY),
          (SAMPLED, SAMPLED),
          *((each, SAMPLED) for each in _FILTERS),
          *((SAMPLED, each) for each in _FILTERS),
      ],
  )
  def test_scores_match_distributions_per_token(self, sampling, draft_sampling):
    settings = {'sampling': sampling, 'draft_sampling': draft_sampling}
    decoded, texts = plain_texts(**settings)
    target = distributions_of(0.0, decoded.sequences, sampling)
    draft = distributions_of(NOISE, decoded.sequences, draft_sampling)
    betas = np.sum(np.minimum(target, draft), axis=-1)
    lenient = [
        lenient_betas(each, decoded.sequences, target, draft, sampling)
        for each in acceptance.LENIENCES
    ]
    smallest = np.where(target > 0, draft / np.maximum(target, 1e-30), np.inf)
    control = np.minimum(smallest.min(axis=-1), 1)
    assert len(texts) == ROWS
    for row, text in enumerate(texts):
      at = np.s_[row, : decoded.num_tokens[row]]
      np.testing.assert_allclose(text.betas, betas[at], atol=2e-5)
      np.testing.assert_allclose(
          text.lenient_betas, [each[at] for each in lenient], atol=2e-4
      )
      np.testing.assert_allclose(text.control_betas, control[at], atol=1e-3)
    # Some draft tokens are accepted and some rejected.
    assert 0.1 < np.concatenate([t.betas for t in texts]).mean() < 0.95

  def test_padding_rows_have_no_text(self):
    decoded, texts = plain_texts(limits=np.where(np.arange(ROWS) < 3, 5, 0))
    assert [len(text.betas) for text in texts] == decoded.num_tokens[
        :3
    ].tolist()


def calls_given(is_accepted, gamma):
  """Return the target calls, given which draft tokens would be accepted."""
  position = calls = 0
  while position < len(is_accepted):
    calls += 1
    for _ in range(gamma):
      if position == len(is_accepted) or not is_accepted[position]:
        break
      position += 1
    position += 1  # a resampled or a bonus token; none past the end
  return calls


@pytest.mark.parametrize(
    'gamma', exhaustive.all_but([GAMMA], [GAMMA, OTHER_GAMMA])
)
def test_scores_predict_the_calls_of_the_loop(gamma):
  asked = batch(sampling=sampling_lib.GREEDY)
  written, texts = plain_texts(sampling=sampling_lib.GREEDY)
  other = decoder().with_drafter(decoder().loaded_drafter, gamma)
  found = tiny.decoded(other, asked)
  np.testing.assert_array_equal(found.sequences, written.sequences)
  expected = [calls_given(t.betas > 0.5, gamma) for t in texts]
  np.testing.assert_array_equal(found.num_calls, expected)
  assert len(set(found.num_calls.tolist())) > 3


def test_collecting_stops_after_enough_tokens():
  settings = request_lib.Settings(max_tokens=LENGTH, sampling=SAMPLED)
  requests = (
      settings.request([x for x in row if x >= 0], number)
      for number, row in enumerate(INPUTS.tolist() * 10)
  )
  first = sum(len(t.betas) for t in plain_texts()[1])
  written = acceptance.write(
      decoder(), requests, settings, first + 1, batch_size=ROWS
  )
  found = acceptance.collect(decoder(), written)
  # Batches are complete, and no unneeded batch is scored.
  assert len(written) == 2
  assert len(found) == 2 * ROWS
  np.testing.assert_allclose(
      found[0].betas, plain_texts()[1][0].betas, rtol=1e-5
  )
