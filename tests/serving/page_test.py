# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page for a person, in a browser, before a stub of the server."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
import contextlib
import json
import pathlib
import re
import socket
import threading
from typing import Any

import fastapi
from fastapi import responses
import pytest
import uvicorn

import speculative_t5x
from tests.serving import browser as browser_lib

_PAGE = pathlib.Path(speculative_t5x.__file__).parent / 'serving/page.html'
_MAX_SECONDS = 60
_PHONE = 360, 740
_BRACKETS = '<b>&amp;'  # shown as they are, and no markup

# Two target calls: of the first draft two tokens are accepted and one is not.
_TRACE = [
    ('Der ', 'accepted'), ('Zug ', 'accepted'), ('kommt ', 'rejected'),
    ('aus ', 'drawn'), ('Bonn', 'accepted'), (f' {_BRACKETS}.', 'drawn'),
]  # fmt: skip
_TEXT = f'Der Zug aus Bonn {_BRACKETS}.'
_COUNTS = {
    'mean_acceptance_length': 2.5,
    'draft_acceptance_rate': 0.75,
    'num_spec_steps': 2,
    'num_accepted_draft_tokens': 3,
    'num_draft_tokens': 4,
    'acceptance_histogram': [0, 1, 1, 0],
}
_MODELS = [
    {
        'id': 'pair',
        'object': 'model',
        'speculative': True,
        'max_tokens': 96,
        'examples': ['The train from Bonn is late.', 'x' * 400],
    },
    {'id': 'pair-plain', 'object': 'model', 'speculative': False},
]


class _Server:
  """Serves the page, and answers as a test wants.

  Attributes:
    models: What the server lists.
    key: API key; none is needed without one.
    failure: Status, headers and body in place of an answer.
    ending: What a stream ends with.
    requests: Bodies that came.
    goes_on: Set unless a stream has to wait after its first event.
    is_left: Set when a client has closed a stream.
    app: Application of ASGI.
    url: Its address.
  """

  def __init__(self):
    self.goes_on = threading.Event()
    self.is_left = threading.Event()
    self.app = fastapi.FastAPI()
    self.app.get('/')(lambda: responses.FileResponse(_PAGE))
    self.app.get('/v1/models')(self._list)
    self.app.post('/v1/completions')(self._complete)
    self.reset()

  def reset(self) -> None:
    self.models = _MODELS
    self.key = None
    self.failure = None
    self.ending = 'data: [DONE]\n\n'
    self.requests = []
    self.goes_on.set()
    self.is_left.clear()

  def _list(self, request: fastapi.Request) -> responses.JSONResponse:
    key = request.headers.get('Authorization', '')
    if self.key and key != f'Bearer {self.key}':
      error = {'message': 'The API key is missing.'}
      return responses.JSONResponse({'error': error}, 401)
    return responses.JSONResponse({'data': self.models})

  def _complete(self, body: dict[str, Any]) -> responses.Response:
    self.requests.append(body)
    if self.failure:
      status, headers, error = self.failure
      return responses.JSONResponse({'error': error}, status, headers)
    return responses.StreamingResponse(
        self._stream(body), media_type='text/event-stream'
    )

  async def _stream(self, body: dict[str, Any]) -> AsyncIterator[str]:
    try:
      for event in _events(is_plain=body['model'] == 'pair-plain'):
        yield f'data: {json.dumps(event, ensure_ascii=False)}\n\n'
        while not self.goes_on.is_set():
          await asyncio.sleep(0.02)
      yield self.ending
    except BaseException:
      self.is_left.set()
      raise


def _events(is_plain: bool) -> Iterator[dict]:
  """Yield the events of a stream: four tokens, the others, and the counts."""
  for part in _TRACE[:4], _TRACE[4:]:
    kept = [text for text, kind in part if kind != 'rejected']
    if is_plain:
      part = [(text, 'drawn') for text in kept]
    trace = [{'text': text, 'kind': kind} for text, kind in part]
    choice = {'index': 0, 'text': ''.join(kept), 'trace': trace}
    yield {'choices': [choice], 'usage': None}
  counts = None if is_plain else _COUNTS
  yield {
      'choices': [],
      'usage': {'prompt_tokens': 7, 'completion_tokens': 5},
      'metrics': {'speculative_decoding': counts},
  }


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
  path = browser_lib.find()
  if path is None:
    pytest.skip(f'none of {", ".join(browser_lib.NAMES)} is installed')
  with browser_lib.start(path, tmp_path_factory.mktemp('browser')) as page:
    yield page


