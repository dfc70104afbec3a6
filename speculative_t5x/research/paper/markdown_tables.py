# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with measured values beside its own.

A page names the pairs that were measured, and has what was measured first, then
what was simulated, and then the paper's rows that were neither.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
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
    ' over T5X\'s sampler, as is "over T5X", where T5X was timed too. "tokens"'
    ' were timed. The gamma of Theorem 3.8 may be slower than a shorter one:'
    ' the theorem takes the verification of a block for one step ("verify/t1"'
    ' says how many it takes), and draft tokens to be accepted independently of'
    ' each other ("tokens/call" beside "Eq. (1)").'
)
_HEADLINE = (
    'task', 'draft', 'T', 'gamma', 'alpha', 'c', 'EXP', "paper's EXP",
    *walltime_summary.SPEEDUPS, "paper's EMP", 'verdict',
)  # fmt: skip
_SIMULATED = (
    "The paper's rows with random weights of the sizes named, where draft"
    " tokens were accepted at the paper's alpha."
)
_PAPERS = "The paper's own numbers for pairs that were not run:"
_EXPECTED, _COUNTED = 'expected', 'accepted / tested'
_FACTOR = 'Thm 3.8, gamma {}, c = {}'
_SIDES = {'baseline': 'plain', 'speculative': 'speculative'}
_NOTE_5 = (
    f'{_EXPECTED} is the mean of sum min(p / l, q) on text that the target'
    ' wrote; at T = 0 a draft token is accepted if its probability before'
    f' standardization is at least l times the largest one. {_COUNTED} are the'
    ' counts of the loop, which continues its own text. Intervals are of 95%,'
    ' over texts. Tokens are those of the text, and the draft'
    ' tokens that were tested under l = 1. Positions for which a drafter'
    ' proposes nothing, as copying often does, count as 0 in the first and are'
    ' left out of the second. The paper does not say how it resamples.'
)
_PAPERS_5 = (
    "The paper's, of T5-XXL on EnDe. It gives no gamma for its factors at T ="
    ' 1, which its alpha and c do not reach:'
)
_NOTE_A_2 = (
    'Appendix A.2: rejection sampling, which redraws from p, beside the'
    f" paper's rule. {_EXPECTED} is the mean of the smallest q / p. A draft"
    ' that rules out a token of the target accepts nothing, and over a whole'
    ' vocabulary there is always a token that is much less likely to be'
    ' drafted.'
)


class Pair(NamedTuple):
  """What the paper job measured of a target and a drafter."""

  task: str  # as the paper's 'EnDe' and 'CNNDM'
  draft: str  # as the paper's 'small', 'base' and 'large'
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
  """A line of Tables 2 and 4, and the paper's row beside which it stands.

  `gamma` also says who chose it.
  """

  task: str
  draft: str
  gamma: str
  row: published.Row | None
  record: run_record.RunRecord


def tables_2_and_4(
    simulated: Iterable[run_record.RunRecord],
    pairs: Sequence[Pair] = (),
) -> markdown.Page:
  """Return Tables 2 and 4 in one: measured and expected speedups.

  Pairs have a line per temperature and gamma, beside the paper's row where it
  has one. Records with simulated acceptance stand beside the row that they have
  alpha, gamma, temperature and draft of.
  """
  timed = [
      pair._replace(records=[x for x in pair.records if x.speedup is not None])
      for pair in pairs
  ]
  timed = [pair for pair in timed if pair.records]
  measured = [line for pair in timed for line in _pair_lines(pair)]
  by_rate = {
      (x.drafter.name, x.temperature, x.gamma, x.simulated_acceptance): x
      for x in simulated
  }
  known = {id(line.row) for line in measured}
  rest = [row for row in published.TABLES_2_AND_4 if id(row) not in known]
  lines, not_run = [], []
  for row in rest:
    key = f't5_1_1_{row.draft}', row.temperature, row.gamma, row.alpha
    record = by_rate.get(key)
    if record is None:
      not_run.append(row)
    else:
      gamma = f'{row.gamma}, paper'
      lines.append(_Line(row.task, row.draft, gamma, row, record))
  parts = _models(timed)
  parts += _table_of(measured)
  if lines:
    records = [line.record for line in lines]
    parts += [_SIMULATED, walltime_summary.setup(records)]
    parts += _table_of(lines)
  if not_run:
    parts += [_PAPERS, markdown.table(map(_papers, not_run))]
  records = [line.record for line in (*measured, *lines)]
  notes = [_NOTE, _paper_setup(), *walltime_summary.cautions(records)]
  return markdown.page([*parts, *notes], records)


