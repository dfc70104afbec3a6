# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The serve job with the embedded pair, asked by OpenAI's own client.

Each answer is that of decoding the same request offline.
"""

from concurrent import futures
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import openai
import pytest

import speculative_t5x as st
from speculative_t5x.jobs.command_line import main
from speculative_t5x.tasks import bulletins
from tests.serving import browser

pytestmark = pytest.mark.long

_CHECKOUT = pathlib.Path(__file__).parents[2]
WAIT = 300  # seconds: what hangs must fail
TEXTS = [text for text, _ in bulletins.read_pairs('test')[:6]]


@contextlib.contextmanager
def _process(*flags, **environment):
  """Start the job; yield its process and the address that it says."""
  command = [
      sys.executable, '-m', 'speculative_t5x', 'serve',
      '--gin_file=configs/runs/serve_bulletins.gin', '--gin.PORT=0',
      '--gin.ROWS=4', '--gin.GAMMA=2', *flags,
  ]  # fmt: skip
  process = subprocess.Popen(
      command,
      cwd=_CHECKOUT,
      env={**os.environ, **environment},
      stderr=subprocess.PIPE,
      text=True,
  )
  lines = []
  try:
    for line in process.stderr:
      lines.append(line)
      if match := re.search('at (http://.*)', line):
        yield process, match[1]
        break
    else:
      pytest.fail(''.join(lines))
  finally:
    process.kill()
    process.communicate()


@pytest.fixture(scope='module')
def client():
  with _process(SPECULATIVE_T5X_API_KEY='secret') as (process, url):
    with openai.OpenAI(
        base_url=f'{url}/v1', api_key='secret', max_retries=0, timeout=WAIT
    ) as client:
      yield client
      _check_that_it_ends(client, process)


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
  assert 'Traceback' not in log and '/v1/completions 200' in log


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


def test_several_prompts_and_choices(client):
  shared = dict(seed=9, max_tokens=20)
  answer = client.completions.create(
      model='bulletins', prompt=TEXTS[:2], n=2, temperature=1, **shared
  )
  results = offline(*(
      st.Request(text, sampling=st.Sampling(1.0), num_decodes=2, **shared)
      for text in TEXTS[:2]
  ))
  texts = [
      _decoder().text(decode.text_tokens)
      for result in results
      for decode in sorted(result.decodes, key=lambda x: x.number)
  ]
  assert [choice.text for choice in answer.choices] == texts
  assert answer.usage.completion_tokens == sum(
      len(decode.tokens) for result in results for decode in result.decodes
  )


def test_a_batch_has_the_same_answers(client, tmp_path):
  bodies = [
      dict(prompt=TEXTS[0], temperature=0),
      dict(prompt=TEXTS[:2], n=2, seed=9, logprobs=3),
      dict(prompt=TEXTS[2], stop=' ', seed=2**40),
  ]
  bodies = [{'model': 'bulletins', 'max_tokens': 40, **x} for x in bodies]
  (tmp_path / 'in.jsonl').write_text(
      ''.join(
          json.dumps({
              'custom_id': f'{number}',
              'method': 'POST',
              'url': '/v1/completions',
              'body': body,
          }) + '\n'
          for number, body in enumerate(bodies)
      )
  )  # fmt: skip
  assert not main.main([
      'infer',
      f'--gin_file={_CHECKOUT}/configs/runs/infer_bulletins.gin',
      f'--gin.INPUTS={tmp_path}/in.jsonl',
      '--gin.INPUT_FORMAT=batch',
      '--gin.MODEL_NAME=bulletins',
      '--gin.BATCH_SIZE=4',
      '--gin.GAMMA=2',  # as the server has it
      f'--output_dir={tmp_path}/out',
  ])
  lines = (tmp_path / 'out/output.jsonl').read_text().splitlines()
  for line, body in zip(lines, bodies, strict=True):
    found = json.loads(line)['response']['body']
    raw = client.completions.with_raw_response.create(**body)
    expected = json.loads(raw.content)
    for name in ('choices', 'usage', 'model', 'system_fingerprint'):
      assert found[name] == expected[name]


def test_metrics_of_speculation(client):
  answer = client.completions.create(
      model='bulletins', prompt=TEXTS[0], temperature=0, max_tokens=96
  )
  (result,) = offline(st.Request(TEXTS[0], 0))
  counts = answer.model_extra['metrics']['speculative_decoding']
  for name, expected in (
      ('num_accepted_draft_tokens', 'accepted'),
      ('num_draft_tokens', 'drafted'),
  ):
    assert counts[name] == result.statistics[expected]
  assert counts['num_spec_steps'] <= result.statistics['target_calls']


def test_errors_reach_the_client(client):
  with pytest.raises(openai.BadRequestError) as caught:
    client.completions.create(model='bulletins', prompt='a' * 2000)
  assert caught.value.param == 'prompt'
  with pytest.raises(openai.NotFoundError):
    client.completions.create(model='other', prompt='a')
  with pytest.raises(openai.AuthenticationError):
    client.with_options(api_key='another').models.list()
  assert client.models.list().data[0].id == 'bulletins'


def test_the_page(client, tmp_path):
  """A person gives the key and clicks an example."""
  if (path := browser.find()) is None:
    pytest.skip('no browser is installed')
  with browser.start(path, tmp_path) as page:
    page.open(str(client.base_url).removesuffix('v1/'))
    page.wait("!document.getElementById('key-form').hidden")
    page.run("document.querySelector('[name=key]').value = 'secret'")
    page.run("document.getElementById('key-form').requestSubmit()")
    page.wait("Boolean(document.querySelector('#examples button'))")
    page.run("document.querySelector('#examples button').click()")
    page.wait("document.getElementById('status').textContent === 'Done'")
    assert page.run("document.querySelectorAll('.accepted').length") > 2
    texts = page.run("document.getElementById('texts').textContent")
    assert texts == 'Both wrote the same text.'
