# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The methods job: drafters, rules and policies on several tasks, in one table.

Each task is a walltime job in a folder of its own, where an interrupted job
goes on.
"""

from collections.abc import Callable, Sequence

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
Task = tuple[str, Callable[..., Records]]


def measure_methods(
    *, output_dir: str, tasks: Sequence[Task]
) -> dict[str, Records]:
  """Run the walltime jobs of several tasks, and write one table of all.

  Args:
    output_dir: Gets `methods.md`, the table that is printed, `methods.png`, and
      a folder per task.
    tasks: Pairs of a task's name, which is also the name of its folder, and a
      walltime job that takes `output_dir`.
  Returns:
    The records of each task.
  Raises:
    ValueError: for no task, or names that cannot be those of their folders.
    greedy.MismatchError: see `walltime.measure_walltime`.
  """
  arguments.check_some('tasks', tasks)
  names = [name for name, _ in tasks]
  taken = _TABLE, _FIGURE, folder_lock.NAME, folder_lock.OWNER
  output_folder.check_names('A task', names, taken)
  folder = user_paths.expand(output_dir)
  with folder_lock.hold(folder):
    found = {}
    for name, measure in tasks:
      with errors.prefixed(f'The task {name}'):
        found[name] = measure(output_dir=str(folder / name))
    page = methods_table.render(found)
    speedup_picture.write(folder, _FIGURE, found)
    path = whole_files.write(folder, _TABLE, [page])
  console.show(page)
  print(f'Written: {path}')
  return found
