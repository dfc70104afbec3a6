# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The methods job: drafters, rules and policies on several tasks, in one table.

Each task is a walltime job in a folder of its own, where an interrupted job
goes on.
"""

from collections.abc import Callable, Sequence

from etils import epath

from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import methods_table

Records = Sequence[run_record.RunRecord]
_TABLE = 'methods.md'
Task = tuple[str, Callable[..., Records]]


def measure_methods(
    *, output_dir: str, tasks: Sequence[Task]
) -> dict[str, Records]:
  """Runs the walltime jobs of several tasks, and writes one table of all.

  Args:
    output_dir: gets `methods.md`, the table that is printed, and a folder per
      task.
    tasks: pairs of a task's name, which is also the name of its folder, and a
      walltime job that takes `output_dir`.
  Returns:
    The records of each task.
  Raises:
    ValueError: for no task, or names that cannot be those of their folders.
    greedy.MismatchError: see `walltime.measure_walltime`. The table is not
      written.
  """
  _check(tasks)
  folder = epath.Path(output_dir)
  with folder_lock.hold(folder):
    found = {
        name: measure(output_dir=str(folder / name)) for name, measure in tasks
    }
    text = methods_table.render(found)
    path = whole_files.write(folder, _TABLE, [text])
  print(text)
  print(f'Written: {path}')
  return found


def _check(tasks: Sequence[Task]) -> None:
  """Checks tasks before the first is measured."""
  names = [name for name, _ in tasks]
  if not names:
    raise ValueError(
        "There is no task. Give TASKS = [('translation',"
        ' @translation/walltime.measure_walltime)].'
    )
  for name in names:
    if name in (_TABLE, folder_lock.NAME):
      raise ValueError(
          f'The job itself writes {name}, which cannot be the name of a task.'
          ' Give another one.'
      )
    if not _is_plain(name):
      raise ValueError(
          f'The name of a task must be that of a folder and the head of a'
          f" column, without '/', '|' and line breaks, got {name!r}. Give"
          ' another one.'
      )
    if names.count(name) > 1:
      raise ValueError(
          f'Two tasks have the name {name!r}. Give each a name of its own.'
      )


def _is_plain(name: str) -> bool:
  is_empty = not name.strip('. ')
  return not is_empty and not {'/', '\\', '|', '\n', '\r'} & set(name)
