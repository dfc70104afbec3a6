# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of files that are written as a whole, and of their lines of JSON."""

import contextlib
import json
import sys

from etils import epath
import pytest

from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import whole_files
from tests import full_disk
from tests import memory_files


class TestReplace:

  @pytest.fixture(params=['local', 'bucket'])
  def folder(self, request, tmp_path):
    with contextlib.ExitStack() as stack:
      path = tmp_path
      if request.param == 'bucket':
        stack.enter_context(memory_files.enabled())
        path = 'memory://model'
      yield epath.Path(path)

  def test_replaces(self, folder):
    whole_files.replace(folder, 'file', b'a longer text')
    path = whole_files.replace(folder, 'file', b'text')
    assert path.read_bytes() == b'text'
    assert [each.name for each in folder.iterdir()] == ['file']

  def test_full_disk(self, tmp_path):
    """The earlier file stays, and nothing beside it."""
    folder = epath.Path(tmp_path)
    path = whole_files.replace(folder, 'file', b'text')
    with full_disk.full_disk(6) as reason:
      with pytest.raises(OSError) as caught:
        whole_files.replace(folder, 'file', b'a longer text')
    assert str(caught.value).startswith(
        f'The output folder {tmp_path} cannot be written to ({reason}).'
    )
    assert path.read_bytes() == b'text'
    assert [each.name for each in tmp_path.iterdir()] == ['file']


def test_interrupted(tmp_path, monkeypatch):
  """Whole lines of a part of a file would pass for the file."""

  def lines():
    yield 'a line'
    raise KeyboardInterrupt

  folder = epath.Path(tmp_path)
  with pytest.raises(KeyboardInterrupt):
    whole_files.write(folder, 'file', lines())
  assert not list(tmp_path.iterdir())

  def interrupt(*_):
    raise KeyboardInterrupt

  whole_files.replace(folder, 'file', b'text')
  monkeypatch.setattr(whole_files.os, 'replace', interrupt)
  with pytest.raises(KeyboardInterrupt):
    whole_files.replace(folder, 'file', b'another')
  assert [each.read_text() for each in tmp_path.iterdir()] == ['text']


def test_one_line_to_every_reader():
  ends = [chr(x) for x in range(sys.maxunicode) if chr(x).isspace()]
  text = ''.join(f'a{end}\xfc' for end in ends)
  line = json_files.dumps({'text': text})
  assert line.splitlines() == [line] and json.loads(line) == {'text': text}
  assert '\xfc' in line  # all else is readable


@pytest.mark.parametrize('value', [float('nan'), float('inf'), '\ud800'])
def test_what_json_or_utf_8_lacks(value):
  with pytest.raises(ValueError):
    json_files.dumps([value])
