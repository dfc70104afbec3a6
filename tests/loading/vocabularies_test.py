# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of vocabularies of both kinds: reading, comparing and refusing."""

import dataclasses
import itertools
import json
import pathlib
import shutil

import numpy as np
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import seqio
import tokenizers
from tokenizers import decoders
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import processors

import speculative_t5x
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import task_vocabulary
from tests import vocabulary_files

BULLETINS = (
    pathlib.Path(speculative_t5x.__file__).parent
    / 'tasks/bulletins/bulletins.model'
)
SENTENCES = (
    'Der Zug nach Köln fährt um 14:35 Uhr.',
    'The train from Bonn will be 20 minutes late.',
    'ÄÖÜ äöü ß 0123456789',
    '  two  spaces   here ',
    'half ½, ﬁ and\ttabs',
    '漢字 and an emoji 😀',
    ' ',
    '',
)


def convert(model_file, path, num_sentinels=0):
  """Write a SentencePiece model as a tokenizer.json; return the file."""
  proto = sentencepiece_model_pb2.ModelProto()
  proto.ParseFromString(model_file.read_bytes())
  tokenizer = tokenizers.Tokenizer(
      models.Unigram(
          [(piece.piece, piece.score) for piece in proto.pieces],
          proto.trainer_spec.unk_id,
      )
  )
  charsmap = proto.normalizer_spec.precompiled_charsmap
  tokenizer.normalizer = normalizers.Sequence(
      [
          *([normalizers.Precompiled(charsmap)] if charsmap else []),
          normalizers.Strip(),
          normalizers.Replace(tokenizers.Regex(' {2,}'), ' '),
      ]
  )
  tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme='always')
  tokenizer.decoder = decoders.Metaspace(prepend_scheme='always')
  unknown = proto.pieces[proto.trainer_spec.unk_id].piece
  tokenizer.add_special_tokens(['<pad>', '</s>', unknown])
  tokenizer.add_special_tokens(
      [f'<extra_id_{i}>' for i in reversed(range(num_sentinels))]
  )
  end = tokenizer.token_to_id('</s>')
  tokenizer.post_processor = processors.TemplateProcessing(
      single=['$A', '</s>'], special_tokens=[('</s>', end)]
  )
  tokenizer.enable_truncation(3)
  tokenizer.enable_padding(length=8)
  path.parent.mkdir(exist_ok=True)
  path.write_text(tokenizer.to_str())
  return path


@pytest.fixture
def spiece(tmp_path):
  return vocabulary_files.train(tmp_path / 'spiece.model')


class TestSpecialTokens:

  @pytest.mark.parametrize(
      'name, fields, expected',
      [
          (None, {}, (3, 2)),
          # MADLAD-400 pads with the beginning of sequence.
          ('tokenizer_config.json', {'pad_token': '<s>'}, (1, 2)),
          (
              'special_tokens_map.json',
              {'pad_token': {'content': '<s>', 'lstrip': True}},
              (1, 2),
          ),
      ],
  )
  def test_sentencepiece(self, tmp_path, name, fields, expected):
    path = vocabulary_files.train(
        tmp_path / 'a.model', eos_id=2, unk_id=0, bos_id=1,
        pad_id=-1 if name else 3,
    )  # fmt: skip
    if name:
      (tmp_path / name).write_text(json.dumps(fields))
    vocabulary = vocabularies.load(path)
    assert (vocabulary.pad_id, vocabulary.eos_id) == expected

  def test_tokenizer(self, tmp_path):
    path = convert(BULLETINS, tmp_path / 'tokenizer.json')
    fields = {'eos_token': '<pad>', 'pad_token': {'content': '</s>'}}
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps(fields))
    vocabulary = vocabularies.load(path)
    assert (vocabulary.pad_id, vocabulary.eos_id) == (1, 0)

  @pytest.mark.parametrize('adds', [True, False])
  def test_beginning_of_texts(self, tmp_path, adds):
    """A SentencePiece model's by its config, a tokenizer's by its processor."""
    spiece = vocabulary_files.train(tmp_path / 'a.model', bos_id=3)
    file = tmp_path / 'tokenizer_config.json'
    file.write_text(json.dumps({'add_bos_token': adds}))
    expected = (3,) if adds else ()
    assert vocabularies.load(spiece).begin_ids == expected
    path = tmp_path / 'other/tokenizer.json'
    convert(BULLETINS, path)
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    begin = '<unk> ' if adds else ''
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{begin}$A </s>', special_tokens=[('<unk>', 2), ('</s>', 1)]
    )
    path.write_text(tokenizer.to_str())
    assert vocabularies.load(path).begin_ids == ((2,) if adds else ())

  def test_special_tokens_without_logits(self, tmp_path):
    """As an image's, of which a model of text alone knows nothing."""
    words = {'<pad>': 0, '</s>': 1, 'a': 2}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token='a'))
    tokenizer.add_special_tokens(['<image>'])
    path = tmp_path / 'tokenizer.json'
    path.write_text(tokenizer.to_str())
    vocabulary = vocabularies.load(path)
    assert vocabulary.within(4) is vocabulary
    assert vocabulary.within(3).num_ids == vocabulary.within(3).num_pieces == 3
    with pytest.raises(ValueError, match='<image>'):
      vocabulary.within(3).encode('<image>')
    assert vocabulary.within(2) is vocabulary  # 'a' is a word


