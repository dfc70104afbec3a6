# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logs the rates of speculation of T5X's infer job, which has no metrics."""

from collections.abc import Callable
from typing import Any

from absl import logging

from speculative_t5x.tasks import metrics


def log_speculation(write_fn: Callable) -> Callable:
  """Return a `write_fn` of T5X's infer job that also logs rates of speculation.

  It logs them for each chunk that is written, in mode `predict_with_aux`.
  """

  def write(path: str, inferences: Any, *args: Any) -> None:
    write_fn(path, inferences, *args)
    outputs, aux_values = inferences
    counts = {k: v for k, v in aux_values.items() if k != 'scores'}
    if rates := metrics.speculation(counts) if counts else {}:
      shown = ', '.join(
          f'{name} {value:.4f}' for name, value in rates.items()
      )
      logging.info('Speculation in %d examples: %s', len(outputs), shown)

  return write
