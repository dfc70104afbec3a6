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
from tests.shared import shared_folder

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
    texts = map(gzip.compress, (b'nur eine', b'\xff', b'eins\n \ndrei\n'))
    for data in (*texts, b'plain'):
      german.write_bytes(data)
      with pytest.raises(ValueError, match='val.en.gz and .*val.de.gz'):
        multi30k.read_pairs(folder, 'validation')
    german.unlink()
    with pytest.raises(FileNotFoundError, match='val.de.gz'):
      multi30k.read_pairs(folder, 'validation')

  def test_real_data(self):
    shared = shared_folder()
    if shared is None:
      pytest.skip('no shared test data')
    data_dir = shared / 'data' / 'multi30k'
    counts = [len(multi30k.read_pairs(data_dir, s)) for s in multi30k.SPLITS]
    assert counts == [29_000, 1_014, 1_000]


class TestRegister:

  @pytest.fixture(autouse=True)
  def _task(self):
    yield
    if multi30k.NAME in seqio.TaskRegistry.names():
      seqio.TaskRegistry.remove(multi30k.NAME)

  def _examples(self, split='validation'):
    task = seqio.get_mixture_or_task(multi30k.NAME)
    dataset = task.get_dataset(
        {'inputs': 64, 'targets': 64}, split, shuffle=False
    )
    return list(dataset.as_numpy_iterator())

  def test_task(self, folder):
    assert multi30k.register(folder) == 'multi30k_ende'
    examples = self._examples()
    vocabulary = seqio.SentencePieceVocabulary(bulletins.VOCABULARY_FILE)
    assert [e['example_id'] for e in examples] == [0, 1, 2]
    assert examples[1]['inputs_pretokenized'] == b'train val 2'
    assert examples[1]['targets_pretokenized'] == b'Zug val 2'
    for side, text in (('inputs', 'train val 2'), ('targets', 'Zug val 2')):
      expected = [*vocabulary.encode(text), 1]
      assert examples[1][side].tolist() == expected

  def test_again_with_another_folder(self, folder, tmp_path_factory):
    multi30k.register(folder)
    other = tmp_path_factory.mktemp('other')
    shutil.copytree(folder, other, dirs_exist_ok=True)
    _write(other / 'val.en.gz', ['one'])
    _write(other / 'val.de.gz', ['eins'])
    multi30k.register(other)
    (example,) = self._examples()
    assert example['targets_pretokenized'] == b'eins'

  def test_missing_vocabulary(self, folder):
    (folder / 'ende4k.model').unlink()
    for call in (multi30k.register, multi30k.load_vocabulary):
      with pytest.raises(FileNotFoundError, match='no vocabulary .*ende4k'):
        call(folder)