class TestTokenizer:

  def test_encodes_like_the_original_model(self, tmp_path):
    one = vocabularies.load(BULLETINS)
    other = vocabularies.load(convert(BULLETINS, tmp_path / 'tokenizer.json'))
    for text in SENTENCES:
      ids = one.encode(text)
      assert other.encode(text) == ids
      if 2 not in ids:  # unknown pieces differ
        assert other.decode(ids) == one.decode(ids)
        assert other.decode([*ids, 1, 0]) == one.decode([*ids, 1, 0])


NUM_SENTINELS = 100


def from_spiece(folder):
  return vocabularies.load(shutil.copy(BULLETINS, folder / 'spiece.model'))


def from_tokenizer(folder):
  convert(BULLETINS, folder / 'tokenizer.json', NUM_SENTINELS)
  return vocabularies.load(folder)


def from_both(folder):
  """T5's public folders hold both files."""
  shutil.copy(BULLETINS, folder / 'spiece.model')
  return from_tokenizer(folder)


def with_its_own(folder):
  """mT5's spiece.model holds the sentinels."""
  path = folder / 'spiece.model'
  return vocabularies.load(vocabulary_files.with_sentinels(BULLETINS, path))


def from_task(folder):
  return task_vocabulary.of(
      seqio.SentencePieceVocabulary(str(BULLETINS), extra_ids=NUM_SENTINELS)
  )


def from_task_of_t5x(folder):
  """Return the file that T5X's models name, which holds the sentinels."""
  file = str(with_its_own(folder).path)
  return task_vocabulary.of(seqio.SentencePieceVocabulary(file))


def from_task_without_sentinels(folder):
  """Tasks of this package name T5's own file, which leaves them out."""
  del folder
  file = str(BULLETINS)
  return task_vocabulary.of(seqio.SentencePieceVocabulary(file))


def within_fewer_logits(folder):
  return from_spiece(folder).within(2100)


KINDS = (
    from_spiece,
    from_tokenizer,
    from_both,
    with_its_own,
    from_task,
    from_task_of_t5x,
)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def any_kind(request, tmp_path):
  return request.param(tmp_path)


