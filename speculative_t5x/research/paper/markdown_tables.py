# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with measured values beside its own.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7); T (temperature).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import differences
from speculative_t5x.research.paper import points
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.rules import lenience
from speculative_t5x.rules import rejection_sampling
from speculative_t5x.speculation import theory

_NOTE = (
    'EXP is Theorem 3.8. "over plain" is plain over speculative walltime, with'
    " its 95% interval, by the same network and kernels; the paper's EMP is"
    ' over T5X\'s sampler, as is "over T5X", where T5X was timed too.'
    ' Acceptance is simulated if draft tokens were accepted at a given rate,'
    ' which is alpha, and measured if the models decided. The last column has'
    " the largest causes of the difference from the paper's EMP, of 5% or more,"
    ' each with its factor.'
)
_PAIR = 'task', 'draft', 'T', 'gamma', 'acceptance'
_HEADLINE_2 = *_PAIR, *walltime_summary.SPEEDUPS, "paper's EMP", 'verdict'
_HEADLINE_4 = (
    *_PAIR, 'alpha', 'c', 'EXP', "paper's EXP", *walltime_summary.SPEEDUPS,
    "paper's EMP",
)  # fmt: skip
_EXPECTED, _COUNTED = 'expected', 'accepted / tested'
_NOTE_5 = (
    f'{_EXPECTED} is the mean of sum min(p / l, q) on text that the target'
    f' wrote; {_COUNTED} are the counts of the loop, which continues its own'
    ' text. Positions for which a drafter proposes nothing, as copying often'
    ' does, count as 0 in the first and are left out of the second. The paper'
    ' does not say how it resamples.'
)
_NOTE_A_2 = (
    'Appendix A.2: rejection sampling, which redraws from p, beside the'
    f" paper's rule. {_EXPECTED} is the mean of the smallest q / p. A draft"
    ' that rules out a token of the target accepts nothing, and over a whole'
    ' vocabulary there is always a token that is much less likely to be'
    ' drafted.'
)


class Pair(NamedTuple):
  """What the paper job measured of a target and a drafter.

  Attributes:
    task: Name of the task, as the paper's 'EnDe' and 'CNNDM'.
    draft: Name of the drafter, as the paper's 'small', 'base' and 'large'.
    records: Its records.
  """

  task: str
  draft: str
  records: Sequence[run_record.RunRecord]


def table_1() -> markdown.Page:
  """Return Table 1: the factors of Theorems 3.8 and 3.11, and the paper's."""
  return markdown.page([markdown.table(map(_factors, published.TABLE_1))])


def _factors(row: published.Factors) -> markdown.Row:
  operations = float(theory.operations_factor(row.alpha, row.gamma, 0))
  speed = float(theory.walltime_factor(row.alpha, row.gamma, 0))
  ours, paper = (operations, speed), (row.operations, row.speed)
  agrees = [*map(cells.number, ours)] == [*map(cells.number, paper)]
  return {
      'alpha': f'{row.alpha:g}',
      'gamma': str(row.gamma),
      'operations': cells.number(operations, 4),
      "paper's operations": cells.number(row.operations),
      'speed': cells.number(speed, 4),
      "paper's speed": cells.number(row.speed),
      'agrees': 'yes' if agrees else 'no',
  }


class _Line(NamedTuple):
  """A line of Tables 2 and 4.

  `gamma` also says who chose it. The row is that of the paper beside which the
  line stands.
  """

  task: str
  draft: str
  gamma: str
  row: published.Row | None
  record: run_record.RunRecord | None


def table_2(
    simulated: Iterable[run_record.RunRecord], pairs: Sequence[Pair] = ()
) -> markdown.Page:
  """Return Table 2: speedups; see `table_4`."""
  return _speeds(_HEADLINE_2, simulated, pairs)


def table_4(
    simulated: Iterable[run_record.RunRecord], pairs: Sequence[Pair] = ()
) -> markdown.Page:
  """Return Table 4: expected and measured speedups.

  A row of the paper has a line per gamma that was measured, or else the record
  with simulated acceptance, and lines of other pairs follow. The page has the
  setup of the runs, a table of the speedups, one of everything, and a note on
  how to read it.
  """
  return _speeds(_HEADLINE_4, simulated, pairs)


