# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tpu-preflight job: compiles T5 1.1 for a TPU on a machine without one.

Programs are compiled from shapes alone and analysed. Nothing runs: cycles are
the compiler's estimates, and roofline times are lower bounds.
"""

from collections.abc import Sequence
import dataclasses
import itertools
import json
from typing import Any

from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.tpu_aot import bench as bench_lib
from speculative_t5x.research.tpu_aot import report
from speculative_t5x.research.tpu_aot import topology as topology_lib

_GIB = 2**30


def tpu_preflight(
    *,
    target: str,
    draft: str | Sequence[str],
    topology: str,
    gamma: int | Sequence[int] = 7,
    shapes: bench_lib.Shapes,
    output_dir: str | None = None,
) -> dict[str, Any]:
  """Compile a target with its draft models for a TPU and report on each pair.

  The arguments are explained in `configs/runs/tpu_preflight.gin`.

  Returns:
    The record that is written as JSON.
  Raises:
    ValueError: for an unknown network or topology, an invalid number, a missing
      libtpu, or a pair that does not fit into a chip's memory.
  """
  target_size = target.removeprefix(bench_lib.PREFIX)
  drafts = _drafts(draft, target_size)
  gammas = arguments.several_counts('gamma', gamma)
  arguments.check_gammas(gammas, shapes.targets_length)
  place = topology_lib.describe(topology).with_mesh(shapes.mesh_shape)
  sharding.check_batch(place.mesh, shapes.batch_size)
  bench = bench_lib.Bench(place, shapes)
  chip = place.chip
  for each in drafts:  # before minutes of compilation
    needed = bench.needed_bytes(target_size, each, max(gammas))
    if needed > chip.memory_bytes:
      raise ValueError(
          f'{target} with {by_name.network_name(each)} needs'
          f' {needed / _GIB:.1f} GiB on each chip of {topology}, and a'
          f' {chip.name} has {chip.memory_bytes / _GIB:.0f} GiB. Use more'
          ' chips, over which the target is partitioned, a smaller batch or a'
          ' smaller target.'
      )
  if output_dir is not None:
    whole_files.check_writable(user_paths.expand(output_dir))
  record = {
      'job': 'tpu_preflight',
      **provenance.origin(),
      'device': dataclasses.asdict(provenance.describe_device()),
      'host': dataclasses.asdict(provenance.describe_host()),
      'libtpu': topology_lib.check_libtpu(),
      'topology': topology,
      'chip': dataclasses.asdict(chip),
      'mesh': sharding.describe(place.mesh),
      **{k: v for k, v in vars(shapes).items() if k != 'mesh_shape'},
      't5x_step': bench.describe_t5x(target_size),
      'target': bench.describe_target(target_size),
      'drafts': [bench.describe_draft(target_size, each) for each in drafts],
      'verify': [bench.describe_verify(target_size, g) for g in gammas],
      'pairs': [
          bench.describe_pair(target_size, *pair)
          for pair in itertools.product(drafts, gammas)
      ],
      'table_2': [
          dataclasses.asdict(row) | bench.describe_row(target_size, row)
          for row in published.TABLES_2_AND_4
      ],
  }
  text = report.render(record)
  print(text)
  if output_dir is not None:
    folder = user_paths.expand(output_dir)
    line = json.dumps(record, allow_nan=False)
    whole_files.write(folder, 'tpu_preflight.md', [text])
    whole_files.write(folder, 'tpu_preflight.json', [line])
  return record


def _drafts(names: str | Sequence[str], target: str) -> list[str]:
  """Return the drafts' names as `by_name` has them, without duplicates."""
  several = names.split(',') if isinstance(names, str) else names
  found = [x.strip().removeprefix(bench_lib.PREFIX) for x in several]
  for name in found:
    by_name.find(name, t5_published.make_config(target))
  return list(dict.fromkeys(found))
