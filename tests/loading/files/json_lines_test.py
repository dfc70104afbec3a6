# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lines of JSON: one line to every reader, and nothing but JSON."""

import json
import sys

import pytest

from speculative_t5x.loading.files import json_lines


def test_one_line_to_every_reader():
  ends = [chr(x) for x in range(sys.maxunicode) if chr(x).isspace()]
  text = ''.join(f'a{end}\xfc' for end in ends)
  line = json_lines.dumps({'text': text})
  assert line.splitlines() == [line] and json.loads(line) == {'text': text}
  assert '\xfc' in line  # all else is readable


@pytest.mark.parametrize('value', [float('nan'), float('inf'), '\ud800'])
def test_what_json_or_utf_8_lacks(value):
  with pytest.raises(ValueError):
    json_lines.dumps([value])