def _speeds(
    headline: Sequence[str],
    simulated: Iterable[run_record.RunRecord],
    pairs: Sequence[Pair],
) -> markdown.Page:
  lines = [*_lines([*simulated], pairs)]
  records = [line.record for line in lines if line.record is not None]
  rows = [_compare(line, records) for line in lines]
  shown = [name for name in headline if name in rows[0]]
  table = markdown.with_headline(rows, shown)
  setups = f'{walltime_summary.setup(records)} {_paper_setup()}'
  return markdown.page([setups, table, _NOTE], records)


def _lines(
    simulated: Sequence[run_record.RunRecord], pairs: Sequence[Pair]
) -> Iterator[_Line]:
  """Yield the paper's rows, measured or simulated, and then other pairs."""
  by_rate = {
      (x.drafter.name, x.temperature, x.gamma, x.simulated_acceptance): x
      for x in simulated
  }
  timed = {(pair.task, pair.draft): _by_temperature(pair) for pair in pairs}
  for row in published.TABLES_2_AND_4:
    found = timed.get((row.task, row.draft), {}).pop(row.temperature, ())
    if found:
      yield from _gamma_lines(row.task, row.draft, row, found)
      continue
    key = f't5_1_1_{row.draft}', row.temperature, row.gamma, row.alpha
    gamma = f'{row.gamma}, paper'
    yield _Line(row.task, row.draft, gamma, row, by_rate.get(key))
  for (task, draft), by_temperature in timed.items():
    for found in by_temperature.values():
      yield from _gamma_lines(task, draft, None, found)


def _by_temperature(pair: Pair) -> dict[float, list[run_record.RunRecord]]:
  """Return the records with a speedup."""
  found = {}
  for record in pair.records:
    if record.speedup is not None:
      found.setdefault(record.temperature, []).append(record)
  return found


def _gamma_lines(
    task: str,
    draft: str,
    row: published.Row | None,
    found: Sequence[run_record.RunRecord],
) -> Iterator[_Line]:
  """Yield a line per gamma: the first one, and the best by Theorem 3.8."""
  first, *others = found
  chosen = ['given' if row is None else 'paper']
  best = theory.optimal_gamma(readings.alpha(first), first.c)
  if not others and first.gamma == int(best):
    chosen.append('Theorem 3.8')
  yield _Line(task, draft, f'{first.gamma}, {" and ".join(chosen)}', row, first)
  for record in others:
    yield _Line(task, draft, f'{record.gamma}, Theorem 3.8', row, record)


def _compare(
    line: _Line, records: Sequence[run_record.RunRecord]
) -> markdown.Row:
  row, record = line.row, line.record
  ours = {} if record is None else _ours(line)
  own = lambda name: ours.get(name, cells.MISSING)
  paper = lambda name, decimals: cells.number(
      row and getattr(row, name), decimals
  )
  temperature = record.temperature if row is None else row.temperature
  speedups = walltime_summary.speedups(record, records)
  return {
      'task': line.task,
      'draft': f'{line.draft} ★' if row and row.is_best else line.draft,
      'T': f'{temperature:g}',
      'gamma': line.gamma,
      'acceptance': 'not run' if record is None else cells.acceptance(record),
      'alpha': own('alpha'),
      "paper's alpha": paper('alpha', 2),
      'c': own('c'),
      "paper's c": paper('cost_coefficient', 2),
      'EXP': own('Thm 3.8'),
      "paper's EXP": paper('predicted', 1),
      **speedups,
      "paper's EMP": paper('measured', 1),
      'verdict': own('verdict'),
      'tokens/call': own('tokens/call'),
      'Eq. (1)': own('Eq. (1)'),
      'bound': own('bound'),
      'efficiency': own('efficiency'),
      'why it differs': own('why'),
  }


def _ours(line: _Line) -> markdown.Row:
  row, record = line.row, line.record
  alpha = readings.alpha(record)
  expected = None
  if alpha is not None:
    expected = float(theory.expected_tokens(alpha, record.gamma))
  why = cells.MISSING
  if row is not None and row.gamma == record.gamma:
    reasons = [
        f'{effect.words} (x{effect.factor:.2f})'
        for effect in differences.reasons(row, record)
    ]
    why = '; '.join(reasons) or 'nothing by 5% or more'
  return {
      **walltime_summary.row(record, [record]),
      'Eq. (1)': cells.number(expected),
      'why': why,
  }


