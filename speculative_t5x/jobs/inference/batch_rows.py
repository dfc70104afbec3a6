# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of a batch of OpenAI's as requests, and the lines of their answers."""

from collections.abc import Iterator, Sequence
from typing import Any

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.serving import batch_lines


class BatchRows:
  """Rows of a batch of OpenAI's, and their answers; an `inference.Rows`."""

  files = {
      output_folder.OUTPUT: batch_lines.is_answer,
      output_folder.ERRORS: lambda line: not batch_lines.is_answer(line),
  }

  def __init__(self, batch: batch_lines.Batch):
    """Take what the lines share."""
    self._batch = batch

  def read(self, inputs) -> Iterator[batch_lines.Line]:
    return self._batch.read(inputs)

  def identity(self, part: Sequence[batch_lines.Line]) -> list[Any]:
    inputs = lambda line: [list(map(int, x.inputs)) for x in line.requests]
    lines = [
        [x.number, x.text, x.error and x.error.detail, *inputs(x)] for x in part
    ]
    # Both are in every answer.
    return [*lines, self._batch.model, self._batch.fingerprint]

  def requests(self, item: batch_lines.Line) -> Sequence[request_lib.Request]:
    return item.requests

  def row(self, item, outcomes) -> dict[str, Any]:
    return self._batch.answer(item, outcomes)

  def counted(self, answered: Sequence[text_rows.Answered]) -> dict[str, int]:
    errors = [
        bool(line.error) or any(isinstance(x, ValueError) for x in outcomes)
        for line, outcomes in answered
    ]
    return {'num_examples': len(errors), text_rows.NUM_ERRORS: sum(errors)}
