# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text is released when it cannot change, and not before."""

import types

import hypothesis
from hypothesis import strategies as st
import pytest

from speculative_t5x.serving import transcripts
from tests import vocabulary_kinds
from tests.serving import stub

VOCABULARY = stub.Vocabulary()
TEXTS = st.text(st.sampled_from('abé€😀 '), max_size=12)


def read(text, sizes, by_token, is_cut):
  """Return the pieces of a text that comes in parts, and the transcript."""
  transcript = transcripts.Transcript(VOCABULARY.detokenizer(), (), by_token)
  tokens = VOCABULARY.encode(text)[: -1 if is_cut else None]
  pieces, count = [], 0
  for size in sizes:
    count = min(count + size, len(tokens))
    pieces += transcript.read(tokens[:count], has_ended=False)
  return [*pieces, *transcript.read(tokens, has_ended=True)], transcript


@hypothesis.given(
    TEXTS, st.lists(st.integers(0, 5), max_size=8), st.booleans(), st.booleans()
)
def test_pieces_are_the_text(text, sizes, by_token, is_cut):
  """However its tokens come; a part of a character may be its end."""
  pieces, transcript = read(text, sizes, by_token, is_cut)
  tokens = VOCABULARY.encode(text)[: -1 if is_cut else None]
  assert ''.join(x.text for x in pieces) == VOCABULARY.decode(tokens)
  assert [x.first for x in pieces] == [0, *(x.last + 1 for x in pieces)][:-1]
  assert transcript.num_tokens == len(tokens)
  offset = 0
  for piece in pieces:
    assert piece.offset == offset
    offset += len(piece.text)
  assert offset == transcript.size
  if not is_cut:
    assert '\ufffd' not in ''.join(x.text for x in pieces)
  if by_token:  # each character is of one piece
    assert all(len(x.text) <= 1 or is_cut for x in pieces)


def test_the_first_stop_of_a_token_ends_the_text():
  """In the text and not in the list, where one token has several."""
  texts = types.SimpleNamespace(
      add=('a', ' b or c or b').__getitem__, is_whole=True
  )
  transcript = transcripts.Transcript(texts, ['c', 'b', 'or b'])
  pieces = transcript.read([0, 1], has_ended=False)
  assert ''.join(x.text for x in pieces) == 'a '


@pytest.mark.parametrize('kind', vocabulary_kinds.ALL)
def test_one_text_of_every_kind_of_vocabulary(kind):
  vocabulary, _ = vocabulary_kinds.vocabulary(kind)
  some_ids = vocabulary_kinds.ids_of(kind)

  @hypothesis.settings(deadline=None)
  @hypothesis.given(
      some_ids,
      some_ids,
      st.lists(st.integers(1, 4), max_size=5),
      st.lists(st.sampled_from(['a', ' ', 'a\n', '\ufffd', '😀']), max_size=2),
      st.booleans(),
  )
  def check(prompt, ids, sizes, stops, by_token):
    transcript = transcripts.Transcript(
        vocabulary.detokenizer(prompt), stops, by_token
    )
    pieces, count = [], 0
    for size in sizes:
      count += size
      pieces += transcript.read(ids[:count], has_ended=False)
    pieces += transcript.read(ids, has_ended=True)
    text = vocabulary.decode(ids, prompt)
    places = [text.find(stop) for stop in stops if stop in text]
    assert transcript.is_stopped == bool(places)
    expected = text[: min(places)] if places else text
    assert ''.join(piece.text for piece in pieces) == expected
    whole = transcripts.Transcript(
        vocabulary.detokenizer(prompt), stops, by_token
    )
    parts = whole.read(ids, has_ended=True)
    assert transcript.num_tokens == whole.num_tokens
    if not by_token and not stops:
      assert len(parts) == bool(ids)

  check()


@pytest.mark.parametrize('text', ['a stop', 'a st', 'a stood', 'stop'])
def test_the_beginning_of_a_stop_is_held_back(text):
  transcript = transcripts.Transcript(VOCABULARY.detokenizer(), ['stop'])
  tokens = VOCABULARY.encode(text)
  seen = ''
  for count in range(len(tokens) + 1):
    for piece in transcript.read(tokens[:count], has_ended=False):
      seen += piece.text
    assert not any(seen.endswith('stop'[:size]) for size in (1, 2, 3, 4))
  for piece in transcript.read(tokens, has_ended=True):
    seen += piece.text
  assert seen == text.partition('stop')[0]
