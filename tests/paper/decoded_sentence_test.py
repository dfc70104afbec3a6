# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the page and the picture of a decoded sentence."""

from html import parser
import io
import re

from matplotlib import colors
from matplotlib.backends import backend_agg
import pytest

from speculative_t5x import tracing
from speculative_t5x.paper import decoded_sentence

SCRIPT = '<script>alert("&amp;")</script>'
PIECES = ['▁Die', '▁Donau', 'dampf', 'schiff', '▁', '7', '$', '_', SCRIPT, 'ü']
BLOCKS = [
    tracing.Block((0, 1, 2), 8, 3),
    tracing.Block((), 4, 5),
    tracing.Block((4, 6, 7, 8), None, 9),
    tracing.Block((8,), None, None),
]
# Token for token, as they are to be seen.
EXPECTED = [
    [('kept', 'Die'), ('kept', 'Donau'), ('kept', 'dampf')]
    + [('rejected', SCRIPT), ('drawn', 'schiff')],
    [('rejected', ' '), ('drawn', '7')],
    [('kept', ' '), ('kept', '$'), ('kept', '_'), ('kept', SCRIPT)]
    + [('drawn', 'ü')],
    [('kept', SCRIPT)],
]
LONG = [tracing.Block((0, 1, 2, 3) * 12, 1, 0), tracing.Block((2,) * 60, 8, 9)]


def page(blocks=BLOCKS, sentence=None):
  return decoded_sentence.page(blocks, PIECES.__getitem__, sentence)


def draw(blocks=BLOCKS, sentence=None):
  return decoded_sentence.draw(blocks, PIECES.__getitem__, sentence)