def _pair_lines(pair: Pair) -> Iterator[_Line]:
  """Yield a line per temperature and gamma: the first one, and the best."""
  by_temperature = {}
  for record in pair.records:
    by_temperature.setdefault(record.temperature, []).append(record)
  for temperature, (first, *others) in by_temperature.items():
    row = published.find_row(pair.task, pair.draft, temperature)
    chosen = ['given' if row is None else 'paper']
    cost = judgement.readable(first).c
    if not others and cost and first.gamma == int(
        theory.optimal_gamma(readings.alpha(first), cost)
    ):
      chosen.append('Theorem 3.8')
    words = f'{first.gamma}, {" and ".join(chosen)}'
    yield _Line(pair.task, pair.draft, words, row, first)
    for record in others:
      words = f'{record.gamma}, Theorem 3.8'
      yield _Line(pair.task, pair.draft, words, row, record)


def _table_of(lines: Sequence[_Line]) -> list[markdown.Table]:
  records = [line.record for line in lines]
  rows = [_compare(line, records) for line in lines]
  return markdown.with_headline(rows, _HEADLINE)


def _compare(
    line: _Line, records: Sequence[run_record.RunRecord]
) -> markdown.Row:
  row, record = line.row, line.record
  ours = walltime_summary.row(record, records)
  paper = lambda name, decimals: cells.number(
      row and getattr(row, name), decimals
  )
  alpha, estimate = readings.alpha(record), record.alpha
  expected = None
  if alpha is not None:
    expected = float(theory.expected_tokens(alpha, record.gamma))
  return {
      'task': line.task,
      'draft': f'{line.draft} ★' if row and row.is_best else line.draft,
      'T': f'{record.temperature:g}',
      'gamma': line.gamma,
      'alpha': cells.estimate(alpha, estimate and estimate.ci95),
      'alpha on tokens': _count(estimate and estimate.num_tokens),
      "paper's alpha": paper('alpha', 2),
      'c': ours['c'],
      "paper's c": paper('cost_coefficient', 2),
      'EXP': ours['Thm 3.8'],
      "paper's EXP": paper('predicted', 1),
      **{name: x for name, x in ours.items() if 'over ' in name},
      "paper's EMP": paper('measured', 1),
      'verdict': ours['verdict'],
      'tokens': _count(record.speculative and record.speculative.tokens),
      'tokens/call': ours['tokens/call'],
      'Eq. (1)': cells.number(expected),
      'verify/t1': ours['verify/t1'],
      'bound': ours['bound'],
      'efficiency': ours['efficiency'],
  }


def _papers(row: published.Row) -> markdown.Row:
  """Return a row of Tables 2 and 4 as it is in the paper."""
  return {
      'task': row.task,
      'draft': f'{row.draft} ★' if row.is_best else row.draft,
      'T': f'{row.temperature:g}',
      'gamma': str(row.gamma),
      'alpha': cells.number(row.alpha),
      'c': cells.number(row.cost_coefficient),
      'EXP': cells.number(row.predicted, 1),
      'EMP': cells.number(row.measured, 1),
  }


def _models(pairs: Sequence[Pair]) -> list[str]:
  """Return how pairs were measured, and the table of what each consists of."""
  if not pairs:
    return []
  records = [record for pair in pairs for record in pair.records]
  conditions = '; '.join(walltime_summary.conditions(records))
  rows = markdown.filled([_pair(pair) for pair in pairs])
  return [f'Measured: {conditions}. The pairs:', markdown.table(rows)]


