# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lines of files, and of the inputs that they become."""

import gzip

import pytest

from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import text_files

_OBJECTS = b'{"inputs": "a", "id": 7}\n{"inputs": "b"}\n'
_COMPRESSED = gzip.compress(_OBJECTS * 10**4)


@pytest.fixture(scope='module')
def vocabulary():
  return vocabularies.load(bulletins.VOCABULARY_FILE)


def _read(path, file_format=None):
  lines = text_files.read(
      [str(path)], field='inputs', file_format=file_format
  )
  return list(lines)


def _write(tmp_path, name, content):
  (tmp_path / name).write_bytes(content)
  return tmp_path / name


class TestLines:

  def test_end_with_newlines_only(self, tmp_path):
    text = 'a\u2028b\x85c\r\nd\re\n\x0cf'
    lines = _read(_write(tmp_path, 'in.txt', text.encode()))
    assert [x.text for x in lines] == ['a\u2028b\x85c', 'd\re', '\x0cf']

  @pytest.mark.parametrize(('room', 'is_truncated'), [(0, True), (1, False)])
  def test_the_end_of_sequence_counts(self, vocabulary, room, is_truncated):
    text, _ = bulletins.read_pairs('validation')[0]
    ids = vocabulary.encode(text)
    lines = [text_files.TextLine('line 1', text)]
    length = len(ids) + room
    (found,) = inputs_lib.from_lines(
        lines, vocabulary, _form(vocabulary), {'inputs': length}
    )
    assert found.tokens == [*ids[: length - 1], vocabulary.eos_id]
    assert found.is_truncated == is_truncated


def _form(vocabulary) -> inputs_form.InputsForm:
  return inputs_form.InputsForm(end=(vocabulary.eos_id,))


class TestParts:

  @pytest.fixture
  def reader(self, vocabulary, tmp_path):
    """Return a reader of lines with numbers, and the times it has begun."""
    texts = ''.join(f'{"" if i % 4 == 1 else i}\n' for i in range(20))
    path = _write(tmp_path, 'in.txt', texts.encode())
    begun = []

    def read():
      begun.append(path)
      return text_files.read([str(path)], field='inputs')

    inputs_of = lambda lines, first: inputs_lib.from_lines(
        lines,
        vocabulary,
        _form(vocabulary),
        {'inputs': 8},
        inputs_lib.SKIP,
        first,
    )
    return inputs_lib.PartReader(read, inputs_of), begun

  def test_in_order_they_are_read_once(self, reader):
    reader, begun = reader
    for first, count in (0, 3), (4, 2), (9, 5):
      part = reader.part(first, count)
      numbers = [i for i in range(first, 20) if i % 4 != 1][:count]
      assert [x.example_id for x in part] == numbers
      assert [x.text for x in part] == list(map(str, numbers))
    assert len(begun) == 1

  def test_an_earlier_one_is_read_again(self, reader):
    reader, begun = reader
    expected = reader.part(6, 4)
    assert reader.part(6, 4) == expected
    assert [x.example_id for x in reader.part(0, 1)] == [0]
    assert len(begun) == 3


class TestFormat:

  @pytest.mark.parametrize(
      'name', ['in.jsonl', 'in.JSONL', 'in.ndjson', 'in.json', 'IN.Json']
  )
  def test_names_of_json_lines(self, tmp_path, name):
    first, second = _read(_write(tmp_path, name, _OBJECTS))
    assert (first.text, first.fields, second.text) == ('a', {'id': 7}, 'b')

  def test_texts_that_look_like_json(self, tmp_path):
    """As does any later line."""
    for text in ('[1] a', '{"a": 1}', '"a"', '1', '[1, 2]', 'true'):
      lines = _read(_write(tmp_path, 'in.txt', f'{text}\n{{}}\n'.encode()))
      assert [x.text for x in lines] == [text, '{}']


# The name of a file, its content, and what the error has.
_FILES = [
    ('in.txt', b'', 'No line of the input has text'),
    ('in.txt', b'a\nb\xe9\n', 'line 2: it is not UTF-8. Convert'),
    ('in.txt', b'a\n\nb\n', 'in.txt, line 2 has no text'),
    ('in.txt.gz', _COMPRESSED, 'line 1: it is not UTF-8.*decompress'),
    ('in.jsonl', _COMPRESSED, 'line 1: it is not UTF-8.*decompress'),
    ('in.jsonl', b'{"x": 1}\n', "line 1: the field 'inputs' .* it has 'x'"),
    ('in.jsonl', b'{"%s": 1}' % (b'x' * 10**5), "line 1: the field 'inputs'"),
    ('in.jsonl', b'{"inputs": 1}\n', 'line 1: the field'),
    ('in.jsonl', b'{"inputs": "\\ud800"}\n', 'line 1: .*surrogate'),
    ('in.jsonl', b'["inputs"]\n', 'line 1: it is not a JSON object'),
    ('in.json', b'{\n "inputs": "a"}\n', 'line 1: it is not a JSON object'),
    ('in.jsonl', b'[' * 10**6, 'line 1: it is not a JSON object'),
    ('in.jsonl', b'\n{"inputs": "a"}\n', 'line 1 has no text'),
    ('in.jsonl', b'{"inputs": "a", "x": 1e999}\n', 'line 1: .*range'),
    ('in.jsonl', b'{"inputs": "a", "score": 1}\n', "line 1: .*'score'"),
]


class TestBadInput:

  @pytest.mark.parametrize(('name', 'content', 'message'), _FILES)
  def test_file(self, tmp_path, vocabulary, name, content, message):
    path = str(_write(tmp_path, name, content))
    lines = text_files.read([path], field='inputs', taken=['score'])
    with pytest.raises(ValueError, match=message) as caught:
      form = _form(vocabulary)
      list(inputs_lib.from_lines(lines, vocabulary, form, {'inputs': 8}))
    assert len(str(caught.value)) < 500 and '\n' not in str(caught.value)
    if 'line 1: ' in message:  # before a job reads weights, too
      with pytest.raises(ValueError, match=message):
        text_files.check([path], None, 'inputs', taken=['score'])
