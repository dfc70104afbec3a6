# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoded texts of a run, their metrics, and their rows in a file.

Legend: examples, num_decodes (samples per example).
"""

import dataclasses
from typing import Any

import numpy as np

from speculative_t5x import batching
from speculative_t5x import token_decoder
from speculative_t5x.measurement import interleaved
from speculative_t5x.tasks import examples as examples_lib


@dataclasses.dataclass(frozen=True)
class Predictions:
  """Texts and scores, the best decode of an example last.

  Attributes:
    texts: [examples][num_decodes] decoded texts.
    scores: [examples, num_decodes] float32, log-probabilities.
  """

  texts: list[list[str]]
  scores: np.ndarray


def read(
    run: interleaved.Run,
    examples: examples_lib.Examples,
    decoder: token_decoder.TokenDecoder,
) -> Predictions:
  """Returns the texts of a run over these examples.

  Args:
    run: of one of the two ways of decoding.
    examples: that were decoded.
    decoder: that decoded them.
  """
  special_ids = decoder.target_model.special_ids
  sequences, scores = run.best_last(len(examples.tokens), decoder.num_decodes)
  vocabulary = examples.vocabulary
  texts = [
      [
          vocabulary.decode(
              batching.text_ids(ids, special_ids, vocabulary.vocab_size)
          )
          for ids in decodes
      ]
      for decodes in sequences.tolist()
  ]
  return Predictions(texts, scores)


def judge(
    examples: examples_lib.Examples, predictions: Predictions
) -> dict[str, float]:
  """Computes the task's metrics of the best decodes."""
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
  """Returns the rows of `predictions.jsonl`, one per example.

  Args:
    examples: the decoded examples.
    temperature: sampling temperature of the decoding.
    sides: predictions by their key in a row. A single decode is written as a
      text, several decodes as a list.
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
