# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts of ids of every kind of vocabulary, whole and one id at a time."""

import itertools

import hypothesis
from hypothesis import strategies as st
import pytest

from speculative_t5x.decoder import hints
from tests import vocabulary_kinds as kinds

BAD = '\ufffd'


@pytest.mark.parametrize('kind', kinds.ALL)
def test_texts_are_the_librarys(kind):
  found, decode = kinds.vocabulary(kind)

  @hypothesis.settings(deadline=None)
  @hypothesis.given(kinds.ids_of(kind))
  def check(ids):
    text = found.decode(ids)
    if kind == 'metaspace':
      # Which is left to what splits texts, and T5's splits off no such piece.
      ids = list(itertools.dropwhile(found.find('▁').__eq__, ids))
    library_text = decode(ids)
    assert (BAD in text) == (BAD in library_text)
    if kind == 'byte_level' or BAD not in text:
      assert text == library_text
    # Unless a character is broken, for which see below.

  check()


@pytest.mark.parametrize('kind', kinds.ALL)
def test_no_character_changes(kind):
  found, _ = kinds.vocabulary(kind)

  @hypothesis.settings(deadline=None)
  @hypothesis.given(kinds.ids_of(kind), kinds.ids_of(kind))
  def check(before, ids):
    texts, seen = found.detokenizer(before), ''
    for count, i in enumerate(ids, 1):
      seen += texts.add(i)
      whole = found.decode(ids[:count], before)
      assert whole.startswith(seen)
      assert texts.is_whole == (whole == seen)
    assert seen + texts.end() == found.decode([0, *ids, 1], before)

  check()


@pytest.mark.parametrize(
    'kind',
    [
        'byte_pieces',
        'byte_pieces_without_space',
        'spiece_with_bytes',
        'spiece_of_one_space',
    ],
)
def test_broken_characters(kind):
  """Are shown as Python shows them, and what is beside them stays."""
  found, _ = kinds.vocabulary(kind)
  a, anchor = (found.find(x) for x in ('a', '<0x41>'))
  find = lambda data: [found.find(f'<0x{byte:02X}>') for byte in data]
  emoji = find('😀'.encode())
  for ids, text in (
      ([*find(b'\n'), *emoji[:2]], 'a\n' + BAD),
      ([*emoji[:3], a, *emoji], f'a{BAD}a😀'),
      ([*emoji[2:], *find(b'\n'), *emoji[:1]], f'a{BAD}{BAD}\n{BAD}'),
  ):
    assert found.decode([a, *ids]) == text

  @hypothesis.settings(deadline=None)
  @hypothesis.given(st.binary(max_size=8))
  def check(data):
    text = found.decode(find(data), [anchor])
    assert text == data.decode(errors='replace')

  check()


@pytest.mark.parametrize(
    'kind, word, alone',
    [
        *((kind, '▁walks', 'walks') for kind in kinds.SPIECES),
        ('metaspace', '▁a', 'a'),
        ('byte_pieces', '▁a', 'a'),
        ('byte_pieces_without_space', '▁a', ' a'),
        ('byte_level', 'Ġa', ' a'),
        ('word_pieces', 'a', 'a'),
        ('ends_of_words', 'a', 'a'),
        ('words', 'a', 'a'),
    ],
)
def test_space_before_the_first_word(kind, word, alone):
  """Is a part of a text that continues another one."""
  found, decode = kinds.vocabulary(kind)
  i = found.find(word)
  end_of_word = found.find('a</w>') or i
  assert found.decode([i]) == found.decode([i], [1, 0]) == alone
  prompt = [i, end_of_word]
  continued = decode([*prompt, i]).removeprefix(decode(prompt))
  assert continued == f' {alone.strip()}'
  assert found.decode([i], [*prompt, 1]) == continued


@pytest.mark.parametrize(
    'kind, word',
    [
        *((kind, '▁walks') for kind in kinds.SPIECES),
        ('byte_pieces', '▁a'),
        ('byte_pieces_without_space', '▁a'),
        ('byte_level', 'Ġa'),
    ],
)
def test_a_completion_is_a_hint_of_its_tokens(kind, word):
  found, _ = kinds.vocabulary(kind)
  ids = [found.find(word)] * 2
  text = found.decode(ids, ids)
  assert hints.encode(text, found) == [[*ids, found.eos_id]]
