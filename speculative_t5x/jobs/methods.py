# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The methods job: drafters, rules and policies on several tasks, in one table.

Each task is a walltime job in a folder of its own, where an interrupted job
goes on.
"""

from collections.abc import Sequence
import dataclasses

from speculative_t5x.jobs import walltime
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import speedup_picture
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import methods_table

Records = Sequence[run_record.RunRecord]
_TABLE, _FIGURE = 'methods.md', 'methods.png'


def measure_methods(
    *,
    output_dir: str,
    tasks: Sequence[tuple[str, walltime.WalltimeSetup]],
) -> dict[str, Records]:
  """Run the walltime jobs of several tasks, and write one table of all.

  Args:
    output_dir: Gets `methods.md`, the table that is printed, `methods.png`, and
      a folder per task.
    tasks: Pairs of a task's name, which is also the name of its folder, and the
      setup of its walltime job.
  Returns:
    The records of each task.
  Raises:
    ValueError: for no task, or names that cannot be those of their folders.
    greedy.MismatchError: see `walltime.measure_walltime`.
  """
  arguments.check_some('tasks', tasks)
  names = [name for name, _ in tasks]
  taken = _TABLE, _FIGURE, folder_lock.NAME
  output_folder.check_names('A task', names, taken)
  folder = user_paths.expand(output_dir)
  with folder_lock.hold(folder):
    records = {}
    for name, setup in tasks:
      own = dataclasses.replace(setup, output_dir=str(folder / name))
      with errors.prefixed(f'The task {name}'):
        records[name] = walltime.measure_walltime(own)
    page = methods_table.render(records)
    speedup_picture.write(folder, _FIGURE, records)
    path = whole_files.write(folder, _TABLE, [str(page)])
  console.show(page)
  print(f'Written: {path}')
  return records
