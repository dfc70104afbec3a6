# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The simulate job: the walltime of pairs whose weights are not at hand.

T5 1.1 of any size runs with random weights on random inputs, and draft tokens
are accepted at a given rate (see `speculation.simulated_acceptance`). Needs
neither a task nor checkpoints.
"""

from collections.abc import Sequence
import itertools

from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.research.simulation import simulated_walltimes


def simulate(
    *,
    target_size: str,
    draft_size: str | Sequence[str],
    alpha: float | Sequence[float],
    gamma: int | Sequence[int],
    output_dir: str,
    temperature: float | Sequence[float] = 0.0,
    shapes: simulated_walltimes.Shapes,
) -> list[run_record.RunRecord]:
  """Measure every combination of draft, gamma, rate and temperature.

  The arguments are explained in `configs/runs/simulate.gin`.

  Returns:
    One run record per combination.
  Raises:
    ValueError: for values out of range, or weights that need more memory than
      is free; nothing has been allocated then.
  """
  if isinstance(draft_size, str):
    draft_size = [draft_size]
  pairings = [
      simulated_walltimes.Pairing(*values)
      for values in itertools.product(
          draft_size,
          arguments.several('alpha', alpha),
          arguments.several_counts('gamma', gamma),
          arguments.several('temperature', temperature),
      )
  ]
  with folder_lock.hold(output_dir):
    records, folder = simulated_walltimes.measure_pairings(
        target_size,
        pairings,
        shapes,
        lambda: output_folder.OutputFolder(output_dir, 'walltime'),
    )
    results = folder.finish()
    page = walltime_summary.render(records)
    folder.add_text('walltime.md', str(page))
  console.show(page)
  print(f'Records: {results}')
  return records
