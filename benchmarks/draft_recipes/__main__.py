# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains drafts for a target on Multi30k by several recipes, and compares them.

  python -m benchmarks.draft_recipes --multi30k=<folder> \\
    --target=<checkpoint> --work=<folder> [--recipes=references,forward_kl] \\
    [--seeds=0,1,2] [--output=<file>] [-- --gin.TRAIN_STEPS=1000 ...]

What follows `--` is given to all trainings. When interrupted, the same command
goes on with the job that it was in.

Prints a line of JSON per recipe: the measures of the best checkpoint of each
seed (see docs/training.md), their means, and for the acceptance rates the mean
of the difference from the recipe `references` of the same seed, with its 95
percent interval (Student's t). The recipe `references` trains the same draft
model by cross entropy on references. For the draft of the first seed also the
speedup over plain decoding at batch 1 and gamma 5, by temperature, and the BLEU
of its own greedy text on the validation split (null for a draft without an
encoder).
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import pathlib

import numpy as np
from scipy import stats

from benchmarks import running
from benchmarks.draft_recipes import jobs
from speculative_t5x.jobs.command_line import process
from speculative_t5x.training import history

_COMPARED = ('acceptance_t0', 'acceptance_t1')


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse and check the options."""
  parser = running.parser('draft_recipes', __doc__)
  folder = lambda text: pathlib.Path(text).absolute()
  parser.add_argument('--multi30k', type=folder, required=True)
  parser.add_argument('--target', type=folder, required=True)
  parser.add_argument('--work', type=folder, required=True)
  parser.add_argument(
      '--recipes', type=running.several(str), default=tuple(jobs.RECIPES)
  )
  parser.add_argument('--seeds', type=running.several(_seed), default=(0, 1, 2))
  parser.add_argument('--output', type=pathlib.Path, help='file for the lines')
  parser.add_argument('options', nargs='*', help='of all trainings')
  options = parser.parse_args(given)
  if unknown := [x for x in options.recipes if x not in jobs.RECIPES]:
    parser.error(
        f'there is no recipe {unknown[0]}.'
        f' Choose from {", ".join(jobs.RECIPES)}.'
    )
  return options


def _seed(text: str) -> int:
  """Parse a number that a training takes as its seed."""
  return running.positive(str(int(text) + 1)) - 1


def make_draft(
    name: str, seed: int, options: argparse.Namespace
) -> jobs.Draft:
  """Return the draft of the recipe of a name."""
  return jobs.Draft(
      recipe=jobs.RECIPES[name],
      seed=seed,
      folder=options.work / name / f'seed_{seed}',
      decodes=options.work / 'decodes',
      multi30k=options.multi30k,
      target=options.target,
  )


def differences(
    found: Mapping[int, history.Point], baseline: Mapping[int, history.Point]
) -> dict[str, list[float]]:
  """Return mean and interval of the differences of seeds that both have."""
  seeds = sorted(found.keys() & baseline.keys())
  result = {}
  for name in _COMPARED:
    each = [
        found[seed].validation[name] - baseline[seed].validation[name]
        for seed in seeds
    ]
    result[name] = [float(np.mean(each))]
    if len(seeds) > 1:
      interval = stats.ttest_1samp(each, 0).confidence_interval()
      result[name] += map(float, interval)
  return result


def lines(options: argparse.Namespace) -> Iterator[str]:
  """Run the jobs, and yield a line of JSON per recipe."""
  points = {}
  # The others are compared with it.
  for name in sorted(options.recipes, key=lambda x: x != jobs.BASELINE):
    drafts = {seed: make_draft(name, seed, options) for seed in options.seeds}
    points[name] = {
        seed: draft.train(options.options) for seed, draft in drafts.items()
    }
    first = drafts[options.seeds[0]]
    line = _summary(name, points[name]) | {
        'bleu': first.bleu() if first.recipe.decodes_alone else None,
        'speed': first.speed(),
    }
    if name != jobs.BASELINE and jobs.BASELINE in points:
      baseline = points[jobs.BASELINE]
      line['over_references'] = differences(points[name], baseline)
    yield running.line(
        'draft_recipes', training_options=options.options, **line
    )


def _summary(name: str, points: Mapping[int, history.Point]) -> dict:
  """Return the measures of each seed and their means."""
  measures = {seed: point.validation for seed, point in points.items()}
  mean = lambda key: float(np.mean([x[key] for x in measures.values()]))
  return {
      'recipe': name,
      'steps': {seed: point.step for seed, point in points.items()},
      'mean': {key: mean(key) for key in next(iter(measures.values()))},
      'seeds': measures,
  }


def main(given: Sequence[str] | None = None) -> None:
  """Run the benchmark."""
  options = parse_arguments(given)
  process.keep_libtpu_from_searching()
  running.write(lines(options), options.output)


if __name__ == '__main__':
  main()
