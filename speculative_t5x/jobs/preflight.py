# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The preflight job: compiles T5 1.1 for a machine that is not there.

Programs are compiled from shapes alone and analysed. Nothing runs: cycles are
the compiler's estimates. A program that needs more memory than a chip has is
the compiler's error.
"""

from collections.abc import Sequence
import dataclasses
import itertools
import json
from typing import Any

from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research import arguments
from speculative_t5x.research.ahead_of_time import bench as bench_lib
from speculative_t5x.research.ahead_of_time import preflight_report
from speculative_t5x.research.ahead_of_time import topology as topology_lib
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import t5_published


def preflight(
    *,
    target: str,
    draft: str | Sequence[str],
    topology: str,
    gamma: int | Sequence[int] = 7,
    shapes: bench_lib.Sizes,
    output_dir: str | None = None,
) -> dict[str, Any]:
  """Compile a target with drafts for a topology and report on each pair.

  The arguments are explained in `configs/runs/preflight.gin`.

  Returns:
    The record that is written as JSON.
  Raises:
    ValueError: for an unknown network or topology, an invalid number, or a
      missing compiler.
  """
  if _size(target) not in t5_published.SIZES:
    names = ', '.join(f't5_1_1_{size}' for size in t5_published.SIZES)
    raise ValueError(f'There is no target {target!r}. Choose from: {names}.')
  config = t5_published.make_config(_size(target), shapes.dtype)
  drafts = _drafts(draft, config)
  gammas = arguments.several_counts('gamma', gamma)
  arguments.check_gammas(gammas, shapes.targets_length)
  place = topology_lib.describe(topology).with_mesh(shapes.mesh_shape)
  sharding.check_batch(place.mesh, shapes.batch_size)
  name = by_name.network_name(_size(target))
  bench = bench_lib.Bench(place, shapes, name, config)
  if output_dir is not None:
    whole_files.check_writable(user_paths.expand(output_dir))
  record = {
      'job': 'preflight',
      **provenance.origin(),
      'device': dataclasses.asdict(provenance.describe_device()),
      'host': dataclasses.asdict(provenance.describe_host()),
      'compiler': place.compiler,
      'topology': topology,
      'chip': dataclasses.asdict(place.chip),
      'mesh': sharding.describe(place.mesh),
      **{k: v for k, v in vars(shapes).items() if k != 'mesh_shape'},
      'target': bench.describe_target(),
      'pairs': [
          bench.describe_pair(*pair)
          for pair in itertools.product(drafts, gammas)
      ],
      'table_2': [*map(dataclasses.asdict, published.TABLES_2_AND_4)],
  }
  page = preflight_report.render(record)
  print(page)
  if output_dir is not None:
    folder = user_paths.expand(output_dir)
    line = json.dumps(record, allow_nan=False)
    whole_files.write(folder, 'preflight.md', [str(page)])
    whole_files.write(folder, 'preflight.json', [line])
  return record


def _size(name: str) -> str:
  return name.strip().removeprefix('t5_1_1_')


def _drafts(names: str | Sequence[str], target: t5.T5Config) -> list[str]:
  """Return the drafts' names as `by_name` has them, without duplicates."""
  several = names.split(',') if isinstance(names, str) else names
  drafts = [*dict.fromkeys(map(_size, several))]
  for name in drafts:
    by_name.make_config(name, target)
  return drafts
