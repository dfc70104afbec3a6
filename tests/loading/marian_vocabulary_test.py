# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Marian's vocabulary, compared with SentencePiece."""

import json
import pathlib
import shutil

import hypothesis
from hypothesis import strategies as st
import pytest
import sentencepiece

import speculative_t5x
from speculative_t5x.loading import vocabularies

BULLETINS = (
    pathlib.Path(speculative_t5x.__file__).parent
    / 'tasks/bulletins/bulletins.model'
)
PROCESSOR = sentencepiece.SentencePieceProcessor(model_file=str(BULLETINS))
TEXT = 'The train from Bonn will be 20 minutes late.'


def write(folder, without=()):
  """Write files of one SentencePiece model, whose ids are others."""
  for name in ('source.spm', 'target.spm'):
    shutil.copy(BULLETINS, folder / name)
  pieces = map(PROCESSOR.id_to_piece, range(PROCESSOR.get_piece_size()))
  special = ['</s>', '<unk>', '<pad>']
  others = [x for x in pieces if x not in special][::-1]
  names = [*special[:2], *others, '>>deu<<', special[2]]
  ids = {x: i for i, x in enumerate(names) if x not in without}
  (folder / 'vocab.json').write_text(json.dumps(ids))
  return ids


def test_ids_and_texts(tmp_path):
  ids = write(tmp_path)
  vocabulary = vocabularies.load(tmp_path)
  pieces = PROCESSOR.encode(TEXT, out_type=str)
  found = vocabulary.encode(TEXT)
  assert found == [ids[x] for x in pieces]
  assert vocabulary.decode([*found, ids['</s>'], ids['<pad>']]) == TEXT
  assert vocabulary.encode(f'>>deu<<{TEXT}') == [ids['>>deu<<'], *found]
  assert vocabulary.encode('>>deu') == [
      ids.get(x, ids['<unk>']) for x in PROCESSOR.encode('>>deu', out_type=str)
  ]
  assert (vocabulary.eos_id, vocabulary.unk_id) == (0, 1)
  assert vocabulary.pad_id == vocabulary.num_ids - 1 == len(ids) - 1
  assert vocabulary.knows(TEXT, found)
  assert vocabulary.begin_ids == ()
  assert vocabularies.digest(vocabulary)  # of the files' contents


def test_texts_are_the_librarys_without_spaces_around(tmp_path):
  """Which a stream holds back until a word follows."""
  ids = write(tmp_path)
  vocabulary = vocabularies.load(tmp_path)
  some = ['▁', '▁The', '.', 'l', '<unk>', '▁>>', '>>deu<<', '</s>']

  @hypothesis.settings(deadline=None)
  @hypothesis.given(st.lists(st.sampled_from(some), max_size=8))
  def check(pieces):
    found = [ids.get(x, ids['<unk>']) for x in pieces]
    shown = [x if x in ids else '<unk>' for x in pieces if x != '</s>']
    expected = PROCESSOR.decode_pieces(shown).strip()
    assert vocabulary.decode(found) == expected
    texts, seen = vocabulary.detokenizer(), ''
    for i in found:
      seen += texts.add(i)
      assert seen == seen.strip() and expected.startswith(seen)
    assert seen + texts.end() == expected

  check()


def test_pieces_without_an_id(tmp_path):
  """A model may split a text into pieces that the other file lacks."""
  lost = PROCESSOR.encode(TEXT, out_type=str)[1]
  ids = write(tmp_path, without=[lost])
  vocabulary = vocabularies.load(tmp_path / 'source.spm')
  found = vocabulary.encode(TEXT)
  assert found[1] == vocabulary.unk_id
  assert not vocabulary.knows(TEXT, found)
  assert '⁇' in vocabulary.decode(found)
  assert vocabulary.id_to_piece(len(ids) + 7) == f'<id {len(ids) + 7}>'


@pytest.mark.parametrize('name', ['target.spm', 'vocab.json', '<pad>'])
def test_missing_files_and_tokens(tmp_path, name):
  write(tmp_path, without=[name])
  (tmp_path / name).unlink(missing_ok=True)
  with pytest.raises(vocabularies.VocabularyError, match=name):
    vocabularies.load(tmp_path)