@contextlib.contextmanager
def _serving() -> Iterator[_Server]:
  """Serve in a thread; yield the server."""
  server = _Server()
  with socket.create_server(('127.0.0.1', 0)) as listening:
    server.url = f'http://127.0.0.1:{listening.getsockname()[1]}/'
    process = uvicorn.Server(uvicorn.Config(server.app, log_config=None))
    thread = threading.Thread(target=process.run, args=([listening],))
    thread.start()
    yield server
    process.should_exit = True
    thread.join()


@pytest.fixture(scope='module')
def running_server():
  with _serving() as running:
    yield running


@pytest.fixture
def server(running_server):
  running_server.reset()
  yield running_server
  running_server.goes_on.set()


@pytest.fixture
def page(browser, server):
  browser.show(1200, 900)
  browser.open(server.url)
  browser.wait("document.getElementById('model').textContent === 'pair.'")
  return browser


def _text(page, selector: str) -> str:
  return page.run(f"document.querySelector('{selector}').innerText.trim()")


def _is_shown(page, selector: str) -> bool:
  return page.run(
      f"Boolean(document.querySelector('{selector}')?.checkVisibility())"
  )


def _fill(page, **values) -> None:
  for name, value in values.items():
    page.run(f'form.elements.{name}.value = {json.dumps(value)}')


def _decode(page, prompt: str = 'The train', **values) -> None:
  _fill(page, prompt=prompt, **values)
  page.run("document.getElementById('decode').click()")


def _wait_for(page, status: str) -> None:
  page.wait(f"document.getElementById('status').textContent === '{status}'")


def _tokens(page, card: str) -> list[tuple[str, str]]:
  """Return text and kind of all tokens of a card, as they are shown."""
  pairs = page.run(
      f"[...document.querySelectorAll('.{card} .call > *')]"
      '.map((x) => [x.textContent, x.className])'
  )
  return [tuple(pair) for pair in pairs]


def test_shows_tokens_by_kind_and_figures(page, server):
  _decode(page, temperature='0.5', top_p='0.9', max_tokens='40', seed='11')
  _wait_for(page, 'Done')
  assert _tokens(page, 'speculative') == _TRACE
  assert page.run("document.querySelectorAll('.speculative .call').length") == 2
  figures = _text(page, '.speculative dl').split('\n')
  assert '2.50' in figures  # 5 tokens by 2 target calls
  assert '75 % 3 of 4' in figures
  bars = page.run(
      "[...document.querySelectorAll('#histogram li')].map((x) => x.innerText)"
  )
  assert [bar.split() for bar in bars] == [
      ['0', '0'], ['1', '1'], ['1', '2'], ['0', '3']
  ]  # fmt: skip

  settings = {
      'prompt': 'The train', 'temperature': 0.5, 'top_p': 0.9,
      'max_tokens': 40, 'seed': 11, 'stream': True,
      'stream_options': {'include_usage': True}, 'return_trace': True,
  }  # fmt: skip
  assert server.requests == [
      {'model': 'pair', **settings}, {'model': 'pair-plain', **settings}
  ]


def test_compares_with_plain_decoding(page):
  _decode(page)
  _wait_for(page, 'Done')
  assert ''.join(text for text, _ in _tokens(page, 'plain')) == _TEXT
  assert _text(page, '#texts') == 'Both wrote the same text.'
  rates = page.run(
      "[...document.querySelectorAll('.card dd')].map((x) => x.innerText)"
  )
  verdict = float(_text(page, '#verdict').split()[0])
  speculative, plain = float(rates[0]), float(rates[4])
  assert verdict == pytest.approx(
      speculative / plain, rel=0.02, abs=0.006
  )


