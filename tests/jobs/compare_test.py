# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job on runs of a tiny pair, and on what is changed in them.

The target gives every odd id the logit of the even id below it: writing the one
instead of the other is a near tie at temperature 0.
"""

import json
import types

import numpy as np
import pytest

from speculative_t5x.jobs import compare
from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer as infer_lib
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import lookup_source
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from tests import tiny
from tests import workloads

_CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
_FIRST_TWIN = 4  # after the special ids
_NUM_EXAMPLES, _LENGTH = 4, 12


def _twin_params():
  params = tiny.params(_CONFIG)
  dense = params['decoder']['logits_dense']
  kernel = dense['kernel']
  dense['kernel'] = kernel.at[:, _FIRST_TWIN + 1 :: 2].set(
      kernel[:, _FIRST_TWIN::2]
  )
  return params


@pytest.fixture(scope='module')
def pair(tmp_path_factory):
  """Checkpoints of a target and of a draft model that resembles it."""
  folder = tmp_path_factory.mktemp('pair')
  checkpoints.save(folder / 'target', 1, _twin_params())
  checkpoints.save(folder / 'draft', 2, tiny.params(_CONFIG, noise=0.1))
  return folder


@pytest.fixture(scope='module')
def runs(pair, tmp_path_factory):
  """Output folders of the same eval job by batch size."""
  folders = {}
  for batch_size in (4, 2):
    folders[batch_size] = tmp_path_factory.mktemp('run')
    evaluation.evaluate(
        drafter=workloads.drafter(str(pair / 'draft'), _CONFIG),
        **workloads.job_arguments(
            mixture_or_task_name=ende.BULLETINS,
            split='validation',
            checkpoint_path=str(pair / 'target'),
            task_feature_lengths={'inputs': 24, 'targets': _LENGTH},
            output_dir=str(folders[batch_size]),
            gamma=3,
            num_examples=_NUM_EXAMPLES,
            temperature=(0.0, 1.0),
            batch_size=batch_size,
            seed=5,
        ),
    )
  return folders


def _lines(path):
  return [json.loads(line) for line in path.read_text()[:-1].split('\n')]


def _write(path, lines):
  path.write_text(''.join(f'{json.dumps(line)}\n' for line in lines))


@pytest.fixture
def changed(runs, tmp_path):
  """Returns a function that copies the second run with changes."""

  def change(*, row=lambda row: row, record=lambda record: record):
    folder = tmp_path / f'changed_{len(list(tmp_path.iterdir()))}'
    folder.mkdir()
    for name, function in (('predictions', row), ('results', record)):
      lines = _lines(runs[2] / f'{name}.jsonl')
      _write(folder / f'{name}.jsonl', filter(None, map(function, lines)))
    return folder

  return change


def _with_token(temperature, way, change, position=2):
  """Returns a function that changes one token of one example."""

  def change_row(row):
    if (row['temperature'], row['example_id']) == (temperature, 3):
      tokens = row[f'{way}_tokens']
      tokens[position] = change(tokens[position])
    return row

  return change_row


_wrong = lambda token: 4 + (token + 700) % 2000


@pytest.fixture
def run(runs, pair, tmp_path):
  """Returns a function that compares the first run with another folder."""

  def run(second, first=runs[4], **changes):
    arguments = {
        'first': str(first),
        'second': str(second),
        'output_dir': str(tmp_path / 'out'),
        'drafter': workloads.drafter(str(pair / 'draft')),
    }
    return compare.compare(**(arguments | changes))

  return run


class TestVerdict:

  def test_batch_size_changes_nothing_but_rounding(self, runs, run, capsys):
    found = run(runs[2])
    assert [each.ways[0] for each in found] == 2 * ['baseline', 'speculative']
    assert all(each.num_rows == _NUM_EXAMPLES for each in found)
    assert not any(each.mismatches for each in found)
    assert (
        f'of {_NUM_EXAMPLES} outputs are identical' in capsys.readouterr().out
    )

  @pytest.mark.parametrize(
      ('temperature', 'way'),
      [(0.0, 'speculative'), (1.0, 'baseline'), (1.0, 'speculative')],
  )
  def test_wrong_token(self, run, changed, tmp_path, temperature, way):
    folder = changed(row=_with_token(temperature, way, _wrong))
    with pytest.raises(greedy.MismatchError, match='example 3 at position 2'):
      run(folder)
    (line,) = [
        line
        for line in _lines(tmp_path / 'out' / 'divergence.jsonl')
        if line['differences']
    ]
    assert line['temperature'] == temperature
    assert line['first']['way'] == line['second']['way'] == way
    assert (line['identical'], line['near_tie'], line['mismatch']) == (3, 0, 1)
    (row,) = line['differences']
    assert row['verdict'] == 'mismatch'
    assert row['margin'] is None or row['margin'] > row['tolerance']

  def test_equal_logits(self, run, changed, tmp_path):
    written = []

    def twin(token):
      written.append(token)
      assert token >= _FIRST_TWIN and token % 2 == 0  # the first of the two
      return token + 1

    run(changed(row=_with_token(0.0, 'baseline', twin)))
    line, *others = _lines(tmp_path / 'out' / 'divergence.jsonl')
    (row,) = line['differences']
    assert not any(other['differences'] for other in others)
    assert (row['example_id'], row['position']) == (3, 2)
    assert row['tokens'] == [written[0], written[0] + 1]
    assert row['verdict'] == 'near_tie' and row['decision'] == 'argmax'
    assert row['margin'] <= row['tolerance'] < 1e-3


class TestRequest:
  """The batch that had a row, without models."""

  @pytest.fixture
  def decoders(self, monkeypatch):
    special_ids = types.SimpleNamespace(padding=0)
    decoder = types.SimpleNamespace(
        target_model=types.SimpleNamespace(
            special_ids=special_ids, vocab_size=2048
        ),
        place=lambda request: request,
    )
    monkeypatch.setattr(compare._Decoders, 'of', lambda *_: decoder)
    return compare._Decoders('target', _CONFIG, None, None)

  @pytest.fixture
  def sampled(self):
    record = run_record.RunRecord(
        target=descriptions.ModelDescription(dtype='float32'),
        drafter=descriptions.DrafterDescription(temperature=0.5),
        temperature=1.0,
        topk=0,
        topp=0.0,
        num_decodes=2,
        seed=5,
        batch_size=2,
        inputs_length=4,
        targets_length=3,
    )
    rows = [{'example_id': 10 + i, 'input_tokens': [i, 1]} for i in range(5)]
    tokens = [[[7], [8, i]] for i in range(5)]
    return compare._Run(record, 'speculative', rows, tokens)

  def test_decode(self, decoders, sampled):
    found = decoders.output(sampled, 3, 1)
    assert found.row == 3 and found.sequence.tolist() == [8, 3, 0]
    assert found.request.example_ids.tolist() == [12, 13]

  def test_last_batch_is_padded(self, decoders, sampled):
    found = decoders.output(sampled, 4, 0)
    assert found.row == 0
    assert found.request.example_ids.tolist() == [14, 0]
    assert found.request.limits.tolist() == [3, 0]


class TestCommand:

  @pytest.mark.parametrize('is_wrong', [False, True])
  def test_status(self, runs, changed, capsys, is_wrong):
    greedy_only = lambda line: line if line['temperature'] == 0 else None
    plant = _with_token(0.0, 'baseline', _wrong if is_wrong else lambda x: x)
    folder = changed(row=plant, record=greedy_only)
    status = main.main(['compare', f'--first={runs[4]}', f'--second={folder}'])
    assert status == int(is_wrong)
    assert ('example 3 at position 2' in capsys.readouterr().err) == is_wrong


def _of_infer(way):
  """Returns functions that turn one way of an eval run into an infer run."""
  is_plain = way == 'baseline'

  def record(line):
    only = {'drafter': None, 'gamma': None, 'verification': None}
    return {**line, 'job': 'infer', **(only if is_plain else {})}

  return {
      'record': record,
      'row': lambda row: {**row, 'tokens': row[f'{way}_tokens']},
  }


def _at(temperature, way):
  functions = _of_infer(way)
  only = lambda line: line if line['temperature'] == temperature else {}
  return {
      name: lambda line, f=function: only(line) and f(line)
      for name, function in functions.items()
  }


class TestComparable:

  def test_plain_and_speculative_at_temperature_0(self, run, changed):
    plain, speculative = (
        changed(**_at(0.0, way)) for way in ('baseline', 'speculative')
    )
    (found,) = run(speculative, first=plain)
    assert found.ways == ('baseline', 'speculative')
    assert found.counts.identical == _NUM_EXAMPLES

  def test_plain_and_speculative_samples(self, run, changed):
    plain, speculative = (
        changed(**_at(1.0, way)) for way in ('baseline', 'speculative')
    )
    with pytest.raises(ValueError, match='other runs draw other samples'):
      run(speculative, first=plain)

  @pytest.mark.parametrize(
      ('values', 'named'),
      [
          ({'seed': 6}, r'seed \(5 and 6\)'),
          ({'gamma': 2}, 'gamma'),
          ({'topk': 7, 'topp': 0.5}, 'topk .*, topp'),
          ({'minp': 0.5, 'typicalp': 0.5}, r'minp \(0 and 0.5\), typicalp'),
          ({'num_decodes': 2}, 'num_decodes'),
          ({'targets_length': 9}, 'targets_length'),
          ({'target': {'dtype': 'bfloat16'}}, 'target'),
          ({'job': 'walltime'}, 'eval job or an infer'),
          ({'lossless': False}, 'the rule tokenwise does not keep'),
      ],
  )
  def test_other_settings(self, run, changed, values, named):
    with pytest.raises(ValueError, match=named):
      run(changed(record=lambda line: {**line, **values}))

  @pytest.mark.parametrize(
      ('row', 'named'),
      [
          (lambda row: {**row, 'input_tokens': [7, 1]}, 'input_tokens'),
          (lambda row: {**row, 'example_id': 9}, 'example_id'),
          (
              lambda row: {k: v for k, v in row.items() if 'tokens' not in k},
              'no baseline_tokens',
          ),
      ],
  )
  def test_other_rows(self, run, changed, row, named):
    with pytest.raises(ValueError, match=named):
      run(changed(row=row))

  @pytest.mark.parametrize(
      ('values', 'named'),
      [
          ({'gamma_policy': 'confidence'}, 'policy confidence'),
          ({'verification': {'rule': 'block'}}, 'rule block'),
      ],
  )
  def test_samples_whose_decisions_are_not_known(
      self, run, changed, values, named
  ):
    """Both runs have the setting, so that none differs."""
    folder = changed(record=lambda line: {**line, **values})
    with pytest.raises(ValueError, match=named):
      run(folder, first=folder)

  def test_no_drafter(self, runs, run):
    with pytest.raises(ValueError, match='needs the drafter'):
      run(runs[2], drafter=None)

  def test_folder_without_results(self, run, tmp_path):
    with pytest.raises(ValueError, match='no results.jsonl'):
      run(tmp_path)


class TestHints:

  @pytest.fixture
  def infer(self, pair, tmp_path):
    """Returns a function that samples outputs of inputs with hints."""

    def run(batch_size, hints=('Der Zug', 'Es regnet', 'Um 9:25 Uhr')):
      path = tmp_path / 'in.jsonl'
      rows = [{'inputs': f'{x} is late.', 'hints': x} for x in hints]
      path.write_text(''.join(f'{json.dumps(row)}\n' for row in rows))
      folder = tmp_path / f'infer_{batch_size}_{hints[0]}'
      infer_lib.infer(
          **workloads.infer_arguments(
              mixture_or_task_name=None,
              split='',
              checkpoint_path=str(pair / 'target'),
              task_feature_lengths={'inputs': 24, 'targets': _LENGTH},
              drafter=lookup_source.FromContext(),
              inputs=str(path),
              vocabulary_file=bulletins.VOCABULARY_FILE,
              output_dir=str(folder),
              gamma=3,
              temperature=1.0,
              tokens=True,
              batch_size=batch_size,
          )
      )
      return folder

    return run

  def test_are_those_of_the_runs(self, infer):
    folder = infer(2)
    decoders = compare._Decoders(None, None, None, lookup_source.FromContext())
    (found,) = compare._read(folder)
    vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
    for row, text in ((0, 'Der Zug'), (2, 'Um 9:25 Uhr')):
      request = decoders.request(found, row)
      ids = [*vocabulary.encode(text), 1]
      assert request.hints[0, : len(ids)].tolist() == ids
      tokens = np.asarray(decoders.of(found).speculative(request).sequences[0])
      assert found.tokens[row] == [tokens[tokens != 0].tolist()]

  def test_that_differ(self, infer, run):
    other = infer(2)
    rows = _lines(other / 'predictions.jsonl')
    folder = infer(3)
    assert run(folder, other, drafter=lookup_source.FromContext())
    rows[0]['hint_tokens'] = [[5, 1]]
    _write(other / 'predictions.jsonl', rows)
    with pytest.raises(ValueError, match='hint_tokens'):
      run(folder, other, drafter=lookup_source.FromContext())
