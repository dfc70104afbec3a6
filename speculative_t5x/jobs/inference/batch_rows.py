# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of a batch of OpenAI's as requests, and the lines of their answers."""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import Any

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.serving import batch_lines


@dataclasses.dataclass(frozen=True)
class BatchRows:
  """Rows of a batch of OpenAI's, and their answers; an `inference.Rows`.

  Attributes:
    batch: What they share.
  """

  files = {
      output_folder.OUTPUT: batch_lines.is_answer,
      output_folder.ERRORS: lambda line: not batch_lines.is_answer(line),
  }

  batch: batch_lines.Batch

  def read(
      self, inputs: Iterator[batch_lines.Line]
  ) -> Iterator[batch_lines.Line]:
    return self.batch.read(inputs)

  def identity(self, part: Sequence[batch_lines.Line]) -> list[Any]:
    found = [
        [
            line.number,
            line.text,
            line.error and line.error.detail,
            *(list(map(int, request.inputs)) for request in line.requests),
        ]
        for line in part
    ]
    # Both are in every answer.
    return [*found, self.batch.model, self.batch.fingerprint]

  def requests(self, item: batch_lines.Line) -> Sequence[request_lib.Request]:
    return item.requests

  def row(
      self,
      item: batch_lines.Line,
      found: Sequence[results.Result | ValueError],
  ) -> dict[str, Any]:
    return self.batch.answer(item, found)

  def counted(self, answered: Sequence[inference.Answered]) -> dict[str, int]:
    errors = [
        bool(line.error) or any(isinstance(x, ValueError) for x in found)
        for line, found in answered
    ]
    return {'num_examples': len(errors), inference.NUM_ERRORS: sum(errors)}
