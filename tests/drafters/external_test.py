# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a drafter from outside the package works everywhere, exactly."""

import dataclasses
import functools
import inspect
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import operations
from speculative_t5x.speculation import contracts
from speculative_t5x.tasks import bulletins
from tests import compilation
from tests import repeat_last
from tests import tiny

CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
SOURCE = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
TEXTS = ['The train from Bonn is late.', 'It will rain in Turin today.']

_GIN = """
from __gin__ import dynamic_registration

from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import t5
from speculative_t5x.tasks import ende
from tests import repeat_last

include 'configs/runs/{job}.gin'

MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {{'inputs': 24, 'targets': 12}}
NUM_EXAMPLES = 6
BATCH_SIZE = 2
GAMMA = 3

DRAFTER = @source.WithoutParameters()
source.WithoutParameters:
  make = @repeat_last.RepeatLast
  kind = 'repeat_last'
"""


def test_example_is_short():
  lines = inspect.getsource(repeat_last).splitlines()
  assert len(lines) <= 60


@functools.cache
def decoder():
  return text_decoder.TextDecoder(
      tiny.model(CONFIG),
      SOURCE.load(),
      vocabularies.load(bulletins.VOCABULARY_FILE),
      gamma=3,
      inputs_length=24,
      targets_length=12,
      matmul_precision='highest',
  )


def own(kind):
  """Returns the decoder with another class of drafter."""
  drafter = source.WithoutParameters(kind, 'own').load()
  return decoder().tokens.with_drafter(drafter, 3)


