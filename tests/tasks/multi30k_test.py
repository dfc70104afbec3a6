# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the Multi30k task."""

import gzip
import pathlib
import shutil

import pytest
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import multi30k

_STEMS = ('train', 'val', 'test_2016_flickr')


def _write(path: pathlib.Path, lines: list[str]) -> None:
  path.write_bytes(gzip.compress('\n'.join([*lines, '']).encode()))


@pytest.fixture
def folder(tmp_path):
  """Return a folder of three pairs per split."""
  for stem in _STEMS:
    for lang, word in (('en', 'train'), ('de', 'Zug')):
      lines = [f'{word} {stem} {number}' for number in (1, 2, 3)]
      _write(tmp_path / f'{stem}.{lang}.gz', lines)
  shutil.copy(bulletins.VOCABULARY_FILE, tmp_path / 'ende4k.model')
  return tmp_path


class TestReadPairs:

  def test_keeps_a_separator_within_a_sentence(self, folder):
    _write(folder / 'val.en.gz', ['a\u2028b', 'c', 'd'])
    assert multi30k.read_pairs(folder, 'validation')[0][0] == 'a\u2028b'

  def test_bad_files(self, folder):
    """Files of other lengths, damaged ones, and a missing one."""
    german = folder / 'val.de.gz'
    texts = map(gzip.compress, (b'nur eine', b'\xff'))
    for data in (*texts, b'plain'):
      german.write_bytes(data)
      with pytest.raises(ValueError, match='val.en.gz and .*val.de.gz'):
        multi30k.read_pairs(folder, 'validation')
    german.unlink()
    with pytest.raises(FileNotFoundError, match='val.de.gz'):
      multi30k.read_pairs(folder, 'validation')

  def test_real_data(self, shared):
    data_dir = shared / 'data' / 'multi30k'
    counts = [len(multi30k.read_pairs(data_dir, s)) for s in multi30k.SPLITS]
    assert counts == [29_000, 1_014, 1_000]


class TestRegister:

  def _pairs(self):
    task = seqio.get_mixture_or_task(multi30k.NAME)
    dataset = task.get_dataset(
        {'inputs': 64, 'targets': 64}, 'validation', shuffle=False
    )
    return [
        tuple(x[f'{side}_pretokenized'] for side in ('inputs', 'targets'))
        for x in dataset.as_numpy_iterator()
    ]

  def test_task_of_one_folder_then_another(self, folder, tmp_path_factory):
    assert multi30k.register(folder) == 'multi30k_ende'
    assert self._pairs()[1] == (b'train val 2', b'Zug val 2')
    other = tmp_path_factory.mktemp('other')
    shutil.copytree(folder, other, dirs_exist_ok=True)
    _write(other / 'val.en.gz', ['one'])
    _write(other / 'val.de.gz', ['eins'])
    multi30k.register(other)
    assert self._pairs() == [(b'one', b'eins')]
