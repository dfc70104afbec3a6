# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reports of jobs hold the numbers of their records."""

import dataclasses
import json
import pathlib
import re

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.reports import divergence
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from tests.research.paper import records


def _record(**values):
  model = {'num_params': 11_700_000, 'dtype': 'float32'}
  defaults = {
      'task': 'bulletins_ende', 'split': 'validation', 'num_examples': 8,
      'batch_size': 4, 'temperature': 0.0, 'gamma': 5, 'target': model,
      'drafter': {**model, 'num_params': 900_000},
      'tokens_per_target_call': 2.25, 'draft_acceptance_rate': 0.5,
      'accepted_per_tested': None, 'speedup': 1.5,
      'speedup_ci95': [1.4, 1.6],
      'baseline': {'walltime_s': 3.0, 'target_calls': 80},
      'speculative': {'walltime_s': 2.0, 'target_calls': 32},
      'quality': {
          'baseline': {'bleu': 30.299}, 'speculative': {'bleu': 30.301}
      },
      'greedy': {'identical': 8, 'near_tie': 0, 'mismatch': 0},
  }  # fmt: skip
  machine = dataclasses.asdict(provenance.new_record('eval'))
  return run_record.from_dict(machine | defaults | values)


def _tables(*runs):
  """Return the rows of speed and of quality that an eval job prints."""
  page = walltime_summary.render_eval(runs)
  return [
      dict(zip(header, row, strict=True))
      for header, (row,) in records.tables(page)
  ]


@pytest.mark.parametrize(
    ('accepted', 'count'), [(0.0, 1), (0.004, 1), (0.01, 0), (None, 0)]
)
def test_a_draft_that_is_not_accepted_does_not_pay(accepted, count):
  notes = readings.draft_notes(_record(draft_acceptance_rate=accepted))
  assert len(notes) == count and all('does not pay' in x for x in notes)


class TestEval:
  """`pages_test` compares what is printed of stored records."""

  def test_beams(self):
    """A call makes steps of the search, of whose tokens few are outputs."""
    search = _record(beams=4, num_decodes=4, mean_acceptance_length=1.96)
    assert '; 4 beams; ' in str(walltime_summary.render_eval([search]))
    speed, _ = _tables(search)
    assert speed['steps/call'] == '1.96' and 'tokens/call' not in speed

  @pytest.mark.parametrize('key', ['near_tie', 'mismatch', 'unexplained'])
  def test_outputs_that_differ(self, key):
    counts = {'identical': 7, 'near_tie': 0, 'mismatch': 0, key: 1}
    _, quality = _tables(_record(greedy=counts))
    assert (quality['identical'], quality[key.replace('_', ' ')]) == ('7', '1')


def _measured(speedup, **values):
  """Return a record of some speedup; a drafter's kind and name may be given."""
  kind, name = values.pop('kind', 'model'), values.pop('name', 'a/1')
  rule = values.pop('rule', 'tokenwise')
  return dataclasses.replace(
      records.measured(temperature=values.pop('temperature', 1.0)),
      drafter=descriptions.DrafterDescription(kind=kind, name=name),
      verification=run_record.Verification(rule),
      speedup=speedup,
      speedup_ci95=(speedup - 0.1, speedup + 0.1),
      **{'lossless': True, 'gamma_policy': 'fixed', **values},
  )


def _rows(**tasks):
  """Return the header and the rows of the only table."""
  (table,) = methods_table.tables(tasks).values()
  return records.cells(table)


def test_a_table_per_temperature_and_batch_size():
  tables = methods_table.tables(
      {'one': [_measured(1.2), _measured(1.3, temperature=0.0),
               _measured(1.4, temperature=0.0, batch_size=4)]}
  )  # fmt: skip
  assert {key: records.cells(x)[1][0][4] for key, x in tables.items()} == {
      (0.0, 1): '**1.30 [1.20, 1.40]**',
      (0.0, 4): '**1.40 [1.30, 1.50]**',
      (1.0, 1): '**1.20 [1.10, 1.30]**',
  }


def test_measured_numbers_of_tasks_share_a_row():
  _, rows = _rows(
      a=[_measured(1.2, gamma_policy='expected_speed(0.1, 1.5)')],
      b=[_measured(1.3, gamma_policy='expected_speed(0.2, 1.1)', name='b/2')],
  )
  assert [(row[0], row[2]) for row in rows] == [('model', 'expected_speed')]


def test_several_of_a_kind_have_their_names():
  _, rows = _rows(
      a=[
          _measured(1.2),
          _measured(1.3, name='b/2', gamma_policy='schedule(1, 2)'),
          _measured(1.4, gamma_policy='schedule(5)'),
      ]
  )
  assert [(row[0], row[2]) for row in rows] == [
      ('a/1', 'fixed'), ('b/2', 'schedule(1, 2)'), ('a/1', 'schedule(5)')
  ]  # fmt: skip


class TestRender:

  def test_row_without_speculation(self):
    missing = (
        'drafter', 'gamma', 'alpha', 'c', 'verify_cost_ratio', 'speedup',
        'predicted_speedup', 'bound_speedup', 'speedup_ci95', 'loop_efficiency',
        't_call_ms', 'tokens_per_target_call',
    )  # fmt: skip
    plain = dataclasses.replace(records.measured(), **dict.fromkeys(missing))
    runs = [plain, records.measured(batch_size=4)]
    table = str(walltime_summary.render(runs))
    assert 'batch 1 / 4;' in table
    _, (row, _) = records.cells(table)
    assert row == [
        'none (plain)', '0', '-', '1', *['-'] * 4, '10.000', *['-'] * 7
    ]  # fmt: skip

  def test_quality(self):
    """A wrong vocabulary of equal size shows in nothing else."""
    scores = run_record.BothRuns({'bleu': 12.5}, {'bleu': 45.5})
    run = records.measured(quality=scores)
    cut = dataclasses.replace(run, topk=9)
    table = str(walltime_summary.render([run, run, cut, records.measured(3)]))
    assert table.count('Plain decoding at temperature 0: bleu 12.50') == 1
    assert table.count('Plain decoding at temperature 0, topk 9: bleu') == 1
    assert 'Plain de' not in str(walltime_summary.render([records.measured()]))

  def test_keys_of_the_columns(self):
    run = records.measured(warnings=['too hot'])
    page = str(walltime_summary.render([run]))
    header, _ = records.cells(page)
    *_, legend, warning, _ = page.split('\n\n')
    keys = set(re.findall('`(.*?)`', legend))
    assert keys and keys <= set(run_record.KEYS)
    assert len([word for word in header if f'{word} `' in legend]) >= 8
    assert 'gamma 7' in warning and 'too hot' in warning


_RESULTS = pathlib.Path(__file__).parents[3] / 'results'


@pytest.mark.parametrize(('name', 'count'), [('plain', 1), ('speculative', 2)])
def test_shows_the_comparisons_of_results(name, count):
  text = (_RESULTS / f'divergence_multi30k_{name}.json').read_text()
  line = json.loads(text)
  summary = divergence.render([line])
  assert summary.startswith('temperature')
  assert summary.endswith(f'{count} near ties, 0 mismatches')