class TestPython:

  def test_greedy_outputs_are_those_of_plain_decoding(self):
    found, expected = decoder().decode(TEXTS), decoder().decode_plain(TEXTS)
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    assert found.statistics['drafted'] > 0

  def test_acceptance(self):
    """The acceptance probability of a point mass is that of its token."""
    tokens = decoder().tokens
    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    decoded = jax.device_get(tokens.plain(request))
    texts = acceptance.score(tokens, request, decoded)
    for text, ids, count in zip(texts, decoded.sequences, decoded.num_tokens):
      before = np.concatenate([[0], ids[: count - 1]])
      np.testing.assert_array_equal(
          text.acceptance_probs > 0, ids[:count] == before
      )
      assert np.all((text.betas > 0) & (text.betas < 1))

  def test_acceptance_of_a_point_mass_ignores_its_probabilities(self):
    class WithProbs(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        shape = (*draft.tokens.shape, self.target.vocab_size)
        draft = draft.replace(
            probs=jnp.full(shape, jnp.nan),
            is_point_mass=jnp.ones(draft.tokens.shape, bool),
        )
        return draft, *rest

    tokens = decoder().tokens
    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    decoded = jax.device_get(tokens.plain(request))
    expected = acceptance.score(tokens, request, decoded)
    for one, two in zip(
        acceptance.score(own(WithProbs), request, decoded), expected
    ):
      np.testing.assert_array_equal(one.betas, two.betas)
      np.testing.assert_array_equal(one.acceptance_probs, two.acceptance_probs)

  def test_acceptance_where_nothing_is_drafted(self):
    class Nowhere(repeat_last.RepeatLast):
      """Its tokens only fill the blocks."""

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        return draft.replace(lengths=0 * draft.lengths), *rest

    tokens = own(Nowhere)
    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    decoded = jax.device_get(tokens.plain(request))
    for text in acceptance.score(tokens, request, decoded):
      assert not text.betas.any()
      assert not text.acceptance_probs.any()

  def test_operations(self):
    request, _ = decoder().make_request(TEXTS)
    found = operations.count(decoder().tokens, request)
    assert found.ops_coefficient == found.draft == 0
    assert found.factor(10, 10) == found.verify / found.target > 1

  def test_trace(self):
    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    trace = jax.device_get(decoder().tokens.traced(request))
    assert trace.outcomes.draft_tokens.shape[-1] == 3

  @pytest.mark.parametrize('name', ['end', 'padding', 'start'])
  def test_special_ids_that_differ_from_the_target(self, name):
    ids = dict(end=1, padding=0, start=0) | {name: 2}

    class Other(repeat_last.RepeatLast):
      special_ids = contracts.SpecialIds(**ids)

    drafter = source.WithoutParameters(Other, 'other').load()
    with pytest.raises(ValueError, match=f'{name} 2.*the target end 1, pad'):
      token_decoder.TokenDecoder(tiny.model(CONFIG), drafter, gamma=2, length=4)

  def test_no_draft_tokens(self):
    drafter = SOURCE.load()
    with pytest.raises(ValueError, match='gamma must be at least 1, got 0'):
      token_decoder.TokenDecoder(tiny.model(CONFIG), drafter, gamma=0, length=4)


class TestOddDrafts:

  def test_ids_outside_the_vocabulary_end_a_draft(self):
    class Outside(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        outside = jnp.resize(jnp.array([-1, 2048]), len(draft.tokens))
        tokens = draft.tokens.at[:, 1].set(outside)
        return draft.replace(tokens=tokens), *rest

    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    found = jax.device_get(own(Outside).speculative(request))
    assert np.all((found.sequences >= 0) & (found.sequences < 2048))
    for drafted in found.statistics.drafted_histogram[:2]:
      assert drafted[1] > 0 and not drafted[2:].any()
    assert np.all(found.statistics.num_computed > found.num_calls)

  def test_lengths_are_clipped(self):
    class Lengthy(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        more = jnp.resize(jnp.array([10, -10]), len(draft.lengths))
        return draft.replace(lengths=draft.lengths + more), *rest

    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    found = jax.device_get(own(Lengthy).speculative(request))
    longest, empty = found.statistics.drafted_histogram[:2]
    assert longest[3] > 0 and not longest[4:].any()
    assert empty[0] > 0 and not empty[1:].any()

  def test_cache_of_the_target_is_the_returned_one(self):
    class Erasing(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, state, cache = super().propose(*args)
        return draft, state, jax.tree.map(jnp.zeros_like, cache)

    request, _ = decoder().make_request(TEXTS, temperature=1.0)
    found = jax.device_get(own(Erasing).speculative(request))
    usual = jax.device_get(decoder().tokens.speculative(request))
    assert not np.allclose(found.log_probs, usual.log_probs)


class TestMistakes:
  """Each raises one clear error before anything is compiled."""

  def test_a_class_instead_of_a_loaded_drafter(self):
    with pytest.raises(ValueError, match='must be a loaded model.*RepeatLast'):
      token_decoder.TokenDecoder(
          tiny.model(CONFIG), repeat_last.RepeatLast, gamma=2, length=4
      )

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'tokens': np.zeros((2, 2), int)}, r'tokens has shape \(2, 2\)'),
          ({'lengths': np.zeros((2, 1), int)}, r'lengths has shape \(2, 1\)'),
          (
              {'probs': np.ones((2, 3, 2048)), 'is_point_mass': np.ones(2)},
              'is_point_mass has shape',
          ),
          (
              {'is_point_mass': np.ones((2, 3), bool)},
              'with is_point_mass and without probs',
          ),
          ({'probs': np.ones((2, 3, 9))}, r'probs .* of \(2, 3, 2048\)'),
      ],
  )
  def test_draft_of_another_shape(self, changes, message):
    class Broken(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        return draft.replace(**changes), *rest

    request, _ = decoder().make_request(TEXTS)
    with pytest.raises(ValueError, match=f'a Draft .*{message}'):
      own(Broken).speculative(request)

  def test_drafter_of_another_gamma(self):
    class Five(repeat_last.RepeatLast):

      def __init__(self, target, gamma):
        super().__init__(target, 5)

    with pytest.raises(ValueError, match='Five was made for 3 .*tokens 5. Let'):
      own(Five)

  def test_drafter_that_is_not_hashable(self):
    class Mutable(repeat_last.RepeatLast):
      __hash__ = None

    with pytest.raises(ValueError, match='Mutable is not hashable.*frozen'):
      own(Mutable)

  @pytest.mark.parametrize('gamma', [2.0, True, '2'])
  def test_gamma_that_is_no_integer(self, gamma):
    with pytest.raises(ValueError, match=f'must be an integer, got {gamma!r}'):
      token_decoder.TokenDecoder(
          tiny.model(CONFIG), SOURCE.load(), gamma=gamma, length=4
      )

  @pytest.mark.parametrize('name', ['tokens', 'lengths'])
  def test_draft_of_another_type(self, name):
    class Floats(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        value = getattr(draft, name).astype(jnp.float32)
        return draft.replace(**{name: value}), *rest

    request, _ = decoder().make_request(TEXTS)
    with pytest.raises(ValueError, match=f'{name} are float32 instead of int3'):
      own(Floats).speculative(request)

  @pytest.mark.parametrize(
      ('change', 'message'),
      [
          (lambda draft, state, cache: draft, 'must return three values from'),
          (lambda draft, state, cache: (draft, cache), 'must return three val'),
          (
              lambda draft, state, cache: (draft.tokens, state, cache),
              'must return a contracts.Draft from propose, got .*Tracer',
          ),
          (
              lambda draft, state, cache: (draft, draft.lengths, cache),
              'returned its state with another structure',
          ),
          (
              lambda draft, state, cache: (draft, state, None),
              "returned the target's cache with another structure",
          ),
          (
              lambda draft, state, cache: (
                  draft,
                  state,
                  jax.tree.map(lambda x: x.astype(jnp.bfloat16), cache),
              ),
              "returned the target's cache with bfloat16.* instead of float32",
          ),
      ],
  )
  def test_what_propose_returns(self, change, message):
    class Broken(repeat_last.RepeatLast):

      def propose(self, *args):
        return change(*super().propose(*args))

    request, _ = decoder().make_request(TEXTS)
    with pytest.raises(ValueError, match=f'The drafter Broken {message}'):
      own(Broken).speculative(request)

  def test_acceptance_checks_the_draft(self):
    class Short(repeat_last.RepeatLast):

      def propose(self, *args):
        draft, *rest = super().propose(*args)
        return draft.replace(tokens=draft.tokens[:, :0]), *rest

    request, _ = decoder().make_request(TEXTS)
    decoded = jax.device_get(decoder().tokens.plain(request))
    with pytest.raises(ValueError, match='tokens has shape'):
      acceptance.score(own(Short), request, decoded)

  def test_class_that_takes_other_arguments(self):
    class Nothing:
      pass

    with pytest.raises(
        ValueError, match='cannot make a drafter of a target an'
    ):
      own(Nothing)

  def test_class_without_a_part_of_the_contract(self):
    @dataclasses.dataclass(frozen=True)
    class Partial:
      target: contracts.Model
      max_draft_tokens: int

    with pytest.raises(ValueError, match='lacks num_uniforms, init, propose'):
      own(Partial)

  @pytest.mark.parametrize('number', [-1, 2.0, '2', None])
  def test_number_of_uniforms(self, number):
    class Odd(repeat_last.RepeatLast):
      pass

    with pytest.raises(ValueError, match=f'has num_uniforms {number!r}, which'):
      own(lambda target, gamma: Odd(target, gamma, number))

  def test_uniforms_that_are_indexed(self):
    class Indexing(repeat_last.RepeatLast):

      def propose(self, params, memory, state, view):
        return view.uniforms[:, 0]

    request, _ = decoder().make_request(TEXTS)
    with pytest.raises(TypeError, match='divided and not indexed'):
      own(Indexing).speculative(request)

  def test_a_drafter_that_draws_more_than_it_declares(self):
    @dataclasses.dataclass(frozen=True)
    class Greedy(repeat_last.RepeatLast):
      num_uniforms: int = 2

      def propose(self, params, memory, state, view):
        view.uniforms.split(3)
        return super().propose(params, memory, state, view)

    request, _ = decoder().make_request(TEXTS)
    with pytest.raises(
        ValueError, match='drafter Greedy asks for 3 .* and declares 2'
    ):
      own(Greedy).speculative(request)


@pytest.mark.parametrize('job', ['eval', 'walltime'])
def test_jobs_by_gin(job, tmp_path, capsys):
  with compilation.unchecked_types():  # walltime lowers programs
    _run_job(job, tmp_path, capsys)


def _run_job(job, tmp_path, capsys):
  gin_file = tmp_path / 'own.gin'
  gin_file.write_text(_GIN.format(job=job))
  checkpoints.save(tmp_path / 'target', 1, tiny.params(CONFIG))
  output = tmp_path / 'output'
  flags = ['--gin.REPEATS=1']
  if job == 'walltime':
    flags += ['--gin.ALPHA_TOKENS=50', '--gin.TEMPERATURE=(0.0, 1.0)']
  status = main.main(
      [
          job,
          f'--gin_file={gin_file}',
          f'--gin.CHECKPOINT_PATH={tmp_path / "target"}',
          f'--output_dir={output}',
          *flags,
      ]
  )
  assert status == 0, capsys.readouterr().err
  lines = pathlib.Path(output, 'results.jsonl').read_text().splitlines()
  for record in map(json.loads, lines):
    assert record['drafter']['kind'] == record['drafter']['name']
    assert record['drafter']['kind'] == 'repeat_last'
    assert record['drafter']['num_params'] is None
    assert record['speculative']['drafted'] > 0
    if record['temperature'] == 0:
      assert record['greedy']['identical'] == record['num_examples']
    if job == 'walltime':
      assert record['ops_coefficient'] == 0
      # At temperature 0, no token repeats the last one.
      assert 0 <= record['alpha']['value'] < 1
      assert (record['alpha']['value'] > 0) == (record['temperature'] > 0)
  assert 'repeat_last' in capsys.readouterr().out