class TestAllKinds:
  """2,048 pieces and T5's 100 sentinels, however they are read."""

  def test_facts(self, any_kind):
    assert (any_kind.num_pieces, any_kind.num_ids) == (2048, 2148)
    assert (any_kind.pad_id, any_kind.eos_id, any_kind.unk_id) == (0, 1, 2)
    assert any_kind.within(2148) is any_kind

  def test_sentinels_are_counted_down_from_the_end(self, any_kind):
    text = 'The <extra_id_0> walks <extra_id_99>'
    ids = any_kind.encode(text)
    assert ids == [19, 2147, 5, 2034, 2044, 2041, 2031, 2043, 2048]
    assert any_kind.decode([*ids, 1]).replace('<', ' <').split() == text.split()
    assert any_kind.id_to_piece(2147).removeprefix('▁') == '<extra_id_0>'

  def test_ids_without_a_piece(self, any_kind):
    assert any_kind.id_to_piece(2148) == '<id 2148>'
    assert any_kind.decode([2]) == ' ⁇ '
    assert any_kind.decode([19, 3000]) == any_kind.decode([19, 2])

  @pytest.mark.parametrize(
      'kind', [*KINDS, from_task_without_sentinels, within_fewer_logits]
  )
  def test_one_text_per_id(self, tmp_path, kind):
    """Alone, and between words, whichever way the vocabulary was read."""
    found = kind(tmp_path)
    expected = sentencepiece.SentencePieceProcessor(
        model_file=str(vocabulary_files.with_sentinels(
            BULLETINS, tmp_path / 'with_sentinels.model'
        ))
    )
    known = lambda ids: [i if i < 2148 else 2 for i in ids]
    for i in (*range(100), *range(100, 2000, 9), *range(2000, 2200)):
      for ids in ([i], [i, 1], [19, i, 5, 19], [i, i, 0], [2147, i, 2, 2034]):
        assert found.decode(ids) == expected.decode(known(ids)), ids

  @pytest.mark.parametrize(
      'text, is_known',
      [
          ('The <extra_id_0> walks', True),
          ('The <extra_id_100> walks', False),
          ('The 漢 walks', False),
      ],
  )
  def test_unknown_text(self, any_kind, text, is_known):
    assert any_kind.knows(text, any_kind.encode(text)) == is_known

  def test_known_and_unknown_control_tokens(self, tmp_path):
    """MADLAD-400 has <2de>, and pieces of which <2yue> can be made."""
    path = vocabulary_files.train(
        tmp_path / 'a.model', text='<2yue>', user_defined_symbols=['<2de>']
    )
    vocabulary = vocabularies.load(path)
    for text, is_known in (('<2de> a man', True), ('<2yue> a man', False)):
      ids = vocabulary.encode(text)
      assert vocabulary.unk_id not in ids
      assert vocabulary.knows(text, ids) == is_known

  def test_are_the_same(self, tmp_path):
    kinds = []
    for kind in (*KINDS, from_task_without_sentinels, within_fewer_logits):
      (tmp_path / kind.__name__).mkdir()
      kinds.append(kind(tmp_path / kind.__name__))
    for one, other in itertools.permutations(kinds, 2):
      vocabularies.check_same(one, other)
    assert len({vocabularies.fingerprint(x) for x in kinds}) == 1

  def test_seqio_vocabularies_are_equal_by_content(self, tmp_path):
    """T5X's models and the t5 package's tasks name different files."""
    of_model = seqio.SentencePieceVocabulary(str(with_its_own(tmp_path).path))
    of_task = seqio.SentencePieceVocabulary(str(BULLETINS), NUM_SENTINELS)
    other = seqio.SentencePieceVocabulary(
        str(vocabulary_files.train(tmp_path / 'a.model')), NUM_SENTINELS
    )
    assert of_task != of_model
    for one, another in itertools.permutations((of_model, of_task)):
      found = task_vocabulary.by_content(one)
      assert another == found and found == another and not another != found
      assert other != found and found != other
      assert found != seqio.ByteVocabulary()
      assert found.encode(SENTENCES[0]) == another.encode(SENTENCES[0])

  def test_bytes(self):
    """ByT5's vocabulary has ids and no pieces."""
    vocabulary = task_vocabulary.of(seqio.ByteVocabulary(125))
    assert (vocabulary.num_pieces, vocabulary.num_ids) == (259, 384)
    ids = vocabulary.encode('aä')
    assert vocabulary.decode([*ids, 383, 400]) == 'aä'
    shown = [vocabulary.id_to_piece(i) for i in (0, 1, *ids, 383, 384)]
    assert shown == [
        '<pad>', '</s>', 'a', '<id 198>', '<id 167>', '<extra_id_124>',
        '<id 384>',
    ]  # fmt: skip
    for text, is_known in (('aä', True), ('<extra_id_0>', False)):
      assert vocabulary.knows(text, vocabulary.encode(text)) == is_known
    vocabularies.check_same(vocabulary, vocabulary)


class TestBytes:
  """ByT5's vocabulary, which is in no file."""

  def texts(self):
    generator = np.random.default_rng(0)
    bounds = 0x80, 0x800, 0xD800, 0x110000
    for _ in range(200):
      points = generator.integers(0, generator.choice(bounds), 12)
      yield ''.join(chr(i) for i in points if not 0xD800 <= i < 0xE000)

  def test_ids_and_texts_are_seqios(self):
    found = vocabularies.load('bytes')
    seqios = seqio.ByteVocabulary(extra_ids=125)
    assert found.num_ids == seqios.vocab_size == 384
    for text in self.texts():
      ids = found.encode(text)
      assert ids == list(seqios.encode(text))
      assert found.decode(ids) == text

  def test_outputs_that_are_not_utf8(self):
    found = vocabularies.load('bytes')
    seqios = seqio.ByteVocabulary(extra_ids=125)
    generator = np.random.default_rng(1)
    for _ in range(200):
      ids = generator.integers(0, 400, 40)
      without_end = ids[ids != found.eos_id].tolist()
      assert found.decode(ids) == seqios.decode(without_end)
    euro = found.encode('€')
    assert found.decode([*euro[:2], *found.encode('a')]) == 'a'
    assert found.decode([euro[0], 300, *euro[1:], 1, 0]) == '€'

  @pytest.mark.parametrize('name', ['tokenizer_config.json', 'config.json'])
  def test_folder_that_names_the_tokenizer(self, tmp_path, name):
    assert vocabularies.load_any(tmp_path) is None
    (tmp_path / name).write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    (tmp_path / 'added_tokens.json').write_text('{"<extra_id_6>": 265}')
    assert vocabularies.load(tmp_path).encode('a') == [100]
    (tmp_path / 'added_tokens.json').write_text('{"<new>": 266}')
    with pytest.raises(vocabularies.VocabularyError, match='<new>'):
      vocabularies.load(tmp_path)


