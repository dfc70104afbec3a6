# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figure 1 is a page that loads nothing, and a picture of the same text."""

from html import parser
import io
import re

from matplotlib import colors
from matplotlib import patches
from matplotlib.backends import backend_agg
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

  def test_loads_nothing(self):
    text = decoded_sentence.page(trace(sentence='no link'))
    assert not {'src', 'href', 'onload'} & _Reader(text).attributes
    assert not re.search(r'url\(|@import|//', text)

  def test_forms_differ_without_colours(self):
    text = decoded_sentence.page(trace())
    rules = re.findall(r'^\.r\d \{(.*)\}$', text, re.MULTILINE)
    assert len(rules) == 3
    decorations = [re.findall('text-decoration: ([a-z-]+)', r) for r in rules]
    assert decorations == [[], ['line-through'], ['underline']]

  def test_encoding_is_named(self):
    assert '<meta charset="UTF-8">' in decoded_sentence.page(trace())


def _texts(figure):
  (axes,) = figure.axes
  return [text.get_text().strip() for text in axes.texts]


class TestDraw:

  def test_words_in_order(self):
    words = ' '.join(_texts(decoded_sentence.draw(trace(sentence='A $x$.'))))
    assert words.startswith('Input: A $x$. accepted draft token ,')
    assert words.endswith(f'3 ▁ $ _ {SCRIPT} ü 4 {SCRIPT}')

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

  @pytest.mark.parametrize('sentence', [None, 'A long input. ' * 30])
  def test_fits_the_page_and_its_grounds(self, sentence):
    figure = decoded_sentence.draw(trace(LONG, sentence))
    (axes,) = figure.axes
    renderer = backend_agg.FigureCanvasAgg(figure).get_renderer()
    width, height = figure.get_size_inches() * figure.dpi
    grounds = [
        patch.get_window_extent(renderer)
        for patch in axes.patches
        if isinstance(patch, patches.Rectangle)
    ]
    for text in axes.texts:
      box = text.get_window_extent(renderer)
      assert 0 <= box.x0 and box.x1 <= width
      assert 0 <= box.y0 and box.y1 <= height
    for one, next_one in zip(grounds, grounds[1:]):
      is_same_line = one.y0 == next_one.y0
      assert not is_same_line or one.x1 < next_one.x0

  def test_fits_a_page(self):
    short, long = map(decoded_sentence.draw, (trace(), trace(BLOCKS * 3)))
    assert short.get_figwidth() == long.get_figwidth() == 6.75
    assert long.get_figheight() > short.get_figheight()

  @pytest.mark.parametrize('form', ['png', 'pdf', 'svg'])
  @pytest.mark.parametrize('blocks', [BLOCKS, []])
  def test_is_written(self, form, blocks):
    file = io.BytesIO()
    figure = decoded_sentence.draw(trace(blocks, r'No $\frac$ here.'))
    figure.savefig(file, format=form)
    assert file.getvalue()

  def test_can_be_read_in_grey(self):
    for style in (
        token_trace.ACCEPTED, token_trace.REJECTED, token_trace.FROM_TARGET
    ):  # fmt: skip
      text, ground = style.color.triplet.hex, style.bgcolor.triplet.hex
      assert _contrast(text, ground) >= 4.5


def _luminance(color):
  """Relative luminance, of WCAG 2."""
  linear = [
      x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
      for x in colors.to_rgb(color)
  ]
  return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear))


def _contrast(first, second):
  low, high = sorted((_luminance(first), _luminance(second)))
  return (high + 0.05) / (low + 0.05)
