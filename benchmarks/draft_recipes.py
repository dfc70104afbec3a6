# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains drafts for one target by several recipes and seeds, and compares them.

Each training is a distill job in a process of its own. A training that was
interrupted is resumed where it was.

  python -m benchmarks.draft_recipes --work=<folder> [--seeds=0,1,2] \\
    [--recipes=references,forward_kl] [--output=<file>] \\
    -- --gin.MULTI30K_DIR=<folder> --gin.CHECKPOINT_PATH=<target> ...

What follows `--` is given to all jobs. Prints a line of JSON per recipe: the
measures of the best checkpoint of each seed (see docs/training.md), their
means, and for the acceptance rates the mean of the difference from the recipe
`references` of the same seed, with its 95 percent interval (Student's t). The
recipe `references` trains the same draft model by cross entropy on references.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
import pathlib
import subprocess
import sys

import numpy as np
from scipy import special

from benchmarks import json_lines
from speculative_t5x.measurement import provenance
from speculative_t5x.runtime import arguments
from speculative_t5x.runtime import quiet
from speculative_t5x.training import history

_CONFIGS = pathlib.Path(__file__).parents[1] / 'configs'
BASELINE = 'references'
_COMPARED = ('acceptance_t0', 'acceptance_t1')


@dataclasses.dataclass(frozen=True)
class Recipe:
  """What a training has beside the options of all.

  Attributes:
    run: of configs/runs.
    gin_files: of configs, given after it.
    macros: set last.
  """

  run: str = 'distill_multi30k'
  gin_files: tuple[str, ...] = ()
  macros: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _divergence(name: str, *gin_files: str, **macros: str) -> Recipe:
  return Recipe(
      gin_files=(f'divergences/{name}.gin', *gin_files), macros=macros
  )


RECIPES = {
    BASELINE: _divergence('cross_entropy', 'training_data/references.gin'),
    'decodes': _divergence('cross_entropy'),
    **{
        name: _divergence(name)
        for name in (
            'forward_kl',
            'reverse_kl',
            'jensen_shannon',
            'total_variation',
        )
    },
    'forward_kl_on_references': _divergence(
        'forward_kl', 'training_data/references.gin'
    ),
    'on_policy': _divergence('forward_kl', ON_POLICY_SHARE='0.5'),
    'shared_encoder': Recipe(run='distill_multi30k_shared_encoder'),
    'cut': Recipe(run='distill_multi30k_cut'),
    'exit_head': Recipe(
        gin_files=('origins/exit_head.gin',), macros={'EXIT_LAYER': '1'}
    ),
}


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parses and checks the options."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.draft_recipes',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  names = lambda text: tuple(text.split(','))
  numbers = lambda text: tuple(map(int, text.split(',')))
  parser.add_argument('--work', type=pathlib.Path, required=True)
  parser.add_argument('--recipes', type=names, default=tuple(RECIPES))
  parser.add_argument('--seeds', type=numbers, default=(0, 1, 2))
  parser.add_argument('--output', type=pathlib.Path, help='file for the lines')
  parser.add_argument('options', nargs='*', help='of all jobs')
  options = parser.parse_args(given)
  if unknown := [each for each in options.recipes if each not in RECIPES]:
    parser.error(
        f'there is no recipe {unknown[0]}. Choose from {", ".join(RECIPES)}.'
    )
  try:
    arguments.several_counts('seeds', [seed + 1 for seed in options.seeds])
  except ValueError as error:
    parser.error(str(error))
  return options


def command(
    name: str, seed: int, work: pathlib.Path, options: Sequence[str]
) -> list[str]:
  """Returns the command that trains by a recipe."""
  recipe = RECIPES[name]
  files = f'runs/{recipe.run}.gin', *recipe.gin_files
  macros = {
      **recipe.macros,
      'SEED': seed,
      'MODEL_DIR': f'"{model_dir(name, seed, work)}"',
      'DECODES_DIR': f'"{work / "decodes"}"',
  }
  return [
      *(sys.executable, '-m', 'speculative_t5x.cli.main', 'distill'),
      *(f'--gin_file={_CONFIGS / file}' for file in files),
      *options,
      *(f'--gin.{macro}={value}' for macro, value in macros.items()),
  ]


def model_dir(name: str, seed: int, work: pathlib.Path) -> pathlib.Path:
  """Returns the folder of a training by the recipe of a name."""
  return work / name / f'seed_{seed}'


def best_point(folder: pathlib.Path) -> history.Point:
  """Returns the measures of the best checkpoint of a training."""
  rows = json.loads((folder / history.FILE_NAME).read_text())
  return max((history.Point(**row) for row in rows), key=lambda x: x.score)


def differences(
    found: Mapping[int, history.Point], baseline: Mapping[int, history.Point]
) -> dict[str, list[float]]:
  """Returns mean and interval of the differences of seeds that both have."""
  seeds = sorted(found.keys() & baseline.keys())
  result = {}
  for name in _COMPARED:
    each = np.array(
        [
            found[seed].validation[name] - baseline[seed].validation[name]
            for seed in seeds
        ]
    )
    result[name] = [float(each.mean())]
    if len(seeds) > 1:
      half = float(
          special.stdtrit(len(seeds) - 1, 0.975)
          * each.std(ddof=1)
          / np.sqrt(len(seeds))
      )
      result[name] += [result[name][0] - half, result[name][0] + half]
  return result


def lines(options: argparse.Namespace) -> Iterator[str]:
  """Trains, and yields a line of JSON per recipe."""
  setting = {
      'benchmark': 'draft_recipes',
      'host': dataclasses.asdict(provenance.describe_host()),
      'device': dataclasses.asdict(provenance.describe_device()),
  }
  points = {}
  for name in options.recipes:
    points[name] = {}
    for seed in options.seeds:
      subprocess.run(
          command(name, seed, options.work, options.options), check=True
      )
      points[name][seed] = best_point(model_dir(name, seed, options.work))
    of_seeds = points[name].values()
    measures = [point.validation for point in of_seeds]
    line = {
        'recipe': name,
        'steps': {seed: point.step for seed, point in points[name].items()},
        'mean': {
            key: float(np.mean([each[key] for each in measures]))
            for key in measures[0]
        },
        'seeds': dict(zip(options.seeds, measures, strict=True)),
    }
    if name != BASELINE and BASELINE in points:
      line['over_references'] = differences(points[name], points[BASELINE])
    yield json.dumps(line | setting)


def main(given: Sequence[str] | None = None) -> None:
  """Runs the benchmark."""
  options = parse_arguments(given)
  quiet.keep_libtpu_from_searching()
  json_lines.write(lines(options), options.output)


if __name__ == '__main__':
  main()
