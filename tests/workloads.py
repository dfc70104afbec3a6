# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes arguments of the decoding jobs from one flat dictionary."""

import dataclasses
from typing import Any

from speculative_t5x.jobs import workload
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.speculation import sampling

_NAMES = {field.name for field in dataclasses.fields(workload.Workload)}
_SAMPLING = {field.name for field in dataclasses.fields(sampling.Sampling)}


def job_arguments(**values: Any) -> dict[str, Any]:
  """Returns the arguments of an eval or walltime job, and its workload.

  Args:
    **values: Fields of the workload, parameters of sampling, of which
      temperature and draft_temperature may be several, and others.
  """
  own = {name: values.pop(name) for name in _NAMES & values.keys()}
  setting = {name: values.pop(name) for name in _SAMPLING & values.keys()}
  found = {'workload': workload.Workload(**own), **values}
  draft = found.pop('draft_temperature', None)
  if setting:
    found['samplings'] = sampling.each(**{'temperature': 0.0} | setting)
  if draft is not None:
    found['draft_samplings'] = sampling.each(**setting | {'temperature': draft})
  return found


def infer_arguments(**values: Any) -> dict[str, Any]:
  """Returns the arguments of an infer job; see `job_arguments`."""
  found = job_arguments(**values)
  for name in ('sampling', 'draft_sampling'):
    if several := found.pop(f'{name}s', None):
      (found[name],) = several
  return found


def drafter(
    path: str, config: Any = None, **options: Any
) -> draft_model_source.FromCheckpoint:
  """Returns a draft model in a checkpoint."""
  return draft_model_source.FromCheckpoint(path, config, **options)
