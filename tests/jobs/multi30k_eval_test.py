# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the eval command on checkpoints that T5X trained and decoded."""

import json
import pathlib

import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5
from tests import shared
from tests import workloads

_SHARED = shared.shared_folder()
_NUM_ORACLE = 64
_BATCH_SIZE = 16

pytestmark = pytest.mark.skipif(
    _SHARED is None or not (_SHARED / 't5x_oracle').is_dir(),
    reason='no shared folder',
)


def _eval(output, *flags):
  """Runs the command and returns its one record and its predictions."""
  oracle, data = _SHARED / 't5x_oracle', _SHARED / 'data' / 'multi30k'
  status = main.main(
      [
          'eval',
          '--gin_file=configs/runs/eval_multi30k.gin',
          f'--gin.MULTI30K_DIR={data}',
          f'--gin.CHECKPOINT_PATH={oracle / "target" / "t5x_orbax"}',
          f'--gin.DRAFT_CHECKPOINT_PATH={oracle / "draft" / "t5x_orbax"}',
          f'--gin.EVAL_OUTPUT_DIR={output}',
          f'--gin.BATCH_SIZE={_BATCH_SIZE}',
          *flags,
      ]
  )
  assert status == 0
  (record,) = workloads.read(output / 'results.jsonl')
  return record, workloads.read(output / 'predictions.jsonl')


def _texts_of_t5x():
  """Returns the texts of T5X's greedy tokens."""
  path = _SHARED / 't5x_oracle' / 'target' / 'oracle.npz'
  vocabulary = vocabularies.load(_SHARED / 'data' / 'multi30k' / 'ende4k.model')
  with np.load(path) as oracle:
    return [
        vocabulary.decode(
            batching.text_ids(ids.tolist(), t5.SPECIAL_IDS)
        )
        for ids in oracle['greedy_tokens']
    ]


def _bleu_of_t5x():
  path = pathlib.Path(_SHARED, 't5x_oracle', 'target', 'oracle.json')
  oracle = json.loads(path.read_text())
  assert oracle['num_examples'] == _NUM_ORACLE
  return oracle['greedy_bleu']


def _assert_same_outputs(record, num_examples):
  greedy = record['greedy']
  assert greedy['mismatch'] == 0
  assert greedy['near_tie'] <= 0.005 * num_examples
  assert greedy['identical'] + greedy['near_tie'] == num_examples


def test_oracle(tmp_path):
  """Texts and BLEU are those of T5X, whose agreement gives the rate."""
  record, rows = _eval(tmp_path, f'--gin.NUM_EXAMPLES={_NUM_ORACLE}')
  for side in ('baseline', 'speculative'):
    bleu = record['quality'][side]['bleu']
    assert bleu == pytest.approx(_bleu_of_t5x(), abs=0.01)
    assert [row[side] for row in rows] == _texts_of_t5x()
  _assert_same_outputs(record, _NUM_ORACLE)
  assert record['gamma'] == 5
  # 2.32 on 300 rows.
  assert record['tokens_per_target_call'] == pytest.approx(2.32, abs=0.2)


@pytest.mark.exhaustive
def test_whole_validation_split(tmp_path):
  record, predictions = _eval(tmp_path)
  assert record['num_examples'] == len(predictions) == 1014
  assert [row['example_id'] for row in predictions] == list(range(1014))
  _assert_same_outputs(record, 1014)
  texts = [row['speculative'] for row in predictions[:_NUM_ORACLE]]
  assert texts == _texts_of_t5x()
