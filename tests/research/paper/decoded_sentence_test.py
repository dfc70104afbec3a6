# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figure 1 is a page that loads nothing, and a picture of the same text."""

import html
import re

import pytest

from speculative_t5x.research.paper import decoded_sentence
from speculative_t5x.research.reports import token_trace

SCRIPT = '<script>alert("&amp;")</script>'
PIECES = ['▁Die', '▁Donau', 'dampf', '$', SCRIPT]
BLOCKS = [token_trace.Block((0, 1), 4, 2), token_trace.Block((3,), None, None)]


def trace(blocks=BLOCKS, sentence=None):
  return token_trace.TokenTrace(blocks, PIECES.__getitem__, sentence)


@pytest.mark.parametrize('sentence', [SCRIPT, f'a "{SCRIPT}', '{code}</pre>'])
def test_text_is_never_markup(sentence):
  page = decoded_sentence.page(trace(sentence=sentence))
  tags = set(re.findall(r'<(\w+)', page))
  assert tags <= {
      'html', 'head', 'meta', 'style', 'body', 'pre', 'code', 'span'
  }  # fmt: skip
  lines = html.unescape(re.sub('<.*?>', '', page)).splitlines()
  lines = [line.strip() for line in lines if line.strip()]
  assert f'Input: {sentence}' in lines
  assert lines[-2:] == [f'1  ▁Die ▁Donau {SCRIPT} dampf', '2  $']