def _pair(pair: Pair) -> markdown.Row:
  record = pair.records[0]
  return {
      'task': pair.task,
      'draft': pair.draft,
      'data': f'{record.task}, {record.split}',
      'input / output tokens': (
          f'{record.inputs_length} / {record.targets_length}'
      ),
      'target': walltime_summary.model(record.target),
      'drafter': walltime_summary.model(record.drafter),
      'dtype': str(record.target.dtype),
      'examples': _count(
          max((x.num_examples or 0 for x in pair.records)) or None
      ),
  }


def table_3(
    records: Sequence[run_record.RunRecord], pairs: Sequence[Pair] = ()
) -> markdown.Page:
  """Return Table 3 and Appendix A.2, of records of any job and of pairs."""
  papers = {(x.task, x.draft): x for x in published.TABLE_3}
  rows = []
  for pair in pairs:
    for record in pair.records:
      if record.gamma is None:
        unusual = runs.unusual_sampling(record)
        # The paper's alphas are of the whole vocabulary.
        paper = None if unusual else papers.get((pair.task, pair.draft))
        name = ', '.join([f'{pair.task}: {pair.draft}', *unusual])
        rows.append(_alpha(name, record.temperature, record.alpha, paper))
  rows += [_alpha(*found) for found in points.alphas(records)]
  controls = [
      {
          'drafter': f'{pair.task}: {pair.draft}',
          'T': f'{record.temperature:g}',
          'top-k': str(record.topk or 'all'),
          "alpha, the paper's rule": _rate(record.alpha),
          f'A.2, {_EXPECTED}': _rate(record.rule_alpha),
          'tokens': _count(record.rule_alpha.num_tokens),
          f'A.2, {_COUNTED}': _counted(record),
          'tested': _count(record.speculative and record.speculative.tested),
      }
      for pair, record in _with_rule(
          pairs, rejection_sampling.RejectionSampling.name
      )
  ]
  scored = [pair for pair in pairs if any(x.alpha for x in pair.records)]
  parts = [*_models(scored)]
  if rows:
    parts += ['alpha, by teacher forcing on text that the target wrote:']
    parts += [markdown.table(markdown.filled(rows))]
  if controls:
    parts += [_NOTE_A_2, markdown.table(controls)]
  measured = {(pair.task, pair.draft) for pair in scored}
  not_run = [row for key, row in papers.items() if key not in measured]
  parts += [_PAPERS, markdown.table(map(_papers_alphas, not_run))]
  measured = [record for pair in pairs for record in pair.records]
  return markdown.page(parts, [*measured, *records])


def _alpha(
    name: str,
    temperature: float,
    estimate: run_record.Alpha,
    paper: published.Alphas | None = None,
) -> markdown.Row:
  by_temperature = {}
  if paper is not None:
    by_temperature = {0: paper.at_temperature_0, 1: paper.at_temperature_1}
  return {
      'drafter': name,
      'T': f'{temperature:g}',
      'alpha': cells.number(estimate.value, 3),
      '95% interval': cells.interval(estimate.ci95, 3),
      'tokens': _count(estimate.num_tokens),
      "paper's": cells.number(by_temperature.get(temperature)),
  }


def _papers_alphas(row: published.Alphas) -> markdown.Row:
  return {
      'task': row.task,
      'target': row.target,
      'draft': row.draft,
      'alpha at T = 0': cells.number(row.at_temperature_0),
      'alpha at T = 1': cells.number(row.at_temperature_1),
  }


def table_5(pairs: Sequence[Pair] = ()) -> markdown.Page:
  """Return Table 5 and Appendix A.5: alpha under lenience, and its factors.

  Of measured pairs, then the paper's. Factors need a pair whose c was measured
  too.
  """
  found = [*_with_rule(pairs, lenience.Lenience.name)]
  by_pair: dict[tuple[str, str, str], dict[float, run_record.RunRecord]] = {}
  for pair, record in found:
    key = pair.task, pair.draft, f'{record.temperature:g}'
    by_pair.setdefault(key, {})[record.verification.lenience] = record
  timed = {
      (pair.task, pair.draft, f'{record.temperature:g}'): record
      for pair in pairs
      for record in map(judgement.readable, reversed(pair.records))
      if record.c
  }
  rows = [
      row
      for key, by_value in by_pair.items()
      for row in _lenient_rows(key, by_value, timed.get(key))
  ]
  own = [pair for pair in pairs if any(pair is x for x, _ in found)]
  parts = [*_models(own), markdown.table(rows), _NOTE_5 if rows else '']
  parts += [_PAPERS_5, markdown.table(_papers_lenient())]
  used = [record for _, record in found]
  return markdown.page(parts, used + [timed[x] for x in by_pair if x in timed])