class TestSentinels:

  @pytest.mark.parametrize('count', [0, 5])
  def test_number_named_by_a_config(self, spiece, count):
    (spiece.parent / 'tokenizer_config.json').write_text(
        json.dumps({'extra_ids': count})
    )
    vocabulary = vocabularies.load(spiece)
    assert vocabulary.num_ids == vocabulary.num_pieces + count
    is_one = len(vocabulary.encode('<extra_id_4>')) == 1
    assert is_one == (count == 5)

  def test_model_without_logits_for_them(self, spiece):
    vocabulary = vocabularies.load(spiece)
    narrow = vocabulary.within(vocabulary.num_ids - 1)
    assert narrow.num_ids == narrow.num_pieces == vocabulary.num_pieces
    text = 'a <extra_id_0> man'
    assert max(narrow.encode(text)) < narrow.num_ids
    assert not narrow.knows(text, narrow.encode(text))
    assert max(vocabulary.encode(text)) == vocabulary.num_ids - 1


class TestAddedTokens:

  def test_tokenizer_json_counts_before_spiece_model(self, tmp_path):
    """Fine-tuning adds tokens to it alone."""
    path = convert(BULLETINS, tmp_path / 'tokenizer.json', NUM_SENTINELS)
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.add_tokens(['<new>'])
    path.write_text(tokenizer.to_str())
    shutil.copy(BULLETINS, tmp_path / 'spiece.model')
    vocabulary = vocabularies.load(tmp_path)
    assert vocabulary.path == path
    assert vocabulary.encode('<new> Zug') == [2148, 1177]
    assert vocabulary.decode([2148, 1177]) == '<new> Zug'

  @pytest.mark.parametrize(
      'name, listed',
      [
          ('added_tokens.json', lambda x, i: {x: i}),
          (
              'tokenizer_config.json',
              lambda x, i: {'added_tokens_decoder': {i: {'content': x}}},
          ),
          *itertools.product(
              ('special_tokens_map.json',),
              (
                  lambda x, _: {'extra_special_tokens': [x]},
                  lambda x, _: {'extra_special_tokens': {'sep_token': x}},
                  lambda x, _: {'additional_special_tokens': [{'content': x}]},
                  lambda x, _: {'model_specific_special_tokens': {'a': x}},
                  lambda x, _: {'sep_token': x},
              ),
          ),
      ],
  )
  @pytest.mark.parametrize('kind', KINDS[:2], ids=lambda kind: kind.__name__)
  def test_missing_in_the_file(self, tmp_path, kind, name, listed):
    """In every place where transformers 5.24 finds tokens, and adds them."""
    path = kind(tmp_path).path
    for token, i in (('<extra_id_0>', 2147), ('<unk>', 2)):
      (tmp_path / name).write_text(json.dumps(listed(token, i)))
      vocabularies.load(path)
    (tmp_path / name).write_text(json.dumps(listed('[SEP]', 2148)))
    match = rf"{name} adds the token '\[SEP\]', which {path} lacks"
    with pytest.raises(vocabularies.VocabularyError, match=match):
      vocabularies.load(path)


