# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figure 1 is a page that loads nothing, and a picture of the same text."""

from html import parser

import pytest

from speculative_t5x.research.measurement import tracing
from speculative_t5x.research.paper import decoded_sentence
from speculative_t5x.research.reports import token_trace

SCRIPT = '<script>alert("&amp;")</script>'
PIECES = ['▁Die', '▁Donau', 'dampf', 'schiff', '▁', '7', '$', '_', SCRIPT, 'ü']
BLOCKS = [
    tracing.Block((0, 1, 2), 8, 3),
    tracing.Block((), 4, 5),
    tracing.Block((4, 6, 7, 8), None, 9),
    tracing.Block((8,), None, None),
]
LONG = [tracing.Block((0, 1, 2, 3) * 12, 1, 0), tracing.Block((2,) * 60, 8, 9)]


def trace(blocks=BLOCKS, sentence=None):
  return token_trace.TokenTrace(blocks, PIECES.__getitem__, sentence)


class _Reader(parser.HTMLParser):
  """What a browser would find."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.attributes, self.text = [], set(), ''
    self.feed(text)
    self.close()

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.attributes |= {name for name, _ in attrs}

  def handle_data(self, data):
    self.text += data


class TestPage:

  def test_tokens_in_order_line_by_line(self):
    lines = _Reader(decoded_sentence.page(trace())).text.splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    assert lines[-4:] == [
        f'1  ▁Die ▁Donau dampf {SCRIPT} schiff',
        '2  ▁ 7',
        f'3  ▁ $ _ {SCRIPT} ü',
        f'4  {SCRIPT}',
    ]

  @pytest.mark.parametrize('sentence', [SCRIPT, f'a "{SCRIPT}', '{code}</pre>'])
  def test_text_is_never_markup(self, sentence):
    reader = _Reader(decoded_sentence.page(trace(sentence=sentence)))
    assert f'Input: {sentence}' in reader.text
    assert set(reader.tags) == {
        'html', 'head', 'meta', 'style', 'body', 'pre', 'code', 'span'
    }  # fmt: skip


class TestDraw:

  def test_forms_differ_without_colours(self):
    blocks = [tracing.Block((0,), 1, 2)]
    (axes,) = decoded_sentence.draw(trace(blocks)).axes
    accepted, rejected, target = axes.texts[-3:]
    assert accepted.get_weight() == rejected.get_weight() == 'normal'
    assert target.get_weight() == 'bold'
    struck, underlined = axes.lines[-2:]
    for text, line in ((rejected, struck), (target, underlined)):
      assert line.get_xdata()[0] == text.get_position()[0]
    rises = [
        text.get_position()[1] - line.get_ydata()[0]
        for text, line in ((rejected, struck), (target, underlined))
    ]
    assert 1.5 < rises[0] < 3.5  # points above the baseline
    assert -2 < rises[1] < 0