class _Reader(parser.HTMLParser):
  """What a browser would find."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.attributes, self.path = [], set(), []
    self.items, self.lines, self.texts = [], [], {}
    self.feed(text)
    self.close()

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.attributes |= {name for name, _ in attrs}
    if tag == 'meta':
      return
    self.path.append((tag, dict(attrs).get('class')))
    if tag == 'li':
      self.items.append([])
      self.lines.append('')

  def handle_endtag(self, tag):
    assert self.path.pop()[0] == tag

  def handle_data(self, data):
    if not self.path:
      return
    tag, name = self.path[-1]
    self.texts[name or tag] = self.texts.get(name or tag, '') + data
    if any(tag == 'li' for tag, _ in self.path):
      self.lines[-1] += data
      if name:
        self.items[-1].append((name, data))


class TestPage:

  def test_tokens_in_order_line_by_line(self):
    assert _Reader(page()).items == EXPECTED

  def test_spaces_are_sentencepieces(self):
    lines = _Reader(page()).lines
    assert lines[0] == f' Die Donaudampf{SCRIPT}schiff'
    assert lines[1] == ' 7'
    assert '▁' not in page()

  def test_forms_differ_without_colours(self):
    text = page([tracing.Block((0,), 1, 2)])
    line = re.search('<li>(.*)</li>', text)[1]
    assert re.findall('<(span|del|ins) ', line) == ['span', 'del', 'ins']

  @pytest.mark.parametrize('sentence', [SCRIPT, f'a "{SCRIPT}', '</title>'])
  def test_text_is_never_markup(self, sentence):
    reader = _Reader(page(sentence=sentence))
    assert reader.texts['title'] == reader.texts['h1'] == sentence
    assert set(reader.tags) == set(_Reader(page([])).tags) | {'li'}
    assert reader.items == EXPECTED

  def test_title_without_a_sentence(self):
    assert _Reader(page()).texts['title'] == 'A decoded sentence'

  def test_placeholders_in_text_stay(self):
    sentence = '$title costs $5, $lines'
    assert _Reader(page(sentence=sentence)).texts['title'] == sentence

  def test_loads_nothing(self):
    text = page(sentence='no link')
    reader = _Reader(text)
    assert not {'script', 'link', 'img', 'iframe'} & set(reader.tags)
    assert not {'src', 'href', 'style', 'onload'} & reader.attributes
    assert not re.search(r'url\(|@import|//', text)

  def test_says_how_to_read_it(self):
    text = page()
    assert '<meta charset="utf-8">' in text
    assert text.encode('utf-8').decode('utf-8') == text
    legend = re.search('<p class="legend">(.*)</p>', text)[1]
    assert re.findall('class="([a-z]+)"', legend) == [
        'kept', 'rejected', 'drawn'
    ]

  @pytest.mark.parametrize(
      ('blocks', 'expected'),
      [
          (BLOCKS, '11 tokens in 4 target calls'),
          ([tracing.Block((), 3, 4)], '1 token in 1 target call,'),
          ([], '0 tokens in 0 target calls'),
      ],
  )
  def test_counts(self, blocks, expected):
    assert _Reader(page(blocks)).texts['counts'].startswith(expected)

  def test_light_and_dark_can_be_read(self):
    light, dark = re.findall(r':root \{(.*?)\}', page(), re.DOTALL)
    for block, is_dark in ((light, False), (dark, True)):
      values = dict(re.findall('--([a-z-]+): (#[0-9a-f]+)', block))
      assert (_luminance(values['page']) < 0.1) == is_dark
      for name in ('kept', 'rejected', 'drawn'):
        assert _contrast(values[name], values[f'{name}-back']) >= 4.5
      for name in ('text', 'faint'):
        assert _contrast(values[name], values['page']) >= 4.5


def _luminance(colour):
  """Relative luminance, of WCAG 2."""
  linear = [
      x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
      for x in colors.to_rgb(colour)
  ]
  return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear))


def _contrast(first, second):
  low, high = sorted((_luminance(first), _luminance(second)))
  return (high + 0.05) / (low + 0.05)


def _tokens(fig):
  """Tokens of the figure as (fate, text); forms tell fates apart."""
  (axes,) = fig.axes
  colours = {'#145a32': 'kept', '#97201a': 'rejected', '#103f91': 'drawn'}
  texts = [text for text in axes.texts if text.get_color() in colours]
  return [(colours[text.get_color()], text.get_text()) for text in texts]


def _boxes(fig):
  """Extents of its texts, in pixels, grouped by their baselines."""
  (axes,) = fig.axes
  renderer = backend_agg.FigureCanvasAgg(fig).get_renderer()
  rows = {}
  for text in axes.texts:
    if text.get_text().strip():
      extent = text.get_window_extent(renderer)
      rows.setdefault(text.get_position()[1], []).append(extent)
  return rows.values()


def _strokes(axes, text):
  """How far above its baseline the lines of a text lie."""
  x, y = text.get_position()
  rises = [y - line.get_ydata()[0] for line in axes.lines
           if line.get_xdata()[0] == x]
  return [rise for rise in rises if abs(rise) < 8]


class TestDraw:

  def test_tokens_in_order(self):
    legend = [
        ('kept', 'guessed and kept'),
        ('rejected', 'guessed and rejected'),
        ('drawn', 'drawn by the target'),
    ]
    assert _tokens(draw()) == legend + sum(EXPECTED, [])

  def test_forms_differ_without_colours(self):
    (axes,) = draw([tracing.Block((0,), 1, 2)]).axes
    kept, rejected, drawn = axes.texts[-3:]
    assert [kept.get_weight(), rejected.get_weight()] == ['normal'] * 2
    assert drawn.get_weight() == 'bold'
    assert _strokes(axes, kept) == []
    (struck,), (underlined,) = _strokes(axes, rejected), _strokes(axes, drawn)
    assert 2 < struck < 4  # points above the baseline, of 8-point text
    assert -2 < underlined < 0

  def test_one_line_a_call_and_its_number(self):
    (axes,) = draw(sentence='An input.').axes
    heights = {t.get_text(): t.get_position()[1] for t in axes.texts}
    assert heights['1'] < heights['2'] < heights['3']
    assert heights['schiff'] == heights['1']
    assert heights['ü'] == heights['3']

  def test_caption_and_counts(self):
    (axes,) = draw(sentence='How $x$ went.').axes
    words = ' '.join(text.get_text() for text in axes.texts)
    assert 'Input: How $x$ went. guessed and kept' in words
    assert '11 tokens in 4 target calls' in words

  @pytest.mark.parametrize('sentence', [None, 'A long input. ' * 30])
  def test_long_lines_wrap_and_nothing_touches(self, sentence):
    fig = draw(LONG, sentence)
    width, height = fig.get_size_inches() * fig.dpi
    for row in _boxes(fig):
      row = sorted(row, key=lambda box: box.x0)
      assert row[0].x0 >= 0 and row[-1].x1 <= width
      assert all(a.x1 <= b.x0 + 0.5 for a, b in zip(row, row[1:]))
      assert all(0 <= box.y0 and box.y1 <= height for box in row)

  def test_words_stay_whole(self):
    (axes,) = draw([tracing.Block((0, 1, 2, 3) * 12, 1, 0)]).axes
    begins, ends = [
        [t.get_position()[1] for t in axes.texts if t.get_text() == piece]
        for piece in ('Donau', 'schiff')
    ]
    assert begins[:12] == ends  # the 13th is the rejected one
    assert len(set(ends)) > 1  # or nothing wrapped

  def test_fits_the_page(self):
    assert draw().get_figwidth() == draw(LONG).get_figwidth() == 6.75
    assert draw(BLOCKS * 3).get_figheight() > draw().get_figheight()

  @pytest.mark.parametrize('form', ['png', 'pdf', 'svg'])
  @pytest.mark.parametrize('blocks', [BLOCKS, []])
  def test_is_written(self, form, blocks):
    file = io.BytesIO()
    draw(blocks, r'No $\frac$ here.').savefig(file, format=form)
    assert file.getvalue()

  def test_can_be_read_in_grey(self):
    for text, ground in decoded_sentence._COLOURS.values():
      assert _contrast(text, ground or 'white') >= 4.5