def test_without_a_plain_model_nothing_is_compared(browser, server):
  server.models = [{'id': 'pair', 'object': 'model'}]
  browser.open(server.url)
  browser.wait("document.getElementById('model').textContent === 'pair.'")
  assert not _is_shown(browser, '#compare')
  assert not _is_shown(browser, '#examples')
  _decode(browser)
  _wait_for(browser, 'Done')
  assert [body['model'] for body in server.requests] == ['pair']
  assert not _is_shown(browser, '#comparison')


def test_seed_is_drawn_and_can_be_repeated(page, server):
  _decode(page)
  _wait_for(page, 'Done')
  seeds = {body['seed'] for body in server.requests}
  (seed,) = seeds
  assert 0 <= seed < 2**31
  assert page.run('form.elements.seed.placeholder') == str(seed)


def test_tokens_are_shown_as_they_come_and_stop(page, server):
  server.goes_on.clear()
  _decode(page)
  page.wait("document.querySelectorAll('.call > *').length === 4")
  assert _tokens(page, 'speculative') == _TRACE[:4]
  assert page.run("document.getElementById('decode').disabled")
  page.press('Escape')
  _wait_for(page, 'Stopped')
  assert server.is_left.wait(_MAX_SECONDS)
  assert not _is_shown(page, '#error')

  server.goes_on.set()  # and the next one is not disturbed
  _decode(page)
  _wait_for(page, 'Done')
  assert _tokens(page, 'speculative') == _TRACE


def test_rejected_tokens_can_be_hidden(page):
  _decode(page)
  _wait_for(page, 'Done')
  page.run("document.getElementById('rejected').click()")
  assert _text(page, '.speculative .output') == _TEXT
  page.run("document.getElementById('rejected').click()")
  assert 'kommt' in _text(page, '.speculative .output')


@pytest.mark.parametrize(
    'status, headers, error, words, field',
    [
        (400, {}, {'message': 'Too long.', 'param': 'prompt'}, ['Too long.'],
         'prompt'),
        (429, {'Retry-After': '3'}, {'message': 'Busy.'}, ['Busy.', '3 s'],
         None),
        (500, {}, {}, ['500'], None),
    ],
)  # fmt: skip
def test_errors_of_the_server(
    page, server, status, headers, error, words, field
):
  server.failure = status, headers, error
  _decode(page)
  page.wait("!document.getElementById('error').hidden")
  message = _text(page, '#error')
  assert [word for word in words if word not in message] == []
  invalid = page.run("document.querySelector('[aria-invalid]')?.name ?? null")
  assert invalid == field

  server.failure = None
  _decode(page)
  _wait_for(page, 'Done')
  assert not _is_shown(page, '#error')


@pytest.mark.parametrize(
    'ending, words',
    [
        ('', 'cut off'),
        ('data: {"error": {"message": "Logits are NaN."}}\n\n',
         'Logits are NaN.'),
    ],
)  # fmt: skip
def test_a_stream_that_fails(page, server, ending, words):
  server.ending = ending
  _decode(page)
  page.wait("!document.getElementById('error').hidden")
  assert words in _text(page, '#error')
  assert _tokens(page, 'speculative') == _TRACE  # what came remains


def test_a_server_that_is_gone(browser):
  with _serving() as gone:
    browser.open(gone.url)
    browser.wait("document.getElementById('model').textContent === 'pair.'")
  _decode(browser)
  browser.wait("!document.getElementById('error').hidden")
  assert 'cannot be reached' in _text(browser, '#error')


def test_asks_for_the_key(browser, server):
  server.key = 'secret'
  browser.open(server.url)
  browser.wait("!document.getElementById('key-form').hidden")
  browser.run("document.querySelector('[name=key]').value = 'secret'")
  browser.run("document.getElementById('key-form').requestSubmit()")
  browser.wait("document.getElementById('key-form').hidden")
  _decode(browser)
  _wait_for(browser, 'Done')
  assert not _is_shown(browser, '#error')


