# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the paper job measures of pairs, on tiny models.

What is measured is made up, but where lenience is.
"""

import dataclasses
import functools
import gc
import types
import weakref

import numpy as np
import pytest

from speculative_t5x.decoder import counts
from speculative_t5x.drafters import tables
from speculative_t5x.jobs import make_table
from speculative_t5x.jobs import paper
from speculative_t5x.jobs import t5x_baseline
from speculative_t5x.jobs import task_pairs
from speculative_t5x.jobs import workload
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import measured_pairs
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import theory
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import predictions
from speculative_t5x.tasks import task_metrics
from tests import tiny
from tests import workloads
from tests.research.paper import records

_ALL = 'table2', 'table3', 'table5'
_COST = 0.3  # so that Theorem 3.8 chooses small gammas
_SETTINGS = task_pairs.Settings(
    samplings=sampling.each((0.0, 1.0)),
    gamma=2,
    control_topk=(0, 3),
    num_examples=2,
    alpha_tokens=20,
    repeats=1,
)


pytestmark = pytest.mark.usefixtures('unchecked_types')


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
  """Paths of the tiny pair, and of a draft with fewer logits than pieces."""
  folder = tmp_path_factory.mktemp('pair')
  pair = workloads.save_pair(folder)
  short = dataclasses.replace(workloads.CONFIG, vocab_size=64)
  checkpoints.save(folder / 'short', 1, tiny.params(short))
  return types.SimpleNamespace(
      target=pair.target,
      draft=pair.draft,
      short=workloads.drafter(str(folder / 'short'), short),
  )


@pytest.fixture
def events(monkeypatch):
  """Note what is measured, and make it up; `fails_at` raises.

  `targets` has what was loaded.
  """
  state = types.SimpleNamespace(names=[], targets=[], fails_at=None)

  def note(name):
    if len(state.names) == state.fails_at:
      raise KeyboardInterrupt
    state.names.append(name)

  def write(decoder, requests, settings, num_tokens, **_):
    note('write')
    assert decoder.target.params  # reads the weights
    return [settings.sampling]

  def collect(decoder, written):
    note('collect')
    name = decoder.loaded_drafter.description.name
    ((sampled,),) = [written]
    rng = np.random.default_rng(
        [len(name), int(sampled.temperature), int(sampled.top_k)]
    )
    betas = rng.random((7, 30)).astype(np.float32)
    return [acceptance.Text(betas[0], np.sort(betas[2:6], 0), betas[6])]

  def measure(programs, batches, settings, name, reference):
    note('walltime')
    gamma = programs.decoder.options.gamma
    run = interleaved.Run(None, (1.0,), None, [])
    return records.with_times(settings, gamma, c=_COST), run, run

  def run(timer, batches, *, after):
    note('counts')
    rule = str(batches[0].rule)
    counted = outcome.Statistics(
        (len(rule), 2), (5, len(rule)), (0, 9), 9, 0
    )
    found = counts.Counts(9, 7, 7, 7, counted)
    return (interleaved.Run(found, (1.0,), None, None),)

  load = models.Found.load

  def load_noting(found, **options):
    loaded = load(found, **options)
    if found.stored.folder.parent.name == 'target':
      state.targets.append(weakref.ref(loaded))
    return loaded

  for owner, name, function in (
      (acceptance, 'write', write),
      (acceptance, 'collect', collect),
      (walltimes, 'measure', measure),
      (interleaved.Timer, 'run', run),
      (models.Found, 'load', load_noting),
      (greedy, 'compare', lambda *_: run_record.Greedy(2, 0, 0)),
      (predictions, 'read', lambda *_: types.SimpleNamespace(
          best=None, aux_values=None)),
      (task_metrics, 'compute', lambda *_: {}),
  ):  # fmt: skip
    monkeypatch.setattr(owner, name, function)
  return state


def _pairs(saved, name, **changes):
  """Return a task with a draft model and copies."""
  options = {
      'drafts': {
          'small': workloads.drafter(saved.draft, workloads.CONFIG),
          'copy': lookup_drafting.Lookup(),
      },
      'workload': workload.Workload(
          mixture_or_task_name=ende.BULLETINS,
          split='validation',
          task_feature_lengths=workloads.LENGTHS,
          checkpoint_path=saved.target,
          target_config=workloads.CONFIG,
      ),
  }
  return task_pairs.TaskPairs(name, **options | changes)


def _uniform():
  return drafting.Drafting(tables.make_uniform, 'uniform')


def _tables(folder):
  """Return the tables of a folder, without the digests of their records."""
  found = measured_pairs.find(folder)
  paper.table3(folder)
  paper.table5(folder)
  made = [str(markdown_tables.tables_2_and_4([], found))]
  made += [(folder / f'table{i}.md').read_text() for i in (3, 5)]
  return ['\n'.join(x.splitlines()[:-1]) for x in made]


def test_killed_twice(saved, events, tmp_path):
  """The same command ends with the same tables, and measures nothing twice."""
  tasks = [
      _pairs(saved, 'EnDe', scored={'uniform': _uniform()}),
      _pairs(saved, 'mine', drafts={'copy': lookup_drafting.Lookup()}),
  ]
  measure = functools.partial(
      task_pairs.measure, tasks=tasks, tables=_ALL, settings=_SETTINGS
  )
  measure(tmp_path / 'whole')
  whole, total = _tables(tmp_path / 'whole'), len(events.names)
  # A target is read once per task, and one after the other.
  gc.collect()
  assert [target() for target in events.targets] == [None] * 2

  events.names.clear()
  for fails_at in (total // 5, total - 2):
    events.fails_at = fails_at
    with pytest.raises(KeyboardInterrupt):
      measure(tmp_path / 'killed')
  events.fails_at = None
  measure(tmp_path / 'killed')
  assert _tables(tmp_path / 'killed') == whole
  # What the target wrote is written again, unless alpha is known; each other
  # measurement is made once.
  written = [name for name in events.names if name == 'write']
  assert total <= len(events.names) <= total + len(written)

  kept = measured_pairs.find(tmp_path / 'killed')
  events.names.clear(), events.targets.clear()
  measure(tmp_path / 'killed')
  assert measured_pairs.find(tmp_path / 'killed') == kept
  assert not events.names and not events.targets


class TestRecords:

  def test_of_each_table(self, saved, events, tmp_path):
    """Only what a table needs is measured, and all that it needs."""
    task = _pairs(saved, 'EnDe', scored={'uniform': _uniform()})
    num_temperatures, num_leniences = 2, 4
    for name, of_small, of_uniform in (
        ('table2', 'walltime', None),
        ('table3', 'rejection_sampling', num_temperatures),
        ('table5', 'lenience', num_temperatures * (1 + num_leniences)),
    ):
      task_pairs.measure(tmp_path / name, [task], [name], _SETTINGS)
      found = {x.draft: x.records for x in measured_pairs.find(tmp_path / name)}
      assert len(found.pop('uniform', ())) == (of_uniform or 0)
      scored = [x for x in found['small'] if x.gamma is None]
      assert [x.temperature for x in scored] == [0.0, 1.0]
      rest = [x for x in found['small'] if x.gamma is not None]
      if of_small == 'walltime':
        assert all(x.speedup and x.predicted_speedup for x in rest)
      else:
        assert all(of_small in x.verification.rule for x in rest)
        assert all(x.rule_alpha for x in rest)
        assert [(x.temperature, x.topk) for x in rest] == (
            [(1, 0), (1, 3)] if of_small == 'rejection_sampling'
            else [(0, 0)] * num_leniences + [(1, 0)] * num_leniences
        )
        assert all(x.speculative.tested for x in rest)

  def test_gammas(self, saved, events, tmp_path):
    """The paper's where it has the pair, then the best by Theorem 3.8."""
    tasks = [_pairs(saved, name) for name in ('EnDe', 'mine')]
    task_pairs.measure(tmp_path, tasks, ['table2'], _SETTINGS)
    num_chosen = 0
    for pair in measured_pairs.find(tmp_path):
      for temperature in (0, 1):
        own = [x for x in pair.records if x.temperature == temperature]
        timed = [x for x in own if x.speedup]
        is_paper = (pair.task, pair.draft) == ('EnDe', 'small')
        first = 7 if is_paper else _SETTINGS.gamma
        best = int(theory.optimal_gamma(timed[0].alpha.value, _COST))
        others = [] if best in (0, first) else [best]
        assert [x.gamma for x in timed] == [first, *others]
        if best and pair.task == 'mine':  # once if that was the first
          chosen = dataclasses.replace(
              _SETTINGS, gamma=best, samplings=sampling.each(temperature)
          )
          folder = tmp_path / f'{pair.draft}_{temperature}'
          drafts = {pair.draft: tasks[1].drafts[pair.draft]}
          one = dataclasses.replace(tasks[1], drafts=drafts)
          task_pairs.measure(folder, [one], ['table2'], chosen)
          (again,) = measured_pairs.find(folder)
          assert [x.gamma for x in again.records if x.speedup] == [best]
          num_chosen += 1
    assert num_chosen

  @pytest.mark.exhaustive
  def test_lenience_accepts_more(self, saved, tmp_path):
    drafts = {'small': workloads.drafter(saved.draft, workloads.CONFIG)}
    task = _pairs(saved, 'EnDe', drafts=drafts)
    settings = dataclasses.replace(
        _SETTINGS, num_examples=16, alpha_tokens=300, control_topk=(0,)
    )
    task_pairs.measure(tmp_path, [task], ['table3', 'table5'], settings)
    (pair,) = measured_pairs.find(tmp_path)
    lenient = [x for x in pair.records if x.verification.lenience is not None]
    for temperature in (0, 1):
      own = [x for x in lenient if x.temperature == temperature]
      assert [x.verification.lenience for x in own] == [1, 0.5, 0.3, 0.1]
      expected = [x.rule_alpha.value for x in own]
      counted = [x.accepted_per_tested for x in own]
      assert expected[0] == pytest.approx(own[0].alpha.value)
      assert expected == sorted(expected) and counted[0] < counted[-1]
      assert counted[0] == pytest.approx(expected[0], abs=0.15)
      assert own[0].accepted_per_tested_ci95[0] < counted[0]
      for record, rate in zip(own, counted):
        low, high = record.accepted_per_tested_ci95
        assert low <= rate <= high <= 1
    (control,) = [x for x in pair.records if 'rejection' in x.verification.rule]
    assert control.rule_alpha.value < control.alpha.value / 2
    assert control.lossless and not lenient[-1].lossless


