# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with measured values beside its own.

A page names the pairs that were measured, and has what was measured first, and
then what was simulated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.paper import points
from speculative_t5x.research.paper import published
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
    ' each other ("tokens/call" beside "Eq. (1)"). ★: the fastest of the paper.'
)
_HEADLINE = (
    'task', 'draft', 'T', 'gamma', 'alpha', 'c', 'EXP', "paper's EXP",
    *walltime_summary.SPEEDUPS, "paper's EMP", 'verdict',
)  # fmt: skip
_SIMULATED = (
    "The paper's rows with random weights of the sizes named, where draft"
    " tokens were accepted at the paper's alpha."
)
_EXPECTED, _COUNTED = 'expected', 'accepted / tested'
_FACTOR = 'Thm 3.8, gamma {}, c = {}'
_ALPHAS = 'alpha, by teacher forcing on text that the target wrote:'
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


class MeasuredPair(NamedTuple):
  """A target and a drafter that the paper job measured."""

  task: str  # as the paper's 'EnDe' and 'CNNDM'
  draft: str  # as the paper's 'small', 'base' and 'large'
  records: Sequence[run_record.RunRecord]


Pairs = Sequence[MeasuredPair]


def table_1() -> markdown.Page:
  """Return Table 1: the factors of Theorems 3.8 and 3.11, and the paper's."""
  return markdown.Page([markdown.Table([*map(_factors, published.TABLE_1)])])


def _factors(row: published.Factors) -> markdown.Row:
  operations = float(theory.operations_factor(row.alpha, row.gamma, 0))
  speed = float(theory.walltime_factor(row.alpha, row.gamma, 0))
  ours, paper = (operations, speed), (row.operations, row.speed)
  agrees = [*map(markdown.number, ours)] == [*map(markdown.number, paper)]
  return {
      'alpha': f'{row.alpha:g}',
      'gamma': str(row.gamma),
      'operations': markdown.number(operations, 4),
      "paper's operations": markdown.number(row.operations),
      'speed': markdown.number(speed, 4),
      "paper's speed": markdown.number(row.speed),
      'agrees': 'yes' if agrees else 'no',
  }


class _Line(NamedTuple):
  """A line of Tables 2 and 4, and the paper's row beside which it stands."""

  task: str
  draft: str
  gamma: str  # and who chose it
  row: published.Row | None
  record: run_record.RunRecord


def tables_2_and_4(
    simulated: Iterable[run_record.RunRecord], pairs: Pairs = ()
) -> markdown.Page:
  """Return Tables 2 and 4 in one: measured and expected speedups.

  Pairs have a line per temperature and gamma, beside the paper's row where it
  has one. Records with simulated acceptance stand beside the row that they have
  alpha, gamma, temperature and draft of.
  """
  timed = [
      pair._replace(records=records)
      for pair in pairs
      if (records := [x for x in pair.records if x.speedup is not None])
  ]
  measured = [line for pair in timed for line in _pair_lines(pair)]
  by_rate = {
      (x.drafter.name, x.temperature, x.gamma, x.simulated_acceptance): x
      for x in simulated
  }
  of_rates = []
  for row in published.TABLES_2_AND_4:
    if row in {line.row for line in measured}:
      continue
    key = f't5_1_1_{row.draft}', row.temperature, row.gamma, row.alpha
    if record := by_rate.get(key):
      gamma = f'{row.gamma}, paper'
      of_rates.append(_Line(row.task, row.draft, gamma, row, record))
  parts = [*_models(timed), *_speedups(measured)]
  if of_rates:
    setup = walltime_summary.setup([line.record for line in of_rates])
    parts += [_SIMULATED, setup, *_speedups(of_rates)]
  records = [line.record for line in (*measured, *of_rates)]
  parts += [_NOTE, walltime_summary.cautions(records)]
  return markdown.Page(parts, records)


