# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the paper job keeps what it measured of pairs with checkpoints.

Each drafter of a task has an `output_folder` of its own.
"""

import os

from etils import epath

from speculative_t5x.loading.files import user_paths
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import runs

_FOLDER, _RESULTS = 'measured', 'results.jsonl'

Path = str | os.PathLike[str]


def root(output_dir: Path) -> epath.Path:
  """Return the folder of all tasks."""
  return user_paths.expand(output_dir) / _FOLDER


def folder(output_dir: Path, task: str, name: str) -> epath.Path:
  """Return the folder of one drafter, or of something else of a task."""
  return root(output_dir) / task / name


def find(output_dir: Path) -> list[markdown_tables.MeasuredPair]:
  """Return what was measured, the paper's tasks and draft first."""
  return [
      markdown_tables.MeasuredPair(
          task.name, draft.name, runs.read(draft / _RESULTS)
      )
      for task in _folders(root(output_dir))
      for draft in _folders(task)
      if (draft / _RESULTS).exists()
  ]


def _folders(path: epath.Path) -> list[epath.Path]:
  """Return the folders in a folder, in the order of the tables."""
  known = [name for row in published.TABLE_3 for name in (row.task, row.draft)]

  def place(found: epath.Path) -> tuple[int, str]:
    is_known = found.name in known
    return known.index(found.name) if is_known else len(known), found.name

  found = path.iterdir() if path.exists() else ()
  return sorted((each for each in found if each.is_dir()), key=place)
