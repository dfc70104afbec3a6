# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures draft lengths that adapt beside fixed ones, on the embedded tasks.

All lengths are timed interleaved, batch by batch, at batch 1. The tasks are
translation and summaries with their draft models, and post-editing at 30
percent edited words, where the lookup drafter copies from hints. First the
parts of decoding are timed at the largest gamma: they give the costs that
`expected_speed` and `marginal_gain` need, and the speedup of an oracle, which
drafts as many tokens as are accepted and knows it beforehand.

  python -m benchmarks.draft_lengths [--gammas=2,3,5,7,10] [--output=<file>]

Prints a line of JSON per task and temperature. It has the costs; the oracle's
speedup by the times of the parts, over plain decoding; and by length (a gamma,
or a policy up to the largest gamma) the speedup over plain decoding and over
the best fixed length with their 95 percent intervals, the tokens per target
call, the draft tokens per target call, and its share of the oracle's gain.
"""

import argparse
from collections.abc import Iterator, Sequence
import dataclasses
import functools
import pathlib
from typing import Any

from benchmarks import running
from speculative_t5x import embedded
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import quiet
from speculative_t5x.loading.drafters import lookup_source
from speculative_t5x.policies import confidence
from speculative_t5x.policies import expected_speed
from speculative_t5x.policies import marginal_gain
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import widths
from speculative_t5x.tasks import bulletin_summaries  # noqa: F401  likewise
from speculative_t5x.tasks import ende  # noqa: F401  registers a task
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import post_editing  # noqa: F401  likewise

_ROUNDS = 15  # of the parts
_TEMPERATURES = 0.0, 1.0


@dataclasses.dataclass(frozen=True)
class _Task:
  """A task that needs nothing.

  Attributes:
    pair: of `embedded.TASKS`.
    name: of the seqio task.
    split: of it.
    copies: whether drafts are copied from hints, the input and the output,
      instead of made by the pair's draft model.
  """

  pair: str
  name: str
  split: str = 'test'
  copies: bool = False


TASKS = {
    'translation': _Task('translation', 'bulletins_ende'),
    'summaries': _Task('summarization', 'bulletins_summary'),
    # The target writes the references of the test split almost word by word.
    'post-editing': _Task(
        'translation', 'bulletins_post_editing_30', 'validation', copies=True
    ),
}


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parses the options."""
  parser = running.parser('draft_lengths', __doc__)
  parser.add_argument(
      '--gammas',
      type=running.several(running.positive),
      default=(2, 3, 5, 7, 10),
  )
  parser.add_argument('--examples', type=running.positive, default=100)
  parser.add_argument('--repeats', type=running.positive, default=3)
  parser.add_argument('--output', type=pathlib.Path, help='file for the lines')
  return parser.parse_args(given)


