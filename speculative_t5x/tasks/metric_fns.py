# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics with the signature by which seqio passes auxiliary values.

seqio classifies metrics by their parameters without defaults, and decodes a
task twice if only some of its metrics take auxiliary values.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any

import numpy as np
import seqio

from speculative_t5x.tasks import metrics

# A number, or what a seqio logger shows otherwise.
Value = float | seqio.metrics.MetricValue


def with_aux_values(
    metric_fn: Callable[[Sequence[Any], Sequence[Any]], Mapping[str, Value]],
) -> Callable[..., Mapping[str, Value]]:
  """Return a metric of targets and predictions as one with auxiliary values."""

  # `functools.wraps` would show seqio the parameters of `metric_fn`.
  def with_unused(targets, predictions, aux_values):
    del aux_values
    return metric_fn(targets, predictions)

  return with_unused


def speculation(
    targets: Sequence[Any],
    predictions: Sequence[Any],
    aux_values: Mapping[str, Any],
) -> dict[str, Value]:
  """Compute rates of speculative decoding; see `metrics.speculation`.

  A speculative run also has `tokens_per_target_call/examples`, a histogram over
  the examples.
  """
  del targets, predictions
  found = metrics.speculation(aux_values)
  if 'tested' not in aux_values:
    return found
  tokens, calls = (
      np.asarray(aux_values[name]) for name in ('tokens', 'target_calls')
  )
  histogram = seqio.metrics.Histogram(tokens[calls > 0] / calls[calls > 0])
  return found | {'tokens_per_target_call/examples': histogram}


TRANSLATION = (with_aux_values(metrics.bleu),)
T5_TRANSLATION = (  # BLEU as T5 reports it
    with_aux_values(functools.partial(metrics.bleu, tokenize='intl')),
)
SUMMARIZATION = (with_aux_values(metrics.rouge),)
