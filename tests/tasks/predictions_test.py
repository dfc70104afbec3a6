# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of decoded texts, read from decoded batches and from files."""

import json
import types

from etils import epath
import numpy as np
import pytest
import seqio

from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import report
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5
from speculative_t5x.research import whole_batches
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import predictions
from speculative_t5x.tasks import task_vocabulary


class _Numbers:
  """A vocabulary whose texts are the ids."""

  def decode(self, ids):
    return ' '.join(map(str, ids))


def _read(
    sequences, log_probs, num_examples, num_decodes, is_search=False
):
  """Read two batches that have the same rows."""
  count = np.ones(len(sequences), np.int32)
  decoded = report.Report(
      count > 0,
      np.array(sequences),
      count,
      np.array(log_probs),
      2 * count,
      None,
      is_search=is_search,
  )
  pair = types.SimpleNamespace(
      options=options_lib.Options(num_decodes=num_decodes),
      target_model=types.SimpleNamespace(special_ids=t5.SPECIAL_IDS),
  )
  examples = whole_batches.outputs(pair, [decoded] * 2, num_examples)
  return predictions.read(examples, _Numbers(), t5.SPECIAL_IDS)


def test_decodes_of_an_example_are_sorted():
  sequences = np.arange(2, 8)[:, None]
  found = _read(sequences, [-1, -2, 0, -3, -3, -9], 3, num_decodes=3)
  assert found.texts == [['3', '2', '4'], ['7', '5', '6'], ['3', '2', '4']]
  assert found.scores.tolist() == [[-2, -1, 0], [-9, -3, -3], [-2, -1, 0]]
  assert found.counts['target_calls'].tolist() == [6, 6, 6]
  # Tokens stay in the order of the decode numbers.
  assert found.tokens[1] == [[5], [6], [7]]


@pytest.mark.parametrize('is_task', [True, False])
def test_texts_of_a_tasks_own_sentinels(tmp_path, is_task):
  """The task's file leaves them out, and the model has logits for them."""
  path = epath.Path(tmp_path) / 'predictions.jsonl'
  file = vocabularies.load(bulletins.VOCABULARY_FILE)
  task = task_vocabulary.of(
      seqio.SentencePieceVocabulary(str(bulletins.VOCABULARY_FILE))
  )
  writer, reader = (task, file) if is_task else (file, task)
  sequences = [[19, i, 5, 1] for i in range(2048, 2148)]
  rows = [{'tokens': x, 'prediction': writer.decode(x)} for x in sequences]
  path.write_text('\n'.join(map(json.dumps, rows)))
  assert [x for _, x in predictions.read_pairs(path, reader)] == sequences
