# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run wrote, as texts: rows for a file, and the task's judgement.

Legend: examples, num_decodes (samples an example).
"""

import dataclasses
from typing import Any

import numpy as np
import seqio

from speculative_t5x import speculation
from speculative_t5x.jobs import examples as examples_lib
from speculative_t5x.walltime import side_by_side


@dataclasses.dataclass(frozen=True)
class Predictions:
  """Texts and scores, the best decode of an example last.

  Attributes:
    texts: [examples][num_decodes].
    scores: [examples, num_decodes] float32, log-probabilities.
  """

  texts: list[list[str]]
  scores: np.ndarray


def read(
    run: side_by_side.Run, examples: examples_lib.Examples, num_decodes: int
) -> Predictions:
  """The texts of a run over these examples."""
  sequences, scores = run.best_last(len(examples.tokens), num_decodes)
  vocabulary = examples.vocabulary
  texts = [
      [_detokenize(ids, vocabulary) for ids in decodes]
      for decodes in sequences.tolist()
  ]
  return Predictions(texts, scores)


def _detokenize(ids: list[int], vocabulary: seqio.Vocabulary) -> str:
  if speculation.EOS_ID in ids:
    ids = ids[: ids.index(speculation.EOS_ID)]
  # Ids that only pad the logits have no piece.
  return vocabulary.decode([i for i in ids if 0 < i < vocabulary.vocab_size])


def judge(
    examples: examples_lib.Examples, predictions: Predictions
) -> dict[str, float]:
  """The task's own metrics of the best decodes."""
  task = examples.task
  best = [
      task.postprocess_fn(decodes[-1], example=None, is_target=False)
      for decodes in predictions.texts
  ]
  values: dict[str, Any] = {}
  for metric_fn in task.predict_metric_fns:
    values |= metric_fn(examples.targets, best)
  for metric_fn in task.predict_with_aux_metric_fns:
    values |= metric_fn(examples.targets, best, {})
  return {name: float(value) for name, value in values.items()}


def rows(
    examples: examples_lib.Examples,
    temperature: float,
    sides: dict[str, Predictions],
) -> list[dict[str, Any]]:
  """One row an example, for `predictions.jsonl`.

  Args:
    examples: what was decoded.
    temperature: it was decoded at.
    sides: predictions by the name of the key; one decode is written as it is,
      several as lists.
  """
  columns = {
      'example_id': examples.example_ids.tolist(),
      'input': examples.inputs,
      'target': examples.targets,
      **{name: _unwrap(side.texts) for name, side in sides.items()},
      **{
          f'{name}_score': _unwrap(side.scores.tolist())
          for name, side in sides.items()
      },
  }
  return [
      {'temperature': temperature, **dict(zip(columns, row, strict=True))}
      for row in zip(*columns.values(), strict=True)
  ]


def _unwrap(decodes: list[list[Any]]) -> list[Any]:
  return [each[0] if len(each) == 1 else each for each in decodes]