def test_keyboard(page, server):
  names = []
  for _ in range(9):
    page.press('Tab')
    names.append(page.run(
        'document.activeElement.name || document.activeElement.innerText'
        ' || document.activeElement.type'
    ))  # fmt: skip
  examples = _MODELS[0]['examples']
  assert names == [
      'prompt', *examples, 'temperature', 'top_p', 'max_tokens', 'seed',
      'Decode', 'checkbox',
  ]  # fmt: skip
  _fill(page, prompt='By keys')
  page.run('form.elements.prompt.focus()')
  page.press('Enter', modifiers=2)
  _wait_for(page, 'Done')
  assert server.requests[0]['prompt'] == 'By keys'


def test_an_example_is_decoded_by_a_click(page, server):
  page.run("document.querySelector('#examples button').click()")
  _wait_for(page, 'Done')
  assert server.requests[0]['prompt'] == _MODELS[0]['examples'][0]


def test_values_out_of_range_are_not_sent(page, server):
  for field in {'max_tokens': '97'}, {'temperature': '-1'}, {'top_p': '0'}:
    _fill(page, max_tokens='5', temperature='0', top_p='1')
    _decode(page, **field)
    invalid = page.run("document.querySelector('#form input:invalid').name")
    assert invalid in field
  assert server.requests == []


@pytest.mark.parametrize('size', [_PHONE, (1200, 900)])
def test_fits_the_screen(page, size):
  page.show(*size)
  _decode(page)
  _wait_for(page, 'Done')
  assert page.run('document.scrollingElement.scrollWidth') <= size[0]
  small = page.run(
      "[...document.querySelectorAll('button, input[type=number], textarea')]"
      '.filter((x) => x.checkVisibility() &&'
      ' x.getBoundingClientRect().height < 32).length'
  )
  assert small == 0  # for a finger


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_can_be_read(page, scheme):
  """Texts have a contrast of 4.5 to 1 or more, and no kind a colour alone."""
  page.show(1200, 900, scheme)
  _decode(page)
  _wait_for(page, 'Done')
  styles = page.run("""
    ['.accepted', '.drawn', '.rejected', '.note', 'label', 'h1', '#decode',
     'dd', 'dt', '#status'].map((name) => {
      const found = document.querySelector(name);
      const back = [];
      for (let x = found; x; x = x.parentElement) {
        back.push(getComputedStyle(x).backgroundColor);
      }
      return [name, getComputedStyle(found).color, back];
    })""")
  assert len(styles) == 10
  for name, color, backgrounds in styles:
    background = next(x for x in backgrounds if 'rgba(0, 0, 0, 0)' != x)
    assert _contrast(_rgb(color), _rgb(background)) >= 4.5, name
  lines = page.run("""
    ['accepted', 'drawn', 'rejected'].map((name) => {
      const style = getComputedStyle(document.querySelector('.' + name));
      return style.textDecorationLine + style.textDecorationStyle;
    })""")
  assert len({*lines}) == 3
  body = page.run('getComputedStyle(document.body).backgroundColor')
  assert (sum(_rgb(body)) > 380) == (scheme == 'light')


def _rgb(color: str) -> Sequence[float]:
  return [float(x) for x in re.findall(r'[\d.]+', color)[:3]]


def _contrast(one: Sequence[float], other: Sequence[float]) -> float:
  """Return the contrast ratio of WCAG 2.2."""
  light, dark = sorted(map(_luminance, (one, other)), reverse=True)
  return (light + 0.05) / (dark + 0.05)


def _luminance(color: Sequence[float]) -> float:
  parts = [x / 255 for x in color]
  red, green, blue = (
      x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_loads_nothing_from_elsewhere(page, server):
  _decode(page)
  _wait_for(page, 'Done')
  urls = {
      event['params']['request']['url']
      for event in page.events
      if event['method'] == 'Network.requestWillBeSent'
  }
  own = [server.url + x for x in ('', 'v1/models', 'v1/completions')]
  assert {x for x in urls if not x.startswith('data:')} == {*own}
  exceptions = [x for x in page.events if 'exceptionThrown' in x['method']]
  entries = [
      event['params']['entry']
      for event in page.events
      if event['method'] == 'Log.entryAdded'
  ]
  assert exceptions == []
  assert [x for x in entries if x['level'] == 'error'] == []