def quality(
    found: Iterable[tuple[str, run_record.RunRecord]],
) -> markdown.Page:
  """Return the metrics of greedy decoding and of beam searches, by task."""
  found = list(found)
  rows = markdown.filled([_quality(*each) for each in found])
  return markdown.page([markdown.table(rows)], [x for _, x in found])


def _quality(task: str, record: run_record.RunRecord) -> markdown.Row:
  beams, sides = record.beams or 1, vars(record.quality)
  calls = {
      # Each beam is a row, and a call is one of all of them.
      f'{side} calls per text': cells.number(
          getattr(record, name).target_calls / beams / record.num_examples
      )
      for name, side in _SIDES.items()
  }
  return {
      'task': task,
      'decoding': 'greedy' if beams == 1 else f'{beams} beams',
      'texts': _count(record.num_examples),
      **{
          f'{metric}, {side}': cells.number(value)
          for name, side in _SIDES.items()
          for metric, value in sides[name].items()
      },
      **calls,
      **{
          name.replace('_', ' '): _count(count)
          for name, count in vars(record.greedy).items()
      },
  }


def _lenient_rows(
    key: tuple[str, str, str],
    by_value: Mapping[float, run_record.RunRecord],
    timed: run_record.RunRecord | None,
) -> Iterator[markdown.Row]:
  """Yield what is accepted by lenience, as expected and counted, and factors.
  """
  names = dict(zip(('task', 'draft', 'T'), key, strict=True))
  first, *_ = by_value.values()
  yield {
      **names,
      'alpha': _EXPECTED,
      'tokens': _count(first.rule_alpha.num_tokens),
      **{_at(x): _rate(record.rule_alpha) for x, record in by_value.items()},
  }
  yield {
      **names,
      'alpha': _COUNTED,
      'tokens': _count(first.speculative and first.speculative.tested),
      **{_at(x): _counted(record) for x, record in by_value.items()},
  }
  if timed is not None:
    gamma, cost = first.gamma, timed.c
    factor = lambda alpha: theory.walltime_factor(alpha, gamma, cost)
    yield {
        **names,
        'alpha': _FACTOR.format(gamma, cells.number(cost, 3)),
        'tokens': cells.MISSING,
        **{
            _at(x): cells.number(float(factor(record.rule_alpha.value)))
            for x, record in by_value.items()
        },
    }


def _papers_lenient() -> Iterator[markdown.Row]:
  """Yield alpha and the factors under lenience as they are in the paper."""
  gamma, cost = published.LENIENT_GAMMA, published.LENIENT_COST_COEFFICIENT
  for (draft, temperature), alphas in published.LENIENT_ALPHAS.items():
    row = {'draft': draft, 'T': f'{temperature}'}
    yield row | {
        'alpha': 'alpha',
        **{_at(x): cells.number(alpha) for x, alpha in alphas.items()},
    }
    if draft == 'small':
      factors = published.LENIENT_FACTORS[temperature]
      yield row | {
          'alpha': 'factor, A.5',
          **{_at(x): cells.number(factor, 1) for x, factor in factors.items()},
      }
      yield row | {
          'alpha': _FACTOR.format(gamma, cost),
          **{
              _at(x): cells.number(
                  float(theory.walltime_factor(alpha, gamma, cost))
              )
              for x, alpha in alphas.items()
          },
      }


def _counted(record: run_record.RunRecord) -> str:
  return cells.estimate(
      record.accepted_per_tested, record.accepted_per_tested_ci95, 3
  )


def _at(value: float) -> str:
  return f'l = {value:g}'


def _rate(estimate: run_record.Alpha) -> str:
  return cells.estimate(estimate.value, estimate.ci95, 3)


def _count(number: int | None) -> str:
  return cells.MISSING if number is None else str(number)


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
