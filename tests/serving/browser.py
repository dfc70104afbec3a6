# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven over two pipes by its DevTools protocol.

Messages are JSON, with a zero byte after each. No package is needed for it.
"""

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time
from typing import Any

NAMES = ('chromium', 'chromium-browser', 'google-chrome')
_MAX_SECONDS = 60  # until a page that hangs fails the test
_POLL_SECONDS = 0.02


def find() -> str | None:
  """Return the path of the browser, if there is one."""
  return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
  """A tab, whose methods wait until they are done."""

  def __init__(self, to_browser: int, from_browser: int):
    """Open the tab of a new browser, by the file descriptors of two pipes."""
    self._to, self._from = to_browser, from_browser
    self._rest = b''
    self._count = 0
    self._session = {}
    self.events: list[Mapping[str, Any]] = []
    tab = self.call('Target.createTarget', url='about:blank')['targetId']
    attached = self.call('Target.attachToTarget', targetId=tab, flatten=True)
    self._session = {'sessionId': attached['sessionId']}
    for domain in 'Page', 'Runtime', 'Network', 'Log':
      self.call(f'{domain}.enable')

  def call(self, method: str, **params: Any) -> Mapping[str, Any]:
    """Call a method of the protocol; keep the events that come before."""
    self._count += 1
    message = {'id': self._count, 'method': method, 'params': params}
    message |= self._session
    os.write(self._to, json.dumps(message).encode() + b'\0')
    while True:
      answer = self._read()
      if answer.get('id') == self._count:
        assert 'error' not in answer, answer
        return answer['result']
      self.events.append(answer)

  def _read(self) -> Mapping[str, Any]:
    while b'\0' not in self._rest:
      ready, *_ = select.select([self._from], [], [], _MAX_SECONDS)
      assert ready, 'the browser does not answer'
      data = os.read(self._from, 65536)
      assert data, 'the browser ended'
      self._rest += data
    message, self._rest = self._rest.split(b'\0', 1)
    return json.loads(message)

  def run(self, code: str) -> Any:
    """Return the value of a JavaScript expression; promises are awaited."""
    answer = self.call(
        'Runtime.evaluate',
        expression=code,
        awaitPromise=True,
        returnByValue=True,
        userGesture=True,
    )
    assert 'exceptionDetails' not in answer, answer['exceptionDetails']
    return answer['result'].get('value')

  def wait(self, code: str) -> Any:
    """Wait until an expression is true, and return its value."""
    end = time.monotonic() + _MAX_SECONDS
    while not (value := self.run(code)):
      if time.monotonic() > end:
        raise AssertionError(f'{code}\n{self.run("document.body.innerText")}')
      time.sleep(_POLL_SECONDS)
    return value

  def open(self, url: str) -> None:
    """Load a page, and forget the events of the one before."""
    self.events.clear()
    self.call('Page.navigate', url=url)
    self.wait(
        f"location.href === '{url}' && document.readyState === 'complete'"
    )

  def press(self, key: str, modifiers: int = 0) -> None:
    """Press `Tab`, `Enter` or `Escape`, with 2 for Ctrl."""
    code = {'Tab': 9, 'Enter': 13, 'Escape': 27}[key]
    text = {'text': '\r'} if key == 'Enter' else {}
    for kind in {'type': 'keyDown', **text}, {'type': 'keyUp'}:
      self.call(
          'Input.dispatchKeyEvent',
          key=key,
          windowsVirtualKeyCode=code,
          modifiers=modifiers,
          **kind,
      )

  def show(self, width: int, height: int) -> None:
    """Take the size of a screen."""
    self.call(
        'Emulation.setDeviceMetricsOverride',
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=width < 600,
    )


@contextlib.contextmanager
def start(path: str, folder: pathlib.Path) -> Iterator[Page]:
  """Start a browser that keeps its files in a folder, and end it."""
  to_browser, write = os.pipe()
  read, from_browser = os.pipe()
  # The browser reads from file descriptor 3 and writes to 4.
  command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
  arguments = [
      '--headless=new',
      '--remote-debugging-pipe',
      '--no-sandbox',  # which root may not have
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--no-first-run',
      f'--user-data-dir={folder}',
  ]
  with open(folder / 'log.txt', 'wb') as log:
    process = subprocess.Popen(
        ['bash', '-c', command, path, *arguments],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # a group, which ends as a whole
    )
  os.close(to_browser)
  os.close(from_browser)
  try:
    page = Page(write, read)
    yield page
    os.write(write, b'{"id":0,"method":"Browser.close"}\0')
    process.wait(_MAX_SECONDS)
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(write)
    os.close(read)