def _pair_lines(pair: MeasuredPair) -> Iterator[_Line]:
  """Yield a line per temperature and gamma: the first one, and the best."""
  by_temperature = {}
  for record in pair.records:
    by_temperature.setdefault(record.temperature, []).append(record)
  for temperature, (first, *others) in by_temperature.items():
    row = published.find_row(pair.task, pair.draft, temperature)
    chosen = 'given' if row is None else 'paper'
    cost = judgement.readable(first).c
    if not others and cost and first.gamma == int(
        theory.optimal_gamma(readings.alpha(first), cost)
    ):
      chosen += ' and Theorem 3.8'
    for record in (first, *others):
      gamma = f'{record.gamma}, {chosen}'
      yield _Line(pair.task, pair.draft, gamma, row, record)
      chosen = 'Theorem 3.8'


def _speedups(lines: Sequence[_Line]) -> list[markdown.Table]:
  return markdown.with_headline([*map(_compare, lines)], _HEADLINE)


def _compare(line: _Line) -> markdown.Row:
  row, record, run = line.row, line.record, line.record.speculative
  ours = walltime_summary.row(record)
  paper = lambda name, decimals: markdown.number(
      row and getattr(row, name), decimals
  )
  alpha, estimate = readings.alpha(record), record.alpha
  expected = None
  if alpha is not None:
    expected = float(theory.expected_tokens(alpha, record.gamma))
  return {
      'task': line.task,
      'draft': f'{line.draft} ★' if row and row.is_best else line.draft,
      'T': ours['T'],
      'gamma': line.gamma,
      'alpha': markdown.estimate(alpha, estimate and estimate.ci95),
      'alpha on tokens': markdown.count(estimate and estimate.num_tokens),
      "paper's alpha": paper('alpha', 2),
      'c': ours['c'],
      "paper's c": paper('cost_coefficient', 2),
      'EXP': ours['Thm 3.8'],
      "paper's EXP": paper('predicted', 1),
      **{name: ours[name] for name in walltime_summary.SPEEDUPS},
      "paper's EMP": paper('measured', 1),
      'verdict': ours['verdict'],
      'tokens': markdown.count(run and run.tokens),
      'tokens/call': ours['tokens/call'],
      'Eq. (1)': markdown.number(expected),
      **{name: ours[name] for name in ('verify/t1', 'bound', 'efficiency')},
  }


def _models(pairs: Pairs) -> list[str | markdown.Table]:
  """Return how pairs were measured, and the table of what each consists of."""
  if not pairs:
    return []
  records = [record for pair in pairs for record in pair.records]
  conditions = '; '.join(walltime_summary.conditions(records))
  rows = markdown.filled([*map(_models_of, pairs)])
  return [f'Measured: {conditions}. The pairs:', markdown.Table(rows)]


def _models_of(pair: MeasuredPair) -> markdown.Row:
  record = pair.records[0]
  num_examples = max(x.num_examples or 0 for x in pair.records)
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
      'examples': markdown.count(num_examples or None),
  }


def table_3(
    records: Sequence[run_record.RunRecord], pairs: Pairs = ()
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
  rows += [_alpha(*alpha) for alpha in points.alphas(records)]
  rejection = rejection_sampling.RejectionSampling.name
  controls = [_control(*each) for each in _with_rule(pairs, rejection)]
  scored = [pair for pair in pairs if any(x.alpha for x in pair.records)]
  parts = [*_models(scored)]
  if rows:
    parts += [_ALPHAS, markdown.Table(markdown.filled(rows))]
  if controls:
    parts += [_NOTE_A_2, markdown.Table(controls)]
  of_pairs = [record for pair in pairs for record in pair.records]
  return markdown.Page(parts, [*of_pairs, *records])


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
      'alpha': markdown.number(estimate.value, 3),
      '95% interval': markdown.interval(estimate.ci95, 3),
      'tokens': markdown.count(estimate.num_tokens),
      "paper's": markdown.number(by_temperature.get(temperature)),
  }


def _control(pair: MeasuredPair, record: run_record.RunRecord) -> markdown.Row:
  return {
      'drafter': f'{pair.task}: {pair.draft}',
      'T': f'{record.temperature:g}',
      'top-k': str(record.topk or 'all'),
      "alpha, the paper's rule": _rate(record.alpha),
      f'A.2, {_EXPECTED}': _rate(record.rule_alpha),
      'tokens': markdown.count(record.rule_alpha.num_tokens),
      f'A.2, {_COUNTED}': _counted(record),
      'tested': _tested(record),
  }


