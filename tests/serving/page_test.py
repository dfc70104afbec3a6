# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page for a person, in a browser, before an engine that repeats.

It accepts every other token, after which it rejects an x.
"""

import json

import pytest

from speculative_t5x.decoder import service as service_lib
from tests.serving import browser as browser_lib
from tests.serving import stub

_PHONE = 360, 740
_TEXT = 'a<b>c'  # shown as it is, and no markup
_TOKENS = [
    ('a', 'accepted'), ('x', 'rejected'), ('<', 'drawn'),
    ('b', 'accepted'), ('x', 'rejected'), ('>', 'drawn'),
    ('c', 'accepted'), ('x', 'rejected'),
]  # fmt: skip
_EXAMPLES = ['The train is late.', 'x' * 60]


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
  path = browser_lib.find()
  if path is None:
    pytest.skip(f'none of {", ".join(browser_lib.NAMES)} is installed')
  with browser_lib.start(path, tmp_path_factory.mktemp('browser')) as page:
    yield page


@pytest.fixture(scope='module')
def server():
  with (
      service_lib.Service(stub.Engine()) as plain,
      stub.serving(stub.Engine(), plain=plain, examples=_EXAMPLES) as client,
  ):
    yield client


def _open(browser, client):
  browser.open(f'{client.url}/')
  browser.wait("document.getElementById('model').textContent === 'echo.'")


@pytest.fixture
def page(browser, server):
  browser.show(1200, 900)
  _open(browser, server)
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


def _decode(page, prompt: str = _TEXT, **values) -> None:
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


def _error(page) -> str:
  page.wait("!document.getElementById('error').hidden")
  return _text(page, '#error')


def test_shows_tokens_by_kind_figures_and_plain_decoding(page):
  _decode(page)
  _wait_for(page, 'Done')
  assert _tokens(page, 'speculative') == _TOKENS
  assert page.run("document.querySelectorAll('.speculative .call').length") == 3
  figures = _text(page, '.speculative dl').split('\n')
  assert '2.00' in figures  # 6 tokens by 3 target calls
  assert '50 % 3 of 6' in figures
  bars = page.run(
      "[...document.querySelectorAll('#histogram li')].map((x) => x.innerText)"
  )
  assert [bar.split() for bar in bars] == [
      ['0', '0'], ['3', '1'], ['0', '2'], ['0', '3']
  ]  # fmt: skip
  page.run("document.getElementById('rejected').click()")
  assert _text(page, '.speculative .output') == _TEXT
  assert _tokens(page, 'plain') == _TOKENS
  assert _text(page, '#texts') == 'Both wrote the same text.'
  rates = page.run(
      "[...document.querySelectorAll('.card dd')].map((x) => x.innerText)"
  )
  verdict = float(_text(page, '#verdict').split()[0])
  expected = float(rates[0]) / float(rates[4])
  assert verdict == pytest.approx(expected, rel=0.02, abs=0.006)


def test_settings_are_sent_and_a_seed_is_drawn(page):
  page.run("document.getElementById('rejected').click()")
  _decode(page, 'a', temperature='1', seed='7', max_tokens='40')
  _wait_for(page, 'Done')
  assert _text(page, '.speculative .output') == 'a (7, 0, 0)'
  _decode(page, 'a', seed='', max_tokens='3')
  page.wait("form.elements.seed.placeholder !== 'random'")
  _wait_for(page, 'Done')
  assert page.run("/^[0-9]+$/.test(form.elements.seed.placeholder)")
  assert _text(page, '.speculative .output') == 'a ('


def test_asks_for_the_key_and_has_no_other_model(browser):
  with stub.serving(stub.Engine(), api_key='secret') as client:
    browser.open(f'{client.url}/')
    browser.wait("!document.getElementById('key-form').hidden")
    browser.run("document.querySelector('[name=key]').value = 'secret'")
    browser.run("document.getElementById('key-form').requestSubmit()")
    browser.wait("document.getElementById('key-form').hidden")
    _decode(browser)
    _wait_for(browser, 'Done')
  assert not _is_shown(browser, '#error')
  assert not _is_shown(browser, '#compare')
  assert not _is_shown(browser, '#examples')
  assert not _is_shown(browser, '#comparison')
  _decode(browser)
  assert 'cannot be reached' in _error(browser)


def test_tokens_are_shown_as_they_come_and_stop(browser):
  engine = stub.Engine(is_held=True)
  with stub.serving(engine) as client:
    _open(browser, client)
    engine.steps.release()
    _decode(browser, 'abcdefgh')
    browser.wait("document.querySelectorAll('.call > *').length === 6")
    assert browser.run("document.getElementById('decode').disabled")
    browser.press('Escape')
    _wait_for(browser, 'Stopped')
    assert not _is_shown(browser, '#error')
    engine.steps.release(999)
    _decode(browser)
    _wait_for(browser, 'Done')
    assert _tokens(browser, 'speculative') == _TOKENS


@pytest.mark.parametrize(
    ('prompt', 'words', 'field'),
    [('a' * 90, 'TASK_FEATURE_LENGTHS', 'prompt'), (stub.LOST, 'nan', None)],
)
def test_errors_of_the_server(page, prompt, words, field):
  _decode(page, prompt)
  assert words in _error(page)
  invalid = page.run("document.querySelector('[aria-invalid]')?.name ?? null")
  assert invalid == field
  _decode(page)
  _wait_for(page, 'Done')
  assert not _is_shown(page, '#error')


def test_keyboard(page):
  names = []
  for _ in range(9):
    page.press('Tab')
    names.append(page.run(
        'document.activeElement.name || document.activeElement.innerText'
        ' || document.activeElement.type'
    ))  # fmt: skip
  assert names == [
      'prompt', *_EXAMPLES, 'temperature', 'top_p', 'max_tokens', 'seed',
      'Decode', 'checkbox',
  ]  # fmt: skip
  _fill(page, prompt='By keys')
  page.run('form.elements.prompt.focus()')
  page.press('Enter', modifiers=2)
  _wait_for(page, 'Done')
  assert ''.join(x for x, y in _tokens(page, 'plain') if y != 'rejected') == (
      'By keys'
  )


def test_an_example_is_decoded_by_a_click(page):
  page.run("document.querySelector('#examples button').click()")
  _wait_for(page, 'Done')
  assert page.run('form.elements.prompt.value') == _EXAMPLES[0]


@pytest.mark.parametrize('size', [_PHONE, (1200, 900)])
def test_fits_the_screen(page, size):
  page.show(*size)
  _decode(page)
  _wait_for(page, 'Done')
  assert page.run('document.scrollingElement.scrollWidth') <= size[0]


def test_loads_nothing_from_elsewhere(page, server):
  _decode(page)
  _wait_for(page, 'Done')
  urls = {
      event['params']['request']['url']
      for event in page.events
      if event['method'] == 'Network.requestWillBeSent'
  }
  own = [f'{server.url}/{x}' for x in ('', 'v1/models', 'v1/completions')]
  assert {x for x in urls if not x.startswith('data:')} == {*own}
  exceptions = [x for x in page.events if 'exceptionThrown' in x['method']]
  entries = [
      event['params']['entry']
      for event in page.events
      if event['method'] == 'Log.entryAdded'
  ]
  assert exceptions == []
  assert [x for x in entries if x['level'] == 'error'] == []
