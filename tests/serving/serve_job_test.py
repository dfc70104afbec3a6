# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The serve job with the embedded pair, asked by OpenAI's own client.

Each answer is that of decoding the same request offline.
"""

from concurrent import futures
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys

import openai
import pytest

import speculative_t5x as st
from speculative_t5x.tasks import bulletins

pytestmark = pytest.mark.long

_CHECKOUT = pathlib.Path(__file__).parents[2]
WAIT = 300  # seconds: what hangs must fail
TEXTS = [text for text, _ in bulletins.read_pairs('test')[:6]]


@pytest.fixture(scope='module')
def client():
  process = subprocess.Popen(
      [
          sys.executable, '-m', 'speculative_t5x', 'serve',
          '--gin_file=configs/runs/serve_bulletins.gin', '--gin.PORT=0',
          '--gin.ROWS=4', '--gin.GAMMA=2',
      ],
      cwd=_CHECKOUT,
      env={**os.environ, 'SPECULATIVE_T5X_API_KEY': 'secret'},
      stderr=subprocess.PIPE,
      text=True,
  )  # fmt: skip
  lines = []
  try:
    for line in process.stderr:
      lines.append(line)
      if match := re.search('at (http://.*)', line):
        break
    else:
      pytest.fail(''.join(lines))
    with openai.OpenAI(
        base_url=f'{match[1]}/v1', api_key='secret', max_retries=0, timeout=WAIT
    ) as client:
      yield client
      _check_that_it_ends(client, process)
  finally:
    process.kill()
    process.communicate()


def _check_that_it_ends(client, process):
  """Check that a stream goes on after a signal, and the job ends with 0."""
  stream = client.completions.create(
      model='bulletins', prompt=TEXTS * 4, stream=True, max_tokens=96
  )
  parts = iter(stream)
  choices = [next(parts).choices[0]]
  process.send_signal(signal.SIGTERM)
  choices += [part.choices[0] for part in parts]
  assert len([x for x in choices if x.finish_reason]) == 4 * len(TEXTS)
  _, log = process.communicate(timeout=WAIT)
  assert process.returncode == 0, log
  assert 'Traceback' not in log


@functools.cache
def _decoder() -> st.TextDecoder:
  return st.embedded.load_decoder(gamma=2)


@functools.cache
def _engine() -> st.Engine:
  return st.Engine(_decoder(), 4, rule=st.rules.Coupled())


def offline(*requests: st.Request) -> list[st.Result]:
  return list(_engine().stream(requests))


def test_answers_are_those_of_offline_decoding(client):
  """Of many at once, streamed or not, of mixed sampling."""
  settings = [
      dict(temperature=0.0),
      dict(temperature=1.0, seed=5),
      dict(temperature=0.7, top_p=0.9, seed=2**31 - 1),
  ]
  asked = [(text, own) for text in TEXTS for own in settings]

  def ask(item):
    text, own = item
    is_streamed = len(text) % 2 == 0
    answer = client.completions.create(
        model='bulletins', prompt=text, max_tokens=40, stream=is_streamed,
        logprobs=0, **own,
    )  # fmt: skip
    parts = answer if is_streamed else [answer]
    choices = [choice for part in parts for choice in part.choices]
    log_probs = [x for y in choices for x in y.logprobs.token_logprobs]
    return ''.join(x.text for x in choices), log_probs

  with futures.ThreadPoolExecutor(12) as pool:
    found = list(pool.map(ask, asked))
  expected = offline(*(
      st.Request(
          text,
          0,
          seed=own.get('seed', 0),
          sampling=st.Sampling(own['temperature'], top_p=own.get('top_p', 0)),
          max_tokens=40,
      )
      for text, own in asked
  ))
  for (text, log_probs), result in zip(found, expected, strict=True):
    assert text == result.text
    (decode,) = result.decodes
    assert log_probs == pytest.approx(decode.model_log_probs.tolist(), abs=1e-4)


def test_errors_reach_the_client(client):
  with pytest.raises(openai.BadRequestError) as caught:
    client.completions.create(model='bulletins', prompt='a' * 2000)
  assert caught.value.param == 'prompt'
  with pytest.raises(openai.NotFoundError):
    client.completions.create(model='other', prompt='a')
  with pytest.raises(openai.AuthenticationError):
    client.with_options(api_key='another').models.list()
  assert client.models.list().data[0].id == 'bulletins'
