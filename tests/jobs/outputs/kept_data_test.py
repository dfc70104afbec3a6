# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the digests of data that are kept beside checkpoints."""

import numpy as np
import pytest

from speculative_t5x.jobs.outputs import kept_data

_TEXTS, _OTHERS = np.arange(12).reshape(3, 4), np.ones((2, 2))


def _check(folder, texts=_TEXTS, others=_OTHERS):
  data = {'texts': [texts, texts.ravel()[:4]], 'others': [others]}
  kept_data.check(folder, data)


def _begin(folder):
  _check(folder)
  (folder / 'checkpoint_5').mkdir()


def test_the_same_data_resumes(tmp_path):
  _begin(tmp_path)
  _check(tmp_path, np.array(_TEXTS, order='F'))


@pytest.mark.parametrize(
    'texts',
    [_TEXTS + 1, _TEXTS.reshape(4, 3), _TEXTS[:2], _TEXTS.astype(np.int16)],
    ids=['values', 'shape', 'number', 'type'],
)
def test_other_data_is_refused(tmp_path, texts):
  _begin(tmp_path)
  with pytest.raises(ValueError, match='has a training with other texts: a'):
    _check(tmp_path, texts)
  with pytest.raises(ValueError, match='other texts and others: a'):
    _check(tmp_path, texts, _OTHERS + 1)
  _check(tmp_path)  # what was kept stays
  (tmp_path / 'data.json').unlink()
  _check(tmp_path, texts)


def test_without_a_checkpoint_any_data_begins(tmp_path):
  _check(tmp_path)
  _check(tmp_path, _TEXTS + 1)
  (tmp_path / 'checkpoint_5').mkdir()
  with pytest.raises(ValueError, match='other texts'):
    _check(tmp_path)


def test_training_that_kept_no_digests_resumes(tmp_path):
  (tmp_path / 'checkpoint_5').mkdir()
  _check(tmp_path)


def test_damaged_file(tmp_path):
  _begin(tmp_path)
  (tmp_path / 'data.json').write_text('{')
  with pytest.raises(ValueError, match='data.json is damaged .* Remove it'):
    _check(tmp_path)