class Lengths:
  """All draft lengths of a task, compiled once for all temperatures.

  Attributes:
    costs: The costs of a draft, as policies take them.
  """

  def __init__(self, task: _Task, gammas: Sequence[int], num_examples: int):
    """Loads a task, and times the parts of decoding.

    Args:
      task: The task.
      gammas: The fixed lengths. Those that adapt take the largest at most.
      num_examples: How many of the task's examples are decoded.
    """
    pair = embedded.load_decoder(task=task.pair)
    self._decoder, drafter = pair.tokens, pair.tokens.loaded_drafter
    if task.copies:
      drafter = lookup_source.FromContext().load()
    with_length = functools.partial(self._decoder.with_drafter, drafter)
    self._examples = examples_lib.load(
        task.name,
        task.split,
        {'inputs': pair.inputs_length, 'targets': self._decoder.length},
        num_examples,
    )
    self._gammas, gamma = gammas, max(gammas)
    requests = self.requests(_TEMPERATURES[0])
    self._parts = step_times.Parts(
        part_programs.PartPrograms(with_length(gamma)), requests[0]
    )
    for number in range(_ROUNDS):
      self._parts.time_encoders(requests[number % len(requests)])
      self._parts.time_round()
    self.costs = _costs(self._parts, gamma)
    policies = [
        confidence.Confidence(),
        expected_speed.ExpectedSpeed(**self.costs),
        marginal_gain.MarginalGain(**self.costs),
    ]
    decoders = {str(each): with_length(each) for each in gammas}
    decoders |= {each.kind: with_length(gamma, each) for each in policies}
    self._ways = {'plain': with_length(gamma).plain}
    self._ways |= {key: each.speculative for key, each in decoders.items()}

  def requests(self, temperature: float) -> list[requests_lib.Request]:
    """Returns one request per example."""
    requests = requests_lib.Requests(
        inputs_length=self._examples.tokens.shape[1],
        length=self._decoder.length,
        batch_size=1,
        sampling=sampling_lib.Sampling(temperature),
    )
    return list(requests.of(workload_lib.request_rows(self._examples)))

  def measure(
      self, temperature: float, repeats: int, name: str
  ) -> dict[str, Any]:
    """Times all lengths on the same requests, and returns the record."""
    requests = self.requests(temperature)
    runs = running.time_ways(self._ways, requests, repeats, name)
    plain = runs.pop('plain')
    best_gamma = min(self._gammas, key=lambda x: runs[str(x)].walltime_s)
    best = runs[str(best_gamma)]
    longest = runs[str(max(self._gammas))]
    oracle = _oracle_speedup(self._parts, plain, longest)
    return {
        'costs': self.costs,
        'oracle_speedup': oracle,
        'best_fixed': best_gamma,
        **{
            key: describe(run, plain, best, oracle) for key, run in runs.items()
        },
    }


def _costs(parts: step_times.Parts, gamma: int) -> dict[str, Any]:
  """Returns the costs of a draft, as policies take them."""
  times = parts.times()
  first, *later = parts.width_ms()
  ratios = [each / first for each in later]
  sizes = widths.of_block(gamma + 1)[1:]
  return {
      'c': times.t_draft_ms / times.t1_ms,
      'verify_cost_ratio': dict(zip(sizes, ratios, strict=True)),
  }


def _oracle_speedup(
    parts: step_times.Parts, plain: interleaved.Run, run: interleaved.Run
) -> float:
  """Returns the speedup of an oracle; see `part_sums.oracle_seconds`.

  Args:
    parts: timed.
    plain: the plain run.
    run: of the largest gamma, which shows how many tokens are accepted.
  """
  times = parts.times()
  plain_s = sum(
      part_sums.plain_seconds(times, int(decoded.num_steps))
      for decoded in plain.decoded
  )
  oracle_s = sum(
      part_sums.oracle_seconds(
          times,
          decoded.statistics.accepted_histogram.sum(axis=0),
          parts.width_ms(),
      )
      for decoded in run.decoded
  )
  return plain_s / oracle_s


def describe(
    run: interleaved.Run,
    plain: interleaved.Run,
    best: interleaved.Run,
    oracle_speedup: float,
) -> dict[str, Any]:
  """Returns what the record says about a length."""
  counted = counts.total(run.decoded)
  over_plain = running.describe(run, plain)
  gain = over_plain['speedup'] - 1
  num_drafted = sum(int(decoded.num_draft_steps) for decoded in run.decoded)
  return {
      **over_plain,
      'over_best_fixed': interleaved.speedup(best, run),
      'over_best_fixed_ci95': interleaved.speedup_interval(best, run),
      'drafted_per_target_call': num_drafted / counted.target_calls,
      'share_of_oracle_gain': gain / (oracle_speedup - 1),
  }


def lines(options: argparse.Namespace) -> Iterator[str]:
  """Yields a line of JSON per task and temperature."""
  for name, task in TASKS.items():
    lengths = Lengths(task, options.gammas, options.examples)
    for temperature in _TEMPERATURES:
      found = lengths.measure(temperature, options.repeats, name)
      yield running.line(
          'draft_lengths',
          task=name,
          temperature=temperature,
          examples=options.examples,
          repeats=options.repeats,
          **found,
      )


def main(given: Sequence[str] | None = None) -> None:
  """Runs the benchmark."""
  options = parse_arguments(given)
  quiet.keep_libtpu_from_searching()
  running.write(lines(options), options.output)


if __name__ == '__main__':
  main()