def test_unigrams_and_bigrams(saved, events, tmp_path):
  """They are counted once, and before anything is measured."""
  counts = []

  def count(**options):
    counts.append((options, list(events.names)))
    make_table.make_table(**options, num_examples=20)

  task = _pairs(saved, 'mine', drafts={}, count=count)
  for _ in range(2):
    task_pairs.measure(tmp_path, [task], ['table3'], _SETTINGS)
  ((options, before),) = counts
  assert options['mixture_or_task_name'] == ende.BULLETINS and not before
  found = measured_pairs.find(tmp_path)
  assert [pair.draft for pair in found] == ['unigram', 'bigram']
  events.names.clear()
  task_pairs.measure(tmp_path, [task], ['table2'], _SETTINGS)
  assert not events.names  # they are not timed
  longer = dataclasses.replace(
      task.workload, task_feature_lengths={'inputs': 64, 'targets': 40}
  )
  other = dataclasses.replace(task, workload=longer)
  task_pairs.measure(tmp_path, [other], ['table3'], _SETTINGS)
  assert len(counts) == 2


class TestBadInput:

  def test_one_draft_of_six_does_not_fit(self, saved, events, tmp_path):
    """It is named before any is measured, and finished cells are kept."""
    good = _pairs(saved, 'EnDe', drafts={'copy': lookup_drafting.Lookup()})
    task_pairs.measure(tmp_path, [good], ['table3'], _SETTINGS)
    kept = sorted(tmp_path.rglob('*'))
    events.names.clear(), events.targets.clear()
    drafts = {
        name: workloads.drafter(saved.draft, workloads.CONFIG)
        for name in ('small', 'base', 'large', 'other', 'last')
    }
    bad = _pairs(saved, 'CNNDM', drafts={**drafts, 'short': saved.short})
    with pytest.raises(ValueError) as raised:
      task_pairs.measure(tmp_path, [good, bad], _ALL, _SETTINGS)
    message = str(raised.value)
    assert message.startswith('The task CNNDM: ')
    assert '64 logits' in message and '\n' not in message
    assert not events.names and not events.targets
    assert sorted(tmp_path.rglob('*')) == kept

  def test_names(self, saved, tmp_path):
    for changes in (
        {'drafts': {'a/b': _uniform()}},
        {'scored': {'copy': _uniform()}},
        {'drafts': {'bigram': _uniform()}, 'count': make_table.make_table},
    ):
      with pytest.raises(ValueError, match='A draft of the task .* has the na'):
        _pairs(saved, 'mine', **changes)
    tasks = [_pairs(saved, 'mine')] * 2
    with pytest.raises(ValueError, match='mine, mine'):
      task_pairs.measure(tmp_path, tasks, _ALL, _SETTINGS)

class TestT5XBaseline:

  @pytest.fixture
  def target(self, saved):
    return models.find_model(checkpoints.open(saved.target), workloads.CONFIG)

  @pytest.mark.parametrize('times, merged', [(2.9, False), (3.1, True)])
  def test_shares_the_weights_where_a_copy_may_not_fit(
      self, target, monkeypatch, times, merged, capsys
  ):
    monkeypatch.setattr(t5x_baseline, '_guest', object)
    held = 4 * models.count_params(target.config)
    monkeypatch.setattr(memory, 'available_bytes', lambda: int(times * held))
    assert t5x_baseline.prepare(target).merged == merged
    assert ('may not fit' in capsys.readouterr().err) != merged
