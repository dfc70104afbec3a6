# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The metrics of a task, computed and logged as seqio's evaluator does."""

from collections.abc import Callable, Mapping, Sequence
import math
import os
from typing import Any

import numpy as np
import seqio

from speculative_t5x.loading.files import user_paths
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import metrics

MetricValues = Mapping[str, seqio.metrics.MetricValue]


def compute(
    examples: examples_lib.Examples,
    texts: Sequence[str],
    aux_values: Mapping[str, np.ndarray],
) -> MetricValues:
  """Compute all metrics of a task from outputs that were decoded once.

  As in seqio's evaluator, postprocessors see the example of an output. For the
  auxiliary values, [examples, ...], see `predictions.Predictions`.
  """
  task = examples.task
  best = [
      task.postprocess_fn(text, example=row.features, is_target=False)
      for text, row in zip(texts, examples.rows, strict=True)
  ]
  values: dict[str, Any] = {}
  for metric_fn in task.predict_metric_fns:
    values |= metric_fn(examples.targets, best)
  for metric_fn in task.predict_with_aux_metric_fns:
    values |= metric_fn(examples.targets, best, aux_values)
  return {
      name: value
      if isinstance(value, seqio.metrics.MetricValue)
      else seqio.metrics.Scalar(value)
      for name, value in values.items()
  }


def check(task: seqio.Task) -> None:
  """Check that all metrics of a task can be computed from outputs."""
  num_objects = len(task.metric_objs) - len(task.metric_fns)
  others = [*task.score_metric_fns, *task.metric_objs[:num_objects]]
  if others:
    raise ValueError(
        f'The metric {others[0]!r} of task {task.name} is not a function of'
        ' targets and predictions, and would not be computed. Register a copy'
        ' of the task without it, by `task.replace(name=..., metric_fns=...)`.'
    )


def quality(values: MetricValues) -> dict[str, float]:
  """Return the metrics that a run record has under `quality`.

  These are the finite numbers among them, as JSON has no others, without the
  rates of speculation, which the record has under keys of its own.
  """
  return {
      name: float(value.value)
      for name, value in values.items()
      if isinstance(value, seqio.metrics.Scalar)
      and math.isfinite(value.value)
      and name.partition('/')[0] not in metrics.SPECULATION
  }


def log(
    loggers: Sequence[Callable[..., seqio.Logger]],
    folder: str | os.PathLike[str],
    task_name: str,
    step: int,
    values: MetricValues,
) -> None:
  """Pass metrics to seqio loggers, classes that are called with `output_dir`.

  The folder, which may be remote, is made, because not all of them make it.
  """
  folder = user_paths.expand(folder)
  folder.mkdir(parents=True, exist_ok=True)
  for make_logger in loggers:
    # Inputs and outputs are not logged: the job writes them itself.
    make_logger(output_dir=os.fspath(folder))(
        task_name=task_name,
        step=step,
        metrics=values,
        dataset=None,
        inferences=None,
        targets=None,
    )
