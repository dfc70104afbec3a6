# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signals to the server's process, and its sudden end."""

import contextlib
import http.client
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.serving import stub

_CHECKOUT = pathlib.Path(__file__).parents[2]
PROMPT = 'abcdefgh' * 6


@contextlib.contextmanager
def _process(port=0):
  """Start a server; yield its process and a client."""
  process = subprocess.Popen(
      [sys.executable, '-m', 'tests.serving.stub', str(port)],
      cwd=_CHECKOUT,
      stdout=subprocess.PIPE,
      text=True,
  )
  try:
    client = stub.Client(int(process.stdout.readline()))
    assert client.get('/ready')[0] == 200
    yield process, client
  finally:
    process.kill()
    process.communicate()


@pytest.mark.parametrize('which', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_streams_end(which):
  with _process() as (process, client):
    with client.streamed(prompt=PROMPT, max_tokens=64) as response:
      first = response.readline()
      process.send_signal(which)
      found = stub.events(first + response.read())
    assert found[-1] == '[DONE]'
    assert ''.join(x['text'] for x in stub.by_choice(found)[0]) == PROMPT
    assert process.wait(stub.WAIT) == 0


def test_a_second_signal_ends_at_once():
  with _process() as (process, client):
    with client.streamed(prompt=PROMPT, max_tokens=64) as response:
      response.readline()
      process.send_signal(signal.SIGTERM)
      with contextlib.suppress(ConnectionError):
        while True:
          client.get('/ready')
      process.send_signal(signal.SIGTERM)
      assert process.wait(stub.WAIT) == 128 + signal.SIGTERM
      with contextlib.suppress(http.client.HTTPException, OSError):
        assert b'[DONE]' not in response.read()


@pytest.mark.exhaustive
def test_20_sudden_ends():
  """A client never takes a part for the whole; the next server goes on."""
  port = 0
  for _ in range(20):
    with _process(port) as (process, client):
      port = client.port
      assert client.texts(prompt=PROMPT, max_tokens=64) == [PROMPT]
      with client.streamed(prompt=PROMPT, max_tokens=64) as response:
        response.readline()
        process.kill()
        with pytest.raises((http.client.HTTPException, OSError)):
          response.read()