class TestRefused:

  def refuse(self, path, match):
    with pytest.raises(vocabularies.VocabularyError, match=match) as error:
      vocabularies.load(path)
    assert len(str(error.value).splitlines()) == 1
    assert str(path) in str(error.value)

  @pytest.mark.parametrize(
      'name, content',
      [
          ('', None), ('no.model', None), ('vocab.txt', b'a'), ('a.model', b''),
          ('a.model', b'no model'), ('tokenizer.json', b'{"model": 1}'),
      ],
  )  # fmt: skip
  def test_files(self, tmp_path, name, content):
    if content is not None:
      (tmp_path / name).write_bytes(content)
    self.refuse(tmp_path / name, name or 'no vocabulary at')

  def test_no_end_of_sequence(self, tmp_path):
    match = 'no eos_token'
    path = vocabulary_files.train(tmp_path / 'a.model', eos_id=-1, unk_id=3)
    self.refuse(path, match)
    model = models.WordLevel({'<pad>': 0, 'a': 1}, unk_token='a')
    path = tmp_path / 'tokenizer.json'
    path.write_text(tokenizers.Tokenizer(model).to_str())
    self.refuse(path, match)

  @pytest.mark.parametrize(
      'text, match',
      [
          ('[]', 'JSON'),
          ('{"eos_token": "<end>"}', "no eos_token, which is named '<end>'"),
          ('{"added_tokens_decoder": [7]}', 'tokenizer_config'),
          ('{"added_tokens_decoder": {"-1": {"content": "a"}}}', 'as id -1'),
          ('{"add_bos_token": true, "x_token": 7}', "the token '7'"),
      ],
  )
  def test_damaged_configs(self, spiece, text, match):
    file = spiece.parent / 'tokenizer_config.json'
    file.write_text(text)
    with pytest.raises(vocabularies.VocabularyError, match=match) as error:
      vocabularies.load(spiece)
    assert file.name in str(error.value)


@dataclasses.dataclass
class Listed(vocabularies.Vocabulary):
  """A vocabulary of given pieces."""

  pieces: list[str]
  pad_id: int = 0
  eos_id: int = 1
  _encode = token_bytes = None

  @property
  def num_ids(self):
    return len(self.pieces)

  def id_to_piece(self, i):
    return self.pieces[i]


class TestCheckSame:

  def test_other_sentinels(self, spiece, tmp_path):
    """With another number of them, the last ids mean others."""
    paths = [tmp_path / str(i) / 'tokenizer.json' for i in (100, 101)]
    for path in paths:
      convert(spiece, path, num_sentinels=int(path.parent.name))
    one, other = map(vocabularies.load, paths)
    with pytest.raises(vocabularies.VocabularyError, match='<extra_id_100>'):
      vocabularies.check_same(one, other)
    silent = vocabularies.load(spiece)  # says nothing of them
    vocabularies.check_same(silent, other)
    vocabularies.check_same(other, silent)

  @pytest.mark.parametrize(
      'changes, match',
      [
          ({'pad_id': 3}, "pad_id 0, the draft's 3"),
          ({'eos_id': 3}, "eos_id 1, the draft's 3"),
          ({'pieces': ['<pad>', '</s>', 'a', 'c']}, "'b' for id 3, .*'c'"),
          ({'pieces': ['<pad>', '</s>', '▁a', 'b']}, "'a' for id 2"),
          ({'pieces': ['<pad>', '</s>', 'a', 'b', 'c']}, '4 pieces, the .* 5'),
      ],
  )
  def test_differences(self, changes, match):
    one = Listed(['<pad>', '</s>', 'a', 'b'])
    with pytest.raises(vocabularies.VocabularyError, match=match):
      vocabularies.check_same(one, dataclasses.replace(one, **changes))

  @pytest.mark.parametrize(
      'changes',
      [
          {'pieces': ['<pad>', '</s>', 'a', 'b', '<|im_end|>'], 'eos_id': 4},
          {'pieces': ['<pad>', '</s>', 'a', '<id 3>'], 'pad_id': -1},
      ],
  )
  def test_a_chat_and_its_base_have_the_same_pieces(self, changes):
    one = Listed(['<pad>', '</s>', 'a', 'b'])
    vocabularies.check_pieces(dataclasses.replace(one, **changes), one)
    vocabularies.check_pieces(one, dataclasses.replace(one, **changes))
    other = dataclasses.replace(one, pieces=['<pad>', '</s>', 'b', 'a'])
    with pytest.raises(vocabularies.VocabularyError, match="'a' for id 2"):
      vocabularies.check_pieces(one, other)

  def test_later_names_of_reserved_tokens(self, monkeypatch):
    """Of two special tokens for an id."""
    pieces = ['<pad>', '</s>', '<|reserved|>', 'b']
    one, other = Listed(pieces), Listed([*pieces[:2], '<|eom_id|>', 'b'])
    with pytest.raises(vocabularies.VocabularyError, match='for id 2'):
      vocabularies.check_pieces(one, other)
    monkeypatch.setattr(Listed, 'special_tokens', lambda _: {'any': 2})
    vocabularies.check_pieces(one, other)
