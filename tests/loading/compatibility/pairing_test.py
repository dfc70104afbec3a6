# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the vocabularies in the folders of a pair are compared."""

import pytest
from sentencepiece import sentencepiece_model_pb2

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from tests import checkpoints_by_hand
from tests import tiny
from tests import vocabulary_files

_CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
_FILE = 'spiece.model'


def _swapped(data):
  """Return a SentencePiece model in which two ids have changed places."""
  proto = sentencepiece_model_pb2.ModelProto()
  proto.ParseFromString(data)
  one, other = proto.pieces[-2:]
  one.piece, other.piece = other.piece, one.piece
  return proto.SerializeToString()


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
  """Return models of Hugging Face, that of `bare` without a vocabulary."""
  root = tmp_path_factory.mktemp('models')
  fields = checkpoints_by_hand.hugging_face_config(_CONFIG)
  tensors = checkpoints_by_hand.hugging_face_tensors(
      _CONFIG, tiny.params(_CONFIG)
  )
  for name in ('target', 'same', 'other', 'bare'):
    checkpoints_by_hand.write_hugging_face(root / name, fields, tensors)
  data = vocabulary_files.train(root / 'target' / _FILE).read_bytes()
  (root / 'same' / _FILE).write_bytes(data)
  (root / 'other' / _FILE).write_bytes(_swapped(data))
  return root


_WAYS = {
    'path': str,
    'loaded': models.load_model,
    'in_order': lambda path: drafters.InOrder([drafters.Lookup(), str(path)]),
    'tree': lambda path: drafters.CandidateTree(path, (2,)),
}


@pytest.mark.parametrize('is_given', [False, True])
@pytest.mark.parametrize('way', _WAYS)
def test_every_way_in(folders, way, is_given):
  """The vocabulary of the target is given, or lies in its folder."""
  vocabulary = vocabularies.load(folders / 'target') if is_given else None
  target = models.find_model(
      checkpoints.open(folders / 'target'), vocabulary=vocabulary
  )
  find = lambda name: drafters.find(_WAYS[way](folders / name), target)
  assert find('same').description.name
  with pytest.raises(vocabularies.VocabularyError, match='cannot be a pair'):
    find('other')


def test_what_cannot_be_compared_is_said(folders, tmp_path, capsys):
  target = models.find_model(checkpoints.open(folders / 'target'))
  for _ in range(2):  # as for two meshes
    drafters.find(folders / 'bare', target)
  damaged = folders / 'same' / 'tokenizer.json'
  damaged.write_text('{')
  drafters.find(folders / 'same', target)
  damaged.unlink()
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 2 and all('not compared' in line for line in lines)
  assert str(folders / 'bare') in lines[0] and str(damaged) in lines[1]
  # Checkpoints of T5X have no vocabularies.
  for name in ('target', 'draft'):
    checkpoints.save(tmp_path / name, 1, tiny.params(_CONFIG))
  pairing.check_vocabularies(tmp_path / 'target', tmp_path / 'draft')
  assert not capsys.readouterr().err


def test_vocabulary_that_is_said_to_be_the_draft_s(folders):
  target = models.find_model(
      checkpoints.open(folders / 'target'),
      vocabulary=vocabularies.load(folders / 'target'),
  )
  draft = drafters.DraftModel(
      folders / 'other', vocabulary_file=folders / 'target'
  )
  assert drafters.find(draft, target).description.name
