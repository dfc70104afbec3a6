# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts as requests, and the rows of their predictions."""

from collections.abc import Sequence
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
from speculative_t5x.jobs.inference import infer_source
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib


@dataclasses.dataclass(frozen=True)
class TextRows:
  """Rows of texts, and the lines of their outputs.

  Attributes:
    setup: The job.
    source: The texts.
    decoder: Their decoder.
  """

  setup: infer_setup.InferSetup
  source: infer_source.Source
  decoder: token_decoder.TokenDecoder

  @functools.cached_property
  def _settings(self) -> request_lib.Settings:
    setup = self.setup
    settings = setup.workload.settings(setup.sampling, setup.draft_sampling)
    return dataclasses.replace(settings, search=setup.search)

  @property
  def empty(self) -> list[results.Decode]:
    """The outputs of an input without text."""
    gamma = self.decoder.drafter.form.gamma
    numbers = range(self.decoder.options.num_decodes)
    return [results.Decode.empty(number, gamma) for number in numbers]

  def request(self, item: inputs_lib.Input) -> request_lib.Request | None:
    """Return the request of an input; None for one without text."""
    if item.is_empty:
      return None
    return self._settings.request(
        item.tokens,
        item.example_id,
        # The hypotheses of a search are one request.
        num_decodes=self.setup.num_decodes,
        hints=item.hints if self.decoder.reads_hints else None,
    )

  def row(
      self, item: inputs_lib.Input, decodes: Sequence[results.Decode]
  ) -> dict[str, Any]:
    """Return the row of an input, a line of `predictions.jsonl`."""
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
