# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoded texts of a run, counts per example, and their rows in a file.

Legend: examples, num_decodes (samples per example).
"""

import collections
from collections.abc import Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from etils import epath
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import results
from speculative_t5x.loading import vocabularies
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import text_files

if TYPE_CHECKING:  # imports seqio and TensorFlow, which files do not need
  from speculative_t5x.tasks import examples as examples_lib

# Keys of a row.
INPUT_TOKENS, HINT_TOKENS, TOKENS = 'input_tokens', 'hint_tokens', 'tokens'
ERROR = 'error'  # of a row without a prediction
_NUM_COMPARED = 100  # rows whose texts are compared with their token ids
# All of a row of the infer job, and what `read_pairs` looks for.
TAKEN = (
    *('example_id', 'input', 'prediction', 'score', 'statistics'),
    *(INPUT_TOKENS, HINT_TOKENS, TOKENS, f'baseline_{TOKENS}'),
)


@dataclasses.dataclass(frozen=True)
class Predictions:
  """Texts, scores and counts, an example's best decode last, and tokens."""

  texts: list[list[str]]  # [examples][num_decodes]
  scores: np.ndarray  # [examples, num_decodes] float32, log-probabilities
  counts: dict[str, np.ndarray]  # [examples, ...], see `counts.of_decodes`
  # [examples][num_decodes], by decode number, with the end of sequence.
  tokens: list[list[list[int]]]

  @property
  def best(self) -> list[str]:
    """The best text of each example."""
    return [decodes[-1] for decodes in self.texts]

  @property
  def aux_values(self) -> dict[str, np.ndarray]:
    """Return the best scores and the counts, for metrics that read them."""
    return {'scores': self.scores[:, -1], **self.counts}


def read(
    examples: Sequence[Sequence[results.Decode]],
    vocabulary: vocabularies.Vocabulary,
    special_ids: contracts.SpecialIds,
) -> Predictions:
  """Return the texts of examples from their outputs, the best one last."""
  counts = [counts_lib.of_decodes(decodes) for decodes in examples]
  return Predictions(
      [
          [
              vocabulary.decode(batching.text_ids(each.tokens, special_ids))
              for each in decodes
          ]
          for decodes in examples
      ],
      np.array(
          [[each.score for each in decodes] for decodes in examples],
          np.float32,
      ),
      {name: np.array([each[name] for each in counts]) for name in counts[0]},
      [
          [each.tokens for each in sorted(decodes, key=lambda x: x.number)]
          for decodes in examples
      ],
  )


def rows(
    examples: 'examples_lib.Examples',
    temperature: float,
    sides: dict[str, Predictions],
) -> list[dict[str, Any]]:
  """Return the rows of `predictions.jsonl`, one per example.

  Predictions are given by their key in a row. A single decode is written as a
  text, several decodes as a list.
  """
  columns = {
      'example_id': examples.example_ids.tolist(),
      'input': examples.inputs,
      'target': examples.references,
      **{name: unwrap(side.texts) for name, side in sides.items()},
      **{
          f'{name}_score': unwrap(side.scores.tolist())
          for name, side in sides.items()
      },
      INPUT_TOKENS: [row.tokens for row in examples.rows],
      **hint_tokens(examples.hints),
      **{
          f'{name}_{TOKENS}': unwrap(side.tokens)
          for name, side in sides.items()
      },
  }
  return [
      {'temperature': temperature, **dict(zip(columns, row, strict=True))}
      for row in zip(*columns.values(), strict=True)
  ]


def hint_tokens(
    hints: Sequence[Sequence[Sequence[int]]],
) -> dict[str, list[Any]]:
  """Return the column of hints, by its key; none if there are no hints."""
  if not any(hints):
    return {}
  return {HINT_TOKENS: [list(map(list, each)) for each in hints]}


def unwrap(decodes: list[list[Any]]) -> list[Any]:
  """Return decodes per example, single ones without their list."""
  return [each[0] if len(each) == 1 else each for each in decodes]


def best_of(decodes: str | list[str]) -> str:
  """Return the best text of an example as a row holds its decodes."""
  return decodes if isinstance(decodes, str) else decodes[-1]


def read_rows(path: epath.Path) -> list[dict[str, Any]]:
  """Read the rows of `predictions.jsonl`; see `text_files.read_rows`."""
  remedy = (
      'Correct the path, or run the job again, which writes the file from its'
      ' chunks.'
  )
  return text_files.read_rows(path, dict, 'a JSON object', remedy)


def are_tokens(decodes: Any) -> bool:
  """Return whether a value is a list of lists of token ids."""
  return isinstance(decodes, list) and all(
      isinstance(ids, list) and all(type(i) is int and i >= 0 for i in ids)
      for ids in decodes
  )


def read_pairs(
    path: epath.Path, vocabulary: vocabularies.Vocabulary | None = None
) -> list[tuple[list[int], list[int]]]:
  """Read the token ids of the input and of the output of each decode.

  The file is that of an infer job, or of an eval job, which has decoded twice:
  then these are the decodes by the target alone. A vocabulary, unless it is
  None, must be what the ids mean.
  """
  pairs, texts = [], []
  for row in read_rows(path):
    found = row.get(TOKENS, row.get(f'baseline_{TOKENS}'))
    if isinstance(found, list) and found and isinstance(found[0], int):
      found = [found]
    if not are_tokens(found):
      pairs = []
      break
    pairs += [(row.get(INPUT_TOKENS), tokens) for tokens in found]
    texts.append((found, row.get('prediction', row.get('baseline'))))
  if not pairs:
    raise ValueError(
        f'The predictions in {path} have no {TOKENS}. Decode again; the infer'
        ' job writes them if `tokens` is True.'
    )
  if vocabulary is not None and not _have_texts(texts, vocabulary):
    raise ranges.ArgumentError(
        f'The token ids in {path} have other texts in the vocabulary given than'
        ' in the file. Set vocabulary_file to that of the target.',
        vocabulary_file=vocabulary,
    )
  return pairs


def _have_texts(
    rows: Sequence[tuple[list[list[int]], Any]],
    vocabulary: vocabularies.Vocabulary,
) -> bool:
  """Return whether the decodes of most rows have the texts beside them.

  Short outputs may agree by chance, and rows of other programs have no texts.
  One that continues its input may begin with a space.
  """
  shown = lambda texts: collections.Counter(str(x).strip() for x in texts)
  agree = []
  for decodes, texts in itertools.islice(rows, _NUM_COMPARED):
    texts = [texts] if isinstance(texts, str) else texts
    if isinstance(texts, list) and any(texts):
      # Texts are ordered by score, and token ids by the number of the decode.
      agree.append(shown(map(vocabulary.decode, decodes)) == shown(texts))
  return 2 * sum(agree) >= len(agree)
