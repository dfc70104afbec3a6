# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes arguments of the eval and walltime jobs from one flat dictionary."""

import dataclasses
from typing import Any

from speculative_t5x.drafters import draft_model
from speculative_t5x.jobs import workload

_NAMES = {field.name for field in dataclasses.fields(workload.Workload)}


def job_arguments(**values: Any) -> dict[str, Any]:
  """Returns the arguments of a job, including its workload."""
  own = {name: values.pop(name) for name in _NAMES & values.keys()}
  return {'workload': workload.Workload(**own), **values}


def drafter(
    path: str, config: Any = None, **options: Any
) -> draft_model.FromCheckpoint:
  """Returns a draft model in a checkpoint."""
  return draft_model.FromCheckpoint(path, config, **options)
