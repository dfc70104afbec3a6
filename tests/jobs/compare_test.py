# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job on runs of a tiny pair, and on what is changed in them.

The target gives every odd id the logit of the even id below it: writing the one
instead of the other is a near tie at temperature 0.
"""

import json

import pytest

from speculative_t5x.jobs import compare
from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.research.measurement import greedy
from speculative_t5x.rules import coupled
from tests import tiny
from tests import workloads

_FIRST_TWIN = 4  # after the special ids
_NUM_EXAMPLES, _LENGTH = 4, 12


@pytest.fixture(scope='module')
def evaluate(tmp_path_factory):
  """Return a function that runs an eval job, and returns its folder.

  The draft model resembles the target. A decoder serves all jobs of its gamma.
  """
  load, decoders = workload_lib.Workload.find_decoder, {}

  def load_once(*args, gamma, batch_size, **options):
    if gamma not in decoders:
      decoder, _ = load(*args, gamma=gamma, batch_size=batch_size, **options)
      decoders[gamma] = workload_lib.loaded(decoder)
    return decoders[gamma], batch_size

  pair = tmp_path_factory.mktemp('pair')
  params = tiny.params(workloads.CONFIG)
  dense = params['decoder']['logits_dense']
  kernel = dense['kernel']
  dense['kernel'] = kernel.at[:, _FIRST_TWIN + 1 :: 2].set(
      kernel[:, _FIRST_TWIN::2]
  )
  checkpoints.save(pair / 'target', 1, params)
  draft = tiny.params(workloads.CONFIG, noise=0.1)
  checkpoints.save(pair / 'draft', 2, draft)

  def run(**options):
    folder = tmp_path_factory.mktemp('run')
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(workload_lib.Workload, 'find_decoder', load_once)
      evaluation.evaluate(
          workloads.eval_setup(
              drafter=workloads.drafter(str(pair / 'draft'), workloads.CONFIG),
              checkpoint_path=str(pair / 'target'),
              task_feature_lengths={'inputs': 24, 'targets': _LENGTH},
              output_dir=str(folder),
              num_examples=_NUM_EXAMPLES,
              seed=5,
              **{'gamma': 1, **options},
          )
      )
    return folder

  return run


@pytest.fixture(scope='module')
def runs(evaluate):
  """Return the folders of two runs, by their batch size."""
  temperatures = dict(temperature=(0.0, 1.0))
  return {x: evaluate(batch_size=x, **temperatures) for x in (4, 2)}


def _write(path, lines):
  path.write_text(''.join(f'{json.dumps(line)}\n' for line in lines))


@pytest.fixture
def changed(runs, tmp_path):
  """Return a function that copies the second run with changes."""

  def change(*, row=lambda row: row, record=lambda record: record):
    folder = tmp_path / f'changed_{len(list(tmp_path.iterdir()))}'
    folder.mkdir()
    for name, function in (('predictions', row), ('results', record)):
      lines = workloads.read(runs[2] / f'{name}.jsonl')
      _write(folder / f'{name}.jsonl', filter(None, map(function, lines)))
    return folder

  return change


def _with_token(temperature, way, change, position=2):
  """Return a function that changes one token of one example."""

  def change_row(row):
    if (row['temperature'], row['example_id']) == (temperature, 3):
      tokens = row[f'{way}_tokens']
      tokens[position] = change(tokens[position])
    return row

  return change_row


_wrong = lambda token: 4 + (token + 700) % 2000


@pytest.fixture
def run(runs, tmp_path):
  """Return a function that compares the first run with another folder."""

  def run(second, first=runs[4], **changes):
    arguments = {
        'first': str(first),
        'second': str(second),
        'output_dir': str(tmp_path / 'out'),
    }
    return compare.compare(**(arguments | changes))

  return run


class TestVerdict:

  def test_batch_size_changes_nothing_but_rounding(self, runs, run):
    found = run(runs[2])
    ways = [each['first']['way'] for each in found]
    assert ways == 2 * ['baseline', 'speculative']
    assert all(each['rows'] == _NUM_EXAMPLES for each in found)
    assert not any(each['mismatch'] for each in found)

  @pytest.mark.parametrize(
      ('temperature', 'way', 'verdict'),
      [
          (0.0, 'speculative', 'mismatch'),
          (1.0, 'baseline', 'unexplained'),
          (1.0, 'speculative', 'unexplained'),
      ],
  )
  def test_wrong_token(
      self, run, changed, tmp_path, capsys, temperature, way, verdict
  ):
    folder = changed(row=_with_token(temperature, way, _wrong))
    if verdict == 'mismatch':
      with pytest.raises(
          greedy.MismatchError, match='example 3 at position 2'
      ):
        run(folder)
    else:
      run(folder)
      assert '1 that differ and are not explained' in capsys.readouterr().out
    (line,) = [
        line
        for line in workloads.read(tmp_path / 'out' / 'divergence.jsonl')
        if line['differences']
    ]
    assert line['temperature'] == temperature
    assert line['first']['way'] == line['second']['way'] == way
    assert line['identical'] == 3 and line[verdict] == 1
    (row,) = line['differences']
    assert (row['verdict'], row['example_id']) == (verdict, 3)
    assert row['margin'] is None or row['margin'] > row['tolerance']

  def test_equal_logits(self, run, changed, tmp_path):
    written = []

    def twin(token):
      written.append(token)
      assert token >= _FIRST_TWIN and token % 2 == 0  # the first of the two
      return token + 1

    run(changed(row=_with_token(0.0, 'baseline', twin)))
    line, *others = workloads.read(tmp_path / 'out' / 'divergence.jsonl')
    (row,) = line['differences']
    assert not any(other['differences'] for other in others)
    assert (row['example_id'], row['position']) == (3, 2)
    assert row['tokens'] == [written[0], written[0] + 1]
    assert row['verdict'] == 'near_tie' and row['decision'] == 'argmax'
    assert row['margin'] <= row['tolerance'] < 1e-3


def test_samples_of_a_coupled_rule_are_explained(evaluate, run, tmp_path):
  """Whatever drafted them: the second run has another gamma, too."""
  coupled_run = dict(rule=coupled.CoupledGumbel(), temperature=1.0)
  first = evaluate(**coupled_run, batch_size=4)
  second = evaluate(**coupled_run, batch_size=2, gamma=2)
  found = run(second, first=first)
  assert len(found) == 2
  assert not any(x['mismatch'] or x['unexplained'] for x in found)
  rows = workloads.read(second / 'predictions.jsonl')
  change = _with_token(1.0, 'speculative', _wrong)
  _write(second / 'predictions.jsonl', map(change, rows))
  with pytest.raises(greedy.MismatchError, match='example 3 at position 2'):
    run(second, first=first)


def test_status_of_the_command(runs, changed, capsys):
  folder = changed(row=_with_token(0.0, 'baseline', _wrong))
  for second, status in ((runs[4], 0), (folder, 1)):
    flags = f'--first={runs[4]}', f'--second={second}'
    assert main.main(['compare', *flags]) == status
  assert 'example 3 at position 2' in capsys.readouterr().err


def _of_infer(temperature, way):
  """Return functions that turn a part of an eval run into an infer run."""
  only = {'job': 'infer'}
  if way == 'baseline':
    only |= {'drafter': None, 'gamma': None, 'verification': None}
  is_own = lambda line: line['temperature'] == temperature
  return {
      'record': lambda line: line | only if is_own(line) else None,
      'row': lambda row: (
          row | {'tokens': row[f'{way}_tokens']} if is_own(row) else None
      ),
  }


class TestComparable:

  def test_plain_and_speculative_at_temperature_0(self, run, changed):
    plain, speculative = (
        changed(**_of_infer(0.0, way)) for way in ('baseline', 'speculative')
    )
    (found,) = run(speculative, first=plain)
    ways = found['first']['way'], found['second']['way']
    assert ways == ('baseline', 'speculative')
    assert found['identical'] == _NUM_EXAMPLES

  @pytest.mark.parametrize(
      ('values', 'named'),
      [
          ({'seed': 6}, r'seed \(5 and 6\)'),
          ({'topk': 7, 'topp': 0.5}, 'topk .*, topp'),
          ({'num_decodes': 2}, 'num_decodes'),
          ({'targets_length': 9}, 'targets_length'),
          ({'target': {'dtype': 'bfloat16'}}, 'target'),
          ({'job': 'walltime'}, 'eval job or an infer'),
      ],
  )
  def test_other_settings(self, run, changed, values, named):
    with pytest.raises(ValueError, match=named):
      run(changed(record=lambda line: {**line, **values}))

  @pytest.mark.parametrize(
      ('change', 'named'),
      [
          ({'input_tokens': [7, 1]}, 'input_tokens'),
          ({'example_id': 9}, 'example_id'),
          (None, 'no baseline_tokens'),
      ],
  )
  def test_other_rows(self, run, changed, change, named):
    without = lambda row: {k: v for k, v in row.items() if 'tokens' not in k}
    row = (lambda row: row | change) if change else without
    with pytest.raises(ValueError, match=named):
      run(changed(row=row))

  def test_a_lossy_rule_at_temperature_0(self, run, changed):
    """Two of its runs are compared, and not one with plain decoding."""
    lossy = lambda line: line | {'lossless': False}
    folders = {}
    for way in ('baseline', 'speculative'):
      change = _of_infer(0.0, way)
      record = lambda line, own=change['record']: (
          own(lossy(line)) if own(line) else None
      )
      folders[way] = changed(record=record, row=change['row'])
    (found,) = run(folders['speculative'], first=folders['speculative'])
    assert found['identical'] == _NUM_EXAMPLES
    with pytest.raises(ValueError, match='cannot be compared'):
      run(folders['speculative'], first=folders['baseline'])
