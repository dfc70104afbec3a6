# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes arguments of the eval and walltime jobs from one flat dictionary."""

import dataclasses
from typing import Any

from speculative_t5x.jobs import workload
from speculative_t5x.loading.drafters import draft_model_source

_NAMES = {field.name for field in dataclasses.fields(workload.Workload)}


def job_arguments(**values: Any) -> dict[str, Any]:
  """Returns the arguments of a job, including its workload."""
  own = {name: values.pop(name) for name in _NAMES & values.keys()}
  return {'workload': workload.Workload(**own), **values}


def drafter(
    path: str, config: Any = None, **options: Any
) -> draft_model_source.FromCheckpoint:
  """Returns a draft model in a checkpoint."""
  return draft_model_source.FromCheckpoint(path, config, **options)
