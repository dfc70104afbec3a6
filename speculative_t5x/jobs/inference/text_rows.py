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
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import errors
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib

# Counts of the inputs of a chunk, under their names in a record.
COUNTED = 'num_examples', 'truncated_inputs', 'unknown_inputs'
# Of the values of a chunk: how many of its rows are errors of a batch.
NUM_ERRORS = 'num_errors'
# An input, and for each of its requests the result, or why there is none.
Answered = tuple[Any, Sequence[results.Result | ValueError]]


@dataclasses.dataclass(frozen=True)
class TextRows:
  """Rows of texts, and the lines of their outputs; an `inference.Rows`."""

  files = {output_folder.PREDICTIONS: None}

  # The job. On a cluster, an input that cannot be decoded gets a row with its
  # error; otherwise it ends the job.
  setup: infer_setup.InferSetup
  source: infer_setup.Source
  decoder: token_decoder.TokenDecoder

  @functools.cached_property
  def _settings(self) -> request_lib.Settings:
    setup = self.setup
    settings = setup.workload.settings(setup.sampling, setup.draft_sampling)
    return dataclasses.replace(settings, search=setup.search)

  def read(self, inputs) -> Iterator[inputs_lib.Input]:
    return inputs

  def identity(self, part: Sequence[inputs_lib.Input]) -> list[Any]:
    return inputs_lib.identity(part)

  def requests(self, item: inputs_lib.Input) -> list[request_lib.Request]:
    if item.is_empty:
      return []
    return [
        self._settings.request(
            item.tokens,
            item.example_id,
            # The hypotheses of a search are one request.
            num_decodes=self.setup.num_decodes,
            hints=item.hints if self.decoder.reads_hints else None,
        )
    ]

  def row(self, item, outcomes) -> dict[str, Any]:
    drafts = self.setup.drafter is not None
    gamma = self.decoder.drafter.form.gamma if drafts else 0
    numbers = range(self.decoder.options.num_decodes)
    decodes = [results.Decode.empty(number, gamma) for number in numbers]
    for outcome in outcomes:
      if isinstance(outcome, ValueError):
        if self.setup.cluster is None:
          raise outcome
        row = {'example_id': item.example_id, 'input': item.text}
        error = {predictions_lib.ERROR: errors.first_line(outcome)}
        return {**row, 'prediction': None, **error, **item.fields}
      decodes = outcome.decodes
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

  def counted(self, answered: Sequence[Answered]) -> dict[str, int]:
    items = [item for item, _ in answered]
    counts_of_inputs = (
        len(items),
        sum(item.is_truncated for item in items),
        sum(not item.is_known for item in items),
    )
    num_failed = sum(
        isinstance(each, ValueError) for _, found in answered for each in found
    )
    failed = {chunks_lib.FAILED: num_failed} if num_failed else {}
    return dict(zip(COUNTED, counts_of_inputs, strict=True)) | failed
