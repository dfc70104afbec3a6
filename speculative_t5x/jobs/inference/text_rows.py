# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts as requests, and the rows of their predictions."""

from collections.abc import Iterator, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import infer_source
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import json_files
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib

# Counts of the inputs of a chunk, under their names in a record.
COUNTED = 'num_examples', 'truncated_inputs', 'unknown_inputs'


@dataclasses.dataclass(frozen=True)
class TextRows:
  """Rows of texts, and the lines of their outputs; an `inference.Rows`.

  Attributes:
    setup: The job. On a cluster, an input that cannot be decoded gets a row
      with its error; otherwise it ends the job.
    source: The texts.
    decoder: Their decoder.
  """

  files = {output_folder.PREDICTIONS: None}

  setup: infer_setup.InferSetup
  source: infer_source.Source
  decoder: token_decoder.TokenDecoder

  @functools.cached_property
  def _settings(self) -> request_lib.Settings:
    setup = self.setup
    settings = setup.workload.settings(setup.sampling, setup.draft_sampling)
    return dataclasses.replace(settings, search=setup.search)

  def read(
      self, inputs: Iterator[inputs_lib.Input]
  ) -> Iterator[inputs_lib.Input]:
    """Yield the inputs, and say at the first hints if they are not used."""
    has_hints = False
    for each in inputs:
      if each.hints and not has_hints:
        has_hints = True
        workload_lib.note_unread_hints(self.decoder)
      yield each

  def identity(self, part: Sequence[inputs_lib.Input]) -> list[Any]:
    return inputs_lib.identity(part)

  def requests(self, item: inputs_lib.Input) -> list[request_lib.Request]:
    if item.is_empty:
      return []
    hints = item.hints if self.decoder.reads_hints else None
    return [
        self._settings.request(
            item.tokens,
            item.example_id,
            # The hypotheses of a search are one request.
            num_decodes=self.setup.num_decodes,
            hints=hints,
        )
    ]

  def row(
      self,
      item: inputs_lib.Input,
      found: Sequence[results.Result | ValueError],
  ) -> dict[str, Any]:
    gamma = self.decoder.drafter.form.gamma
    numbers = range(self.decoder.options.num_decodes)
    decodes = [results.Decode.empty(number, gamma) for number in numbers]
    for result in found:
      if isinstance(result, ValueError):
        if self.setup.cluster is None:
          raise result
        return _error_row(item, errors.first_line(result))
      decodes = result.decodes
    special_ids = self.decoder.target_model.special_ids
    one = lambda values: values[0] if len(values) == 1 else values
    before = self.source.form.text_before(item.tokens)
    texts = [
        self.source.target.vocabulary.decode(
            batching.text_ids(x.tokens, special_ids), before
        )
        for x in decodes
    ]
    row = {
        'example_id': item.example_id,
        'input': item.text,
        'prediction': one(texts),
    }
    if self.setup.scores:
      row['score'] = one(np.float32([x.score for x in decodes]).tolist())
    if self.setup.statistics:
      row['statistics'] = counts.of_decodes(decodes)
    if self.setup.tokens:
      row[predictions_lib.INPUT_TOKENS] = list(item.tokens)
      if item.hints:
        row[predictions_lib.HINT_TOKENS] = [list(x) for x in item.hints]
      by_number = sorted(decodes, key=lambda x: x.number)
      row[predictions_lib.TOKENS] = one([x.tokens for x in by_number])
    return {**row, **item.fields}

  def counted(self, answered: Sequence[inference.Answered]) -> dict[str, int]:
    num_failed = sum(
        isinstance(each, ValueError) for _, found in answered for each in found
    )
    return _counts([item for item, _ in answered], num_failed)


def not_decoded(
    part: Sequence[inputs_lib.Input], error: str
) -> chunks_lib.Content:
  """Return the content of a chunk of which nothing was decoded."""
  rows = [json_files.dumps(_error_row(each, error)) for each in part]
  return chunks_lib.Content(rows, _counts(part, len(part)))


def _error_row(item: inputs_lib.Input, error: str) -> dict[str, Any]:
  return {
      'example_id': item.example_id,
      'input': item.text,
      'prediction': None,
      predictions_lib.ERROR: error,
      **item.fields,
  }


def _counts(
    part: Sequence[inputs_lib.Input], num_failed: int
) -> dict[str, int]:
  counts = (
      len(part),
      sum(each.is_truncated for each in part),
      sum(not each.is_known for each in part),
  )
  failed = {chunks_lib.FAILED: num_failed} if num_failed else {}
  return dict(zip(COUNTED, counts, strict=True)) | failed
