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
import functools
import pathlib
from typing import Any, NamedTuple

from benchmarks import running
from speculative_t5x import embedded
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.command_line import process
from speculative_t5x.loading.drafters import lookup_drafting
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


class _Task(NamedTuple):
  """A task of an embedded pair.

  Attributes:
    pair: The pair, one of `embedded.TASKS`.
    name: Name of the seqio task.
    split: Split of the seqio task.
    copies: Whether drafts are copied from hints, the input and the output,
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
  """Parse the options."""
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


def measure(
    name: str, task: _Task, gammas: Sequence[int], examples: int, repeats: int
) -> Iterator[dict[str, Any]]:
  """Time all draft lengths of a task, compiled once for all temperatures.

  Args:
    name: What the progress calls the task.
    task: The task.
    gammas: The fixed lengths. Those that adapt take the largest at most.
    examples: How many of the task's examples are decoded.
    repeats: How often each example is timed.
  Yields:
    The record of each temperature.
  """
  pair, gamma = embedded.load_decoder(task=task.pair), max(gammas)
  decoder, drafter = pair.tokens, pair.tokens.loaded_drafter
  if task.copies:
    drafter = lookup_drafting.Lookup()
  with_length = functools.partial(decoder.with_drafter, drafter)
  options = decoder.options
  lengths = {'inputs': options.inputs_length, 'targets': options.max_tokens}
  loaded = examples_lib.load(task.name, task.split, lengths, examples)
  batches = {}
  for temperature in _TEMPERATURES:
    settings = request_lib.Settings(
        max_tokens=options.max_tokens,
        sampling=sampling_lib.Sampling(temperature),
    )
    batches[temperature] = list(
        input_batch.whole_batches(
            workload_lib.requests_of(loaded, settings),
            settings,
            size=1,
            inputs_length=loaded.tokens.shape[1],
        )
    )
  greedy = batches[_TEMPERATURES[0]]
  parts = step_times.Parts(
      part_programs.PartPrograms(with_length(gamma)), greedy[0]
  )
  for number in range(_ROUNDS):
    parts.time_encoders(greedy[number % len(greedy)])
    parts.time_round()
  costs = _costs(parts, gamma)
  policies = [
      confidence.Confidence(),
      expected_speed.ExpectedSpeed(**costs),
      marginal_gain.MarginalGain(**costs),
  ]
  ways = {'plain': with_length(gamma).plain}
  ways |= {str(each): with_length(each).speculative for each in gammas}
  ways |= {x.kind: with_length(gamma, x).speculative for x in policies}
  for temperature in _TEMPERATURES:
    runs = running.time_ways(ways, batches[temperature], repeats, name)
    plain = runs.pop('plain')
    best = min(gammas, key=lambda x: runs[str(x)].walltime_s)
    oracle = _oracle_speedup(parts, plain, runs[str(gamma)])
    yield {
        'task': name,
        'temperature': temperature,
        'examples': examples,
        'repeats': repeats,
        'costs': costs,
        'oracle_speedup': oracle,
        'best_fixed': best,
        **{
            key: describe(run, plain, runs[str(best)], oracle)
            for key, run in runs.items()
        },
    }


def _costs(parts: step_times.Parts, gamma: int) -> dict[str, Any]:
  """Return the costs of a draft, as policies take them."""
  times = parts.times()
  first, *later = times.t_width_ms
  ratios = [each / first for each in later]
  sizes = widths.of_block(gamma + 1)[1:]
  return {
      'c': times.t_draft_ms / times.t1_ms,
      'verify_cost_ratio': dict(zip(sizes, ratios, strict=True)),
  }


def _oracle_speedup(
    parts: step_times.Parts, plain: interleaved.Run, run: interleaved.Run
) -> float:
  """Return the speedup of an oracle; see `part_sums.oracle_seconds`.

  Args:
    parts: Parts of decoding that were timed.
    plain: The plain run.
    run: Run of the largest gamma, which shows how many tokens are accepted.
  """
  times = parts.times()
  plain_s = sum(
      part_sums.plain_seconds(times, int(decoded.num_steps))
      for decoded in plain.decoded
  )
  oracle_s = sum(
      part_sums.oracle_seconds(
          times, decoded.statistics.accepted_histogram.sum(axis=0)
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
  """Return what the record says about a length."""
  over_plain = running.describe(run, plain)
  gain = over_plain['speedup'] - 1
  num_drafted = sum(int(decoded.num_draft_steps) for decoded in run.decoded)
  return {
      **over_plain,
      'over_best_fixed': interleaved.speedup(best, run),
      'over_best_fixed_ci95': interleaved.speedup_interval(best, run),
      'drafted_per_target_call': num_drafted / run.counts.target_calls,
      'share_of_oracle_gain': gain / (oracle_speedup - 1),
  }


def main(given: Sequence[str] | None = None) -> None:
  """Run the benchmark."""
  options = parse_arguments(given)
  process.keep_libtpu_from_searching()
  settings = options.gammas, options.examples, options.repeats
  lines = (
      running.line('draft_lengths', **record)
      for name, task in TASKS.items()
      for record in measure(name, task, *settings)
  )
  running.write(lines, options.output)


if __name__ == '__main__':
  running.run(main)