def table_5(pairs: Pairs = ()) -> markdown.Page:
  """Return Table 5 and Appendix A.5: alpha under lenience, and its factors.

  Of measured pairs, then the paper's. Factors need a pair whose c was measured
  too.
  """
  lenient = [*_with_rule(pairs, lenience.Lenience.name)]
  by_pair: dict[tuple[str, str, str], dict[float, run_record.RunRecord]] = {}
  for pair, record in lenient:
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
  own = [pair for pair in pairs if any(pair is x for x, _ in lenient)]
  parts = [*_models(own), markdown.Table(rows), _NOTE_5 if rows else '']
  parts += [_PAPERS_5, markdown.Table([*_papers_lenient()])]
  used = [record for _, record in lenient]
  return markdown.Page(parts, used + [timed[x] for x in by_pair if x in timed])


def _lenient_rows(
    key: tuple[str, str, str],
    by_value: Mapping[float, run_record.RunRecord],
    timed: run_record.RunRecord | None,
) -> Iterator[markdown.Row]:
  """Yield what is accepted by lenience, as expected and counted, and factors.
  """
  first, *_ = by_value.values()
  alphas = {x: record.rule_alpha for x, record in by_value.items()}
  row = lambda alpha, tokens, texts: {
      **dict(zip(('task', 'draft', 'T'), key, strict=True)),
      'alpha': alpha,
      'tokens': tokens,
      **texts,
  }
  num_tokens = markdown.count(first.rule_alpha.num_tokens)
  yield row(_EXPECTED, num_tokens, _by_lenience(_rate, alphas))
  yield row(_COUNTED, _tested(first), _by_lenience(_counted, by_value))
  if timed is not None:
    values = {x: alpha.value for x, alpha in alphas.items()}
    name = _FACTOR.format(first.gamma, markdown.number(timed.c, 3))
    factors = _lenient_factors(values, first.gamma, timed.c)
    yield row(name, markdown.MISSING, factors)


def _papers_lenient() -> Iterator[markdown.Row]:
  """Yield alpha and the factors under lenience as they are in the paper."""
  gamma, cost = published.LENIENT_GAMMA, published.LENIENT_COST_COEFFICIENT
  for (draft, temperature), alphas in published.LENIENT_ALPHAS.items():
    row = lambda alpha, texts, draft=draft, temperature=temperature: {
        'draft': draft, 'T': f'{temperature}', 'alpha': alpha, **texts
    }  # fmt: skip
    yield row('alpha', _by_lenience(markdown.number, alphas))
    if draft == 'small':
      factors = published.LENIENT_FACTORS[temperature]
      shown = _by_lenience(lambda x: markdown.number(x, 1), factors)
      yield row('factor, A.5', shown)
      name = _FACTOR.format(gamma, cost)
      yield row(name, _lenient_factors(alphas, gamma, cost))


def _by_lenience(
    text: Callable[[Any], str], values: Mapping[float, Any]
) -> markdown.Row:
  """Return the texts of values in the columns of their leniences."""
  return {f'l = {x:g}': text(value) for x, value in values.items()}


def _lenient_factors(
    alphas: Mapping[float, float], gamma: int, cost: float
) -> markdown.Row:
  factor = lambda alpha: float(theory.walltime_factor(alpha, gamma, cost))
  return _by_lenience(lambda alpha: markdown.number(factor(alpha)), alphas)


def _counted(record: run_record.RunRecord) -> str:
  return markdown.estimate(
      record.accepted_per_tested, record.accepted_per_tested_ci95, 3
  )


def _tested(record: run_record.RunRecord) -> str:
  return markdown.count(record.speculative and record.speculative.tested)


def _rate(estimate: run_record.Alpha) -> str:
  return markdown.estimate(estimate.value, estimate.ci95, 3)


def _with_rule(
    pairs: Pairs, rule: str
) -> Iterator[tuple[MeasuredPair, run_record.RunRecord]]:
  """Yield the records of what a rule accepts, with their pairs."""
  for pair in pairs:
    for record in pair.records:
      if record.rule_alpha and readings.rule(record).startswith(rule):
        yield pair, record
