# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the walltime job on a tiny pair and a few embedded examples.

One job measures. The others reuse its measurements, so that only the job itself
runs.
"""

import contextlib
import dataclasses
import functools
import gc
import io
import itertools
import types
import weakref

import numpy as np
import pytest
import seqio

from speculative_t5x.jobs import walltime
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.policies import schedule
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import advice
from speculative_t5x.research.reports import runs
from speculative_t5x.rules import exact_match
from speculative_t5x.rules import k_sequential
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import theory
from speculative_t5x.speculation import verification
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import examples
from tests import compilation
from tests import workloads

_NUM_EXAMPLES, _BATCH_SIZE, _GAMMA, _ALPHA_TOKENS = 5, 2, 2, 150
_read_examples = examples.load


@functools.cache
def _load_examples(name, split, lengths, *counts) -> examples.Examples:
  """Load examples that many jobs share."""
  return _read_examples(name, split, dict(lengths), *counts)


pytestmark = pytest.mark.usefixtures('unchecked_types')


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
  return workloads.save_pair(tmp_path_factory.mktemp('pair'))


_find_drafter = model_drafting.DraftModel.find


def _measure(paths, output_dir, **changes):
  arguments = {
      'checkpoint_path': paths.target,
      'drafters': [workloads.drafter(paths.draft, workloads.CONFIG)],
      'output_dir': str(output_dir),
      'gamma': _GAMMA,
      'num_examples': _NUM_EXAMPLES,
      'temperature': (0.0, 1.0),
      'batch_size': _BATCH_SIZE,
      'seed': 5,
      'repeats': 1,
      'alpha_tokens': _ALPHA_TOKENS,
  }
  if 'samplings' in changes:
    del arguments['temperature']
  values = workloads.job_arguments(**{**arguments, **changes})
  return walltime.measure_walltime(walltime.WalltimeSetup(**values))


def _recorded(function, results):
  """Return the function with its results appended to a list."""

  def call(*args, **options):
    results.append(function(*args, **options))
    return results[-1]

  return call


@pytest.fixture(scope='module')
def ran(paths, tmp_path_factory):
  """Run one job; return what was loaded, measured, timed and printed."""
  folder = tmp_path_factory.mktemp('output') / 'new' / 'folder'
  decoders, measured, texts, timed, opened = [], [], [], [], []
  time_it = interleaved._timed

  def watch(way, batch):
    before = compilation.count()
    result = time_it(way, batch)
    timed.append(compilation.count() - before)
    return result

  with (
      contextlib.redirect_stdout(io.StringIO()) as out,
      pytest.MonkeyPatch.context() as patch,
      workloads.instant_parts(),
  ):
    for module, name, results in (
        (workload_lib, 'loaded', decoders),
        (walltimes, 'measure', measured),
        (acceptance, 'collect', texts),
        (checkpoints, 'open', opened),
    ):
      patch.setattr(module, name, _recorded(getattr(module, name), results))
    patch.setattr(interleaved, '_timed', watch)
    records = _measure(paths, folder)
  return types.SimpleNamespace(
      records=records, folder=folder, decoder=decoders[0], measured=measured,
      texts=texts, timed=timed, opened=opened, out=out.getvalue(),
  )  # fmt: skip


@pytest.fixture
def again(ran, paths, tmp_path, monkeypatch):
  """Return a runner of the job with changes, on measurements of `ran`.

  Its attributes count what was measured; `fails_at` is the measurement that
  raises.
  """
  state = types.SimpleNamespace(
      measured=[], num_collected=0, num_targets=0, fails_at=None, requests=[]
  )

  load_model = models.Found.load

  def load_target(found):
    state.num_targets += 1
    return load_model(found)

  def find_drafter(drafter, target):
    (draft,) = ran.decoder.loaded_drafter.models
    draft = dataclasses.replace(draft, checkpoint=f'{drafter.model}/1')
    return model_drafting.of_model(draft)

  def measure(programs, batches, settings, name, reference):
    decoder = programs.decoder
    temperature = float(batches[0].sampling.temperature)
    if len(state.measured) == state.fails_at:
      raise KeyboardInterrupt
    state.measured.append((decoder.options.gamma, temperature))
    record, *runs = ran.measured[int(temperature > 0)]
    timed = {
        field.name: getattr(record, field.name)
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) is None
    }
    return dataclasses.replace(settings, **timed), *runs

  def compare(decoder, batches, *_):
    return ran.records[int(not batches[0].sampling.is_greedy)].greedy

  def write(decoder, requests, settings, num_tokens, **_):
    state.requests = list(requests)
    return state.requests

  def collect(decoder, written):
    state.num_collected += 1
    return ran.texts[int(written[0].sampling.temperature > 0)]

  monkeypatch.setattr(models.Found, 'load', load_target)
  monkeypatch.setattr(model_drafting.DraftModel, 'find', find_drafter)
  monkeypatch.setattr(walltimes, 'measure', measure)
  monkeypatch.setattr(acceptance, 'write', write)
  monkeypatch.setattr(acceptance, 'collect', collect)
  monkeypatch.setattr(greedy, 'compare', compare)
  monkeypatch.setattr(
      examples,
      'load',
      lambda name, split, lengths, *counts: _load_examples(
          name, split, tuple(lengths.items()), *counts
      ),
  )
  state.run = lambda **changes: _measure(paths, tmp_path, **changes)
  return state


class TestRecord:

  def test_only_timed_examples_count(self, ran):
    vocabulary = seqio.SentencePieceVocabulary(bulletins.VOCABULARY_FILE)
    pairs = bulletins.read_pairs('validation')[:_NUM_EXAMPLES]
    lengths = [len(vocabulary.encode(text)) + 1 for text, _ in pairs]
    truncated = sum(length > workloads.LENGTHS['inputs'] for length in lengths)
    for record, measured in zip(ran.records, ran.measured, strict=True):
      assert record.truncated_inputs == truncated
      _, plain, _ = measured
      # There are three batches of two; one row of the last is padding.
      limits = [d.num_tokens > 0 for d in plain.decoded]
      assert np.sum(limits) == _NUM_EXAMPLES
      tokens = sum(d.num_tokens.sum() for d in plain.decoded)
      assert record.baseline.tokens == tokens

  def test_alpha_is_estimated_on_more_text(self, ran):
    for record, texts in zip(ran.records, ran.texts, strict=True):
      estimate = intervals.estimate_alpha([text.betas for text in texts])
      assert record.alpha == estimate
      assert estimate.num_tokens >= _ALPHA_TOKENS > record.baseline.tokens
      assert record.predicted_speedup == theory.walltime_factor(
          estimate.value, _GAMMA, record.c
      )


def test_walltimes_contain_no_compilation(ran):
  """The warm-up of the second temperature compiles nothing either."""
  per_run = 2 * interleaved.WARMUP + 2 * 3
  first, second = ran.timed[:per_run], ran.timed[per_run:]
  assert len(second) == per_run
  assert first[0] > 0 and first[interleaved.WARMUP] > 0
  assert not any(first[2 * interleaved.WARMUP :])
  assert not any(second)


def test_files(ran, paths):
  """Each checkpoint is opened once; table and advice are printed, written."""
  folders = sorted(str(found.folder.parent) for found in ran.opened)
  assert folders == [paths.draft, paths.target]
  text = (ran.folder / 'walltime.md').read_text()
  results = ran.folder / 'results.jsonl'
  assert ran.out.endswith(f'Records: {results}\n')
  # Markdown goes to the file alone.
  assert '| --- |' in text and '| --- |' not in ran.out
  for record in ran.records:
    (told,) = advice.describe([record])
    line = (
        f'draft/checkpoint_2, temperature {record.temperature:g}, batch 2:'
        f' {told}'
    )
    assert line in text.splitlines() and line in ran.out.splitlines()


class TestSweep:

  def test_each_combination_is_measured_once(self, again):
    records = again.run(gamma=(3, 1, 3), temperature=(0.0, 1.0, 0.0))
    # Configurations of one program follow each other.
    assert again.measured == [(3, 0.0), (3, 1.0), (1, 0.0), (1, 1.0)]
    found = sorted((r.gamma, r.temperature) for r in records)
    assert found == sorted(again.measured)
    # Alpha depends on neither gamma nor batch size.
    assert again.num_collected == 2

  def test_earlier_drafters_are_released(self, again, monkeypatch):
    """None is in memory while the next is read."""
    find, loaded, held = model_drafting.DraftModel.find, [], []

    def watch(*options):
      def read():
        gc.collect()
        held.append([drafter() is not None for drafter in loaded])
        drafter = find(*options)
        loaded.append(weakref.ref(drafter))
        return drafter

      return drafting.Drafting(read=read)

    monkeypatch.setattr(model_drafting.DraftModel, 'find', watch)
    again.run(drafters=[workloads.drafter(f'/drafts/{i}') for i in '123'])
    assert held == [[], [False], [False, False]]

  @pytest.mark.parametrize('one_at_a_time', [False, True])
  def test_drafters_rules_and_policies(
      self, again, tmp_path, one_at_a_time
  ):
    drafts = [tmp_path / 'drafts' / name for name in 'ab']
    for draft in drafts:  # copies of one would be one
      (draft / '1').mkdir(parents=True)
      (draft / '1' / 'weights').write_text(draft.name)
    records = again.run(
        drafters=[workloads.drafter(str(draft)) for draft in drafts],
        rules=[verification.TOKENWISE, exact_match.ExactMatch()],
        policies=[draft_length.Fixed(), schedule.Schedule((1, 2))],
        one_at_a_time=one_at_a_time,
        temperature=1.0,
    )
    found = [
        (r.drafter.name, r.verification.rule, r.gamma_policy) for r in records
    ]
    every = itertools.product(
        ('a/1', 'b/1'),
        ('tokenwise', 'exact_match'),
        ('fixed', 'schedule(1, 2)'),
    )
    chosen = [
        ('a/1', 'tokenwise', 'fixed'),
        ('a/1', 'tokenwise', 'schedule(1, 2)'),
        ('a/1', 'exact_match', 'fixed'),
        ('b/1', 'tokenwise', 'fixed'),
    ]
    assert found == (chosen if one_at_a_time else list(every))
    # The theorem is about a fixed gamma and the rule of the paper.
    assert [x for x, r in zip(found, records) if r.predicted_speedup] == [
        x for x in found if x[1:] == ('tokenwise', 'fixed')
    ]
    # Alpha depends on the drafter alone, and all share the target.
    assert (again.num_collected, again.num_targets) == (2, 1)

  def test_alpha_is_of_both_samplings(self, again):
    """What the target writes, and what is drafted for it, is filtered."""
    own = dict(top_k=9, top_p=0.9, min_p=0.1, typical_p=0.8)
    draft = dict(top_k=5, top_p=0.5, min_p=0.2, typical_p=0.6)
    again.run(
        samplings=[sampling.Sampling(1.0, **own)],
        draft_samplings=[sampling.Sampling(1.0, **draft)],
    )
    asked = again.requests[0]
    for found, wanted in ((asked.sampling, own), (asked.draft_sampling, draft)):
      assert {x: float(getattr(found, x)) for x in wanted} == pytest.approx(
          wanted
      )

  def test_alpha_can_use_all_examples(self, again):
    again.run(temperature=1.0)
    assert len(again.requests) == len(bulletins.read_pairs('validation'))


class TestInterrupted:

  def test_resumes_after_finished_configurations(self, again, tmp_path):
    again.fails_at = 1
    with pytest.raises(KeyboardInterrupt):
      again.run()
    assert again.measured == [(2, 0.0)]
    assert not (tmp_path / 'results.jsonl').exists()
    (first,) = (tmp_path / 'records').iterdir()
    first = runs.read(first)
    again.fails_at, again.measured[:], again.num_collected = None, [], 0
    records = again.run()
    assert again.measured == [(2, 1.0)]
    assert records[:1] == first
    assert runs.read(tmp_path / 'results.jsonl') == records
    # Alpha is not estimated again.
    assert again.num_collected == 0

  def test_other_data_of_the_same_name(self, again, monkeypatch):
    """Neither alpha nor times are those of another vocabulary or file."""
    again.run(temperature=1.0)
    loaded = _load_examples(
        ende.BULLETINS, 'validation', tuple(workloads.LENGTHS.items())
    )
    changed = dataclasses.replace(
        loaded, references=['another', *loaded.references[1:]]
    )
    monkeypatch.setattr(examples, 'load', lambda *_, **__: changed)
    again.run(temperature=1.0)
    assert len(again.measured) == again.num_collected == 2


def test_tokens_for_alpha(again, ran):
  """More of them need another estimate."""
  again.run(temperature=1.0)
  (record,) = again.run(temperature=1.0, alpha_tokens=10**6)
  num_tokens = sum(len(text.betas) for text in ran.texts[1])
  assert record.alpha.num_tokens == num_tokens
  assert again.num_collected == 2


def test_mismatch_is_raised_after_results_are_written(
    again, tmp_path, monkeypatch
):
  counts = run_record.Greedy(identical=4, near_tie=0, mismatch=1)
  monkeypatch.setattr(greedy, 'compare', lambda *_: counts)
  with pytest.raises(greedy.MismatchError, match='1 outputs'):
    again.run()
  assert runs.read(tmp_path / 'results.jsonl')[0].greedy == counts


def test_second_drafter_that_is_missing(again, paths, tmp_path, monkeypatch):
  """It is refused before anything is loaded or measured for the first."""
  target = models.find_model(checkpoints.open(paths.target), workloads.CONFIG)
  monkeypatch.setattr(
      model_drafting.DraftModel,
      'find',
      lambda drafter, _: _find_drafter(drafter, target),
  )
  good, bad = (
      workloads.drafter(str(path), workloads.CONFIG)
      for path in (paths.draft, tmp_path / 'missing')
  )
  with pytest.raises(ValueError, match='The draft: .*missing'):
    again.run(drafters=[good, bad])
  assert again.measured == []
  assert again.num_targets == again.num_collected == 0
  assert not (tmp_path / 'records').exists()


def test_a_rule_that_does_not_fit_trees(again, paths, tmp_path):
  """It is refused before anything is measured by the rule before it."""
  draft = workloads.drafter(paths.draft, workloads.CONFIG)
  with pytest.raises(ValueError, match='k_sequential'):
    again.run(
        drafters=[tree_drafting.CandidateTree(draft, nodes=4)],
        rules=[verification.TOKENWISE, k_sequential.KSequential()],
    )
  assert again.num_targets == again.num_collected == 0
  assert not (tmp_path / 'records').exists()
