# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts as requests, and the rows of their predictions."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
import dataclasses
import json
from typing import Any

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.cluster import infer_chunks
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib


@dataclasses.dataclass(frozen=True)
class TextRows:
  """How texts are decoded, and what is written of each; `inference.Rows`.

  Attributes:
    decoder: Their decoder.
    make_engine: Returns what decodes them.
    vocabulary: Of both sides.
    form: How their texts became inputs.
    settings: What all requests share.
    search: Beam search of all of them; None for none.
    columns: What a row has beside id, input and prediction: 'scores',
      'statistics', 'tokens', see `infer`.
    answers: What earlier answers that are found depend on; None for none.
  """

  files = {output_folder.PREDICTIONS: None}

  decoder: token_decoder.TokenDecoder
  make_engine: Callable[[], engine_lib.Engine]
  vocabulary: vocabularies.Vocabulary
  form: inputs_form.InputsForm
  settings: request_lib.Settings
  search: beam_search.BeamSearch | None
  columns: Collection[str]
  answers: list[Any] | None

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
    found = inputs_lib.identity(part)
    return found if self.answers is None else [*found, self.answers]

  def requests(self, item: inputs_lib.Input) -> list[request_lib.Request]:
    if item.is_empty:
      return []
    hints = item.hints if self.decoder.reads_hints else None
    # The hypotheses of a search are one request.
    samples = self.decoder.options.num_decodes if self.search is None else 1
    return [
        self.settings.request(
            item.tokens,
            item.example_id,
            num_decodes=samples,
            search=self.search,
            hints=hints,
        )
    ]

  def row(
      self,
      item: inputs_lib.Input,
      found: Sequence[results.Result | ValueError],
  ) -> dict[str, Any]:
    (result,) = found or [
        self.make_engine().empty_result(self.decoder.options.num_decodes)
    ]
    if isinstance(result, ValueError):
      raise result
    special_ids = self.decoder.target_model.special_ids
    one = lambda values: values[0] if len(values) == 1 else values
    before = self.form.text_before(item.tokens)
    texts = [
        self.vocabulary.decode(batching.text_ids(x.tokens, special_ids), before)
        for x in result.decodes
    ]
    row = {
        'example_id': item.example_id,
        'input': item.text,
        'prediction': one(texts),
    }
    if 'scores' in self.columns:
      row['score'] = one(result.scores.tolist())
    if 'statistics' in self.columns:
      row['statistics'] = counts.of_decodes(result.decodes)
    if 'tokens' in self.columns:
      row[predictions_lib.INPUT_TOKENS] = list(item.tokens)
      hints = result.hints or item.hints
      if hints:
        row[predictions_lib.HINT_TOKENS] = [list(x) for x in hints]
      by_number = sorted(result.decodes, key=lambda x: x.number)
      row[predictions_lib.TOKENS] = one([x.tokens for x in by_number])
    return {**row, **item.fields}

  def counted(self, answered: Sequence[inference.Answered]) -> dict[str, int]:
    return infer_chunks.counted([item for item, _ in answered])


def answers_in(
    rows: Iterable[str], vocabulary: vocabularies.Vocabulary
) -> Iterator[tuple[str, str]]:
  """Yield the inputs of rows, and the best outputs."""
  for row in map(json.loads, rows):
    if not inputs_lib.is_empty(row['input'], vocabulary.encode(row['input'])):
      yield row['input'], predictions_lib.best_of(row['prediction'])