def table_3(
    records: Sequence[run_record.RunRecord], pairs: Sequence[Pair] = ()
) -> markdown.Page:
  """Return Table 3 and the comparison of Appendix A.2.

  The records are of any job, see `points.alphas`. Those of pairs stand beside
  the paper's values where it has the pair.
  """
  known = {
      (row.task, row.draft, temperature): (row, alpha)
      for row in published.TABLE_3
      for temperature, alpha in enumerate(
          (row.at_temperature_0, row.at_temperature_1)
      )
  }
  rows = []
  for pair in pairs:
    for record in pair.records:
      if record.gamma is None:
        key = pair.task, pair.draft, record.temperature
        paper, unusual = None, runs.unusual_sampling(record)
        if not unusual:  # the paper's alphas are of the whole vocabulary
          _, paper = known.pop(key, (None, None))
        name = ', '.join([f'{pair.task}: {pair.draft}', *unusual])
        rows.append(_alpha(name, record.temperature, record.alpha, paper))
  rows += [_alpha(*found) for found in points.alphas(records)]
  rows += [
      {
          'drafter': f'{task}: {draft}, for {row.target}',
          'T': str(temperature),
          "paper's": cells.number(alpha),
      }
      for (task, draft, temperature), (row, alpha) in known.items()
  ]
  controls = [
      {
          'drafter': f'{pair.task}: {pair.draft}',
          'T': f'{record.temperature:g}',
          'top-k': str(record.topk or 'all'),
          "alpha, the paper's rule": cells.number(record.alpha.value, 3),
          f'A.2, {_EXPECTED}': cells.number(record.rule_alpha.value, 3),
          f'A.2, {_COUNTED}': cells.number(record.accepted_per_tested, 3),
      }
      for pair, record in _with_rule(
          pairs, rejection_sampling.RejectionSampling.name
      )
  ]
  parts = [markdown.table(rows)]
  if controls:
    parts += [_NOTE_A_2, markdown.table(controls)]
  measured = [record for pair in pairs for record in pair.records]
  return markdown.page(parts, [*measured, *records])


def _alpha(
    name: str,
    temperature: float,
    estimate: run_record.Alpha,
    paper: float | None = None,
) -> markdown.Row:
  return {
      'drafter': name,
      'T': f'{temperature:g}',
      'alpha': cells.number(estimate.value, 3),
      '95% interval': cells.interval(estimate.ci95, 3),
      'tokens': str(estimate.num_tokens),
      "paper's": cells.number(paper),
  }


def table_5(pairs: Sequence[Pair] = ()) -> markdown.Page:
  """Return Table 5: alpha of measured pairs under lenience, then the paper's.
  """
  found = [*_with_rule(pairs, lenience.Lenience.name)]
  by_pair = {}
  for pair, record in found:
    key = pair.task, pair.draft, f'{record.temperature:g}'
    expected, counted = by_pair.setdefault(key, ({}, {}))
    name = f'l = {record.verification.lenience:g}'
    expected[name] = cells.number(record.rule_alpha.value, 3)
    counted[name] = cells.number(record.accepted_per_tested, 3)
  paper = {
      ('EnDe', draft, '1'): {
          f'l = {value:g}': cells.number(alpha)
          for value, alpha in alphas.items()
      }
      for draft, alphas in published.TABLE_5.items()
  }
  rows = []
  for key in {**by_pair, **paper}:
    names = dict(zip(('task', 'draft', 'T'), key, strict=True))
    ours = zip((_EXPECTED, _COUNTED), by_pair.get(key, ()))
    theirs = [("the paper's", paper[key])] if key in paper else []
    rows += [{**names, 'alpha': kind, **row} for kind, row in (*ours, *theirs)]
  records = [record for _, record in found]
  return markdown.page([markdown.table(rows), _NOTE_5], records)


def _with_rule(
    pairs: Sequence[Pair], rule: str
) -> Iterator[tuple[Pair, run_record.RunRecord]]:
  """Yield the records of what a rule accepts, with their pairs."""
  for pair in pairs:
    for record in pair.records:
      if record.rule_alpha is not None and readings.rule(record).startswith(
          rule
      ):
        yield pair, record


def _paper_setup() -> str:
  drafts = ', '.join(
      f'{name} {readings.size(size)}'
      for name, size in published.DRAFT_NUM_PARAMS.items()
  )
  target = readings.size(published.TARGET_NUM_PARAMS)
  return (
      f'The paper: one {published.DEVICE}; batch {published.BATCH_SIZE}; target'
      f' T5-XXL {target}; draft {drafts}; ★ its best draft.'
  )
