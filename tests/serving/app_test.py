# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers, streams and errors over sockets, by an engine that repeats."""

from concurrent import futures
import contextlib
import http.client
import json
import re
import socket
import struct
import time

import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.serving import body_limits
from speculative_t5x.serving import server as server_lib
from tests import vocabulary_kinds
from tests.serving import stub

PROMPT = 'né € 😀 end'  # characters of 1, 2, 3 and 4 bytes
IDS = stub.Vocabulary().encode('hi')


@pytest.fixture(scope='module')
def client():
  search = beam_search.BeamSearch(beams=4)
  with stub.serving(stub.Engine(), search=search) as client:
    yield client


def wait_until(holds):
  """Wait until something holds, which another thread brings about."""
  deadline = time.monotonic() + stub.WAIT
  while not holds():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def num_requests(server):
  return server.service.num_running + server.service.num_waiting


class TestAnswers:

  def test_an_answer(self, client):
    status, answer = client.post(prompt=PROMPT, max_tokens=64)
    assert status == 200
    (choice,) = answer['choices']
    assert choice == {
        'index': 0, 'text': PROMPT, 'finish_reason': 'stop', 'logprobs': None
    }  # fmt: skip
    size = len(PROMPT.encode()) + 1
    assert answer['usage'] == {
        'prompt_tokens': size,
        'completion_tokens': size,
        'total_tokens': 2 * size,
    }
    steps = -(-size // 2)
    assert answer['metrics']['speculative_decoding'] == {
        'mean_acceptance_length': 2.0,
        'draft_acceptance_rate': 0.5,
        'acceptance_histogram': [0, steps, 0, 0],
        'num_spec_steps': steps,
        'num_accepted_draft_tokens': steps,
        'num_draft_tokens': 2 * steps,
        'num_spec_tokens': stub.GAMMA,
    }

  @pytest.mark.parametrize(
      ('values', 'texts'),
      [
          ({'prompt': 'a' * 20}, ['a' * 16]),
          ({'prompt': 'a' * 20, 'max_tokens': 20}, ['a' * 20]),
          (
              {'prompt': ['a', 'b'], 'n': 2, 'temperature': 1, 'seed': 3},
              ['a (3, 0, 0)', 'a (3, 0, 1)', 'b (3, 1, 0)', 'b (3, 1, 1)'],
          ),
          (
              {'prompt': 'a', 'temperature': 1, 'seed': 2**40},
              [f'a (0, {2**9}, 0)'],
          ),
          ({'prompt': IDS}, ['hi']),
          ({'prompt': [IDS, IDS]}, ['hi', 'hi']),
          ({'prompt': ['a', 'b'], 'beams': 4, 'n': 2}, ['a', 'a', 'b', 'b']),
          ({'prompt': 'a', 'prediction': stub.PREDICTION}, ['a']),
          ({'prompt': IDS, 'prediction': stub.PREDICTION}, ['hi']),
      ],
  )  # fmt: skip
  def test_texts(self, client, values, texts):
    assert client.texts(**{'max_tokens': 16, **values}) == texts

  def test_a_drawn_seed_is_returned(self, client):
    _, first = client.post(prompt='a', temperature=1, max_tokens=64)
    _, again = client.post(
        prompt='a', temperature=1, max_tokens=64, seed=first['seed']
    )
    assert first['choices'] == again['choices']

  def test_alternatives(self, client):
    """The token itself is always there, bytes of a character by their piece."""
    _, answer = client.post(prompt='bzé', logprobs=2)
    (choice,) = answer['choices']
    found = choice['logprobs']
    assert found['tokens'] == ['b', 'z', '', 'é', '</s>']
    assert found['token_logprobs'] == [0, -1, -2, -3, -4]
    assert found['text_offset'] == [0, 1, 2, 2, 3]
    assert found['top_logprobs'] == [
        {'a': 0, 'b': 0},
        {'a': 0, 'b': -1, 'z': -1},
        {'a': 0, 'b': -1, '': -2},
        {'a': 0, 'b': -1, 'é': -3},
        {'a': 0, 'b': -1, '</s>': -4},
    ]

  def test_a_trace(self, client):
    """Of each token, after the draft token that was rejected in its place."""
    _, answer = client.post(prompt='né', return_trace=True)
    accepted = lambda text: {'text': text, 'kind': 'accepted'}
    drawn = lambda text: {'text': text, 'kind': 'drawn'}
    rejected = {'text': 'x', 'kind': 'rejected'}
    assert answer['choices'][0]['trace'] == [
        accepted('n'), rejected, drawn(''), accepted('é'), rejected, drawn('')
    ]  # fmt: skip

  def test_a_stop_text_ends_the_count(self, client):
    _, answer = client.post(prompt='one two', stop=['two', 'x'], max_tokens=30)
    (choice,) = answer['choices']
    assert choice['text'] == 'one ' and choice['finish_reason'] == 'stop'
    assert answer['usage']['completion_tokens'] == len('one two')
    assert answer['metrics'] == {'speculative_decoding': None}
    wait_until(lambda: not num_requests(client.server))

  def test_many_at_once(self, client):
    """No answer is mixed up with another."""
    def ask(number):
      if number % 2:
        found = client.events(prompt=f'number {number}', max_tokens=64)
        return ''.join(x['text'] for x in stub.by_choice(found)[0])
      return client.texts(prompt=f'number {number}', max_tokens=64)[0]

    with futures.ThreadPoolExecutor(12) as pool:
      found = list(pool.map(ask, range(60)))
    assert found == [f'number {i}' for i in range(60)]


class TestStreams:

  @pytest.mark.parametrize('by_token', [False, True])
  def test_events_are_the_answer(self, client, by_token):
    """Characters are whole, and choices are interleaved."""
    request = dict(
        prompt=[PROMPT, 'b'], n=2, temperature=1, seed=7, max_tokens=40,
        return_trace=by_token, logprobs=3 if by_token else None,
    )  # fmt: skip
    _, answer = client.post(**request)
    found = client.events(**request)
    assert found[-1] == '[DONE]'
    choices = stub.by_choice(found)
    for choice in answer['choices']:
      parts = choices[choice['index']]
      assert ''.join(x['text'] for x in parts) == choice['text']
      assert not any('\ufffd' in x['text'] for x in parts)
      *before, reason = [x['finish_reason'] for x in parts]
      assert not any(before) and reason == choice['finish_reason']
      if by_token:
        assert sum((x['trace'] for x in parts), []) == choice['trace']
        for name, values in choice['logprobs'].items():
          assert sum((x['logprobs'][name] for x in parts), []) == values
    heads = {tuple(sorted(x.keys() - {'choices'})) for x in found[:-1]}
    assert len(heads) == 1 and 'usage' not in found[0]
    assert {x['id'] for x in found[:-1]} == {found[0]['id']} != {answer['id']}

  @pytest.mark.parametrize('tokens_per_step', [1, 2, 5])
  def test_one_text_however_it_is_asked_for(self, tokens_per_step):
    """It continues the prompt, and has characters without all their bytes."""
    vocabulary, _ = vocabulary_kinds.vocabulary('byte_pieces')
    ids = vocabulary.encode('a\n😀a😀')
    del ids[5:6], ids[-1:]  # a byte of either emoji
    decoder = stub.Decoder(vocabulary=vocabulary, is_continued=True)
    engine = stub.Engine(tokens_per_step)
    with stub.serving(engine, decoder=decoder) as client:
      for stop, text in (
          (None, ' a\n\ufffda\ufffd'), ('\n', ' a'), ('\ufffda', ' a\n')
      ):  # fmt: skip
        for options in ({}, {'logprobs': 0}, {'return_trace': True}):
          request = dict(prompt=ids, stop=stop, max_tokens=64, **options)
          (choice,) = client.post(**request)[1]['choices']
          (parts,) = stub.by_choice(client.events(**request)).values()
          assert choice['text'] == ''.join(x['text'] for x in parts) == text
          if 'logprobs' in options:
            tokens = choice['logprobs']['tokens']
            assert ''.join(tokens).removesuffix('</s>') == text
            shown = [x['logprobs']['tokens'] for x in parts]
            assert sum(shown, []) == tokens

  def test_usage_comes_last(self, client):
    found = client.events(prompt='abc', stream_options={'include_usage': True})
    assert found.pop() == '[DONE]'
    last = found.pop()
    assert last['choices'] == [] and last['usage']['completion_tokens'] == 4
    assert last['metrics']['speculative_decoding']['num_spec_tokens'] == 3
    assert found and all(x['usage'] is None for x in found)


class TestErrors:

  @pytest.mark.parametrize(
      ('method', 'path', 'content', 'status'),
      [
          ('GET', '/nowhere', None, 404),
          ('GET', '/v1/models/other', None, 404),
          ('GET', '/v1/completions', None, 405),
          ('POST', '/v1/completions', b'{}', 400),
          ('POST', '/v1/completions', b'x', 400),
          ('POST', '/v1/completions', b'', 400),
          ('POST', '/v1/completions', b'[' * 10**5, 400),
          ('POST', '/v1/completions', b' ' * (1 << 21), 413),
          ('POST', '/v1/completions', b'{"prompt": "\xe9"}', 400),
          ('POST', '/v1/completions', b'"\\ud800"', 400),
          ('POST', '/v1/completions', b'{"\\ud800": NaN}', 400),
          ('POST', '/v1/completions', stub.body(prompt='a', model='b'), 404),
          ('POST', '/v1/completions', stub.body(prompt='a' * 80), 400),
          ('POST', '/v1/completions', stub.body(prompt='a', beams=3), 400),
          ('POST', '/v1/chat/completions', b'{}', 404),
      ],
  )  # fmt: skip
  def test_statuses(self, client, method, path, content, status):
    found, _, body = client.ask(method, path, content, stub.JSON)
    assert found == status
    error = json.loads(body)['error']
    assert error.keys() == {'message', 'type', 'param', 'code'}
    assert error['message']

  def test_a_body_of_another_type(self, client):
    content = stub.body(prompt='a')
    status, _, body = client.ask('POST', '/v1/completions', content)
    assert status == 400 and b'application/json' in body

  def test_a_key(self):
    with stub.serving(stub.Engine(), api_key='schlüssel') as client:
      for given in (None, 'Bearer', 'Bearer x', 'Basic schlüssel'):
        headers = {'Authorization': given.encode()} if given else {}
        status, answer = client.post(prompt='a', headers=headers)
        assert (status, answer['error']['code']) == (401, 'invalid_api_key')
      headers = {'Authorization': 'Bearer schlüssel'.encode()}
      assert client.post(prompt='a', headers=headers)[0] == 200
      assert client.get('/v1/models')[0] == 401
      assert client.get('/v1/no_path')[0] == 401
      # Its body is not read.
      assert client.ask('POST', '/v1/completions', b'{')[0] == 401
      assert client.get('/health')[0] == 200
      assert client.ask('HEAD', '/health')[0] == 200

  def test_a_lost_row_fails_its_request_alone(self, client):
    with futures.ThreadPoolExecutor(4) as pool:
      asked = [
          pool.submit(client.post, prompt=text, max_tokens=30)
          for text in ('a', stub.LOST, 'b', ['c', stub.LOST])
      ]
      answers = [each.result(stub.WAIT) for each in asked]
    assert [status for status, _ in answers] == [200, 500, 200, 500]
    assert 'Prompt 1' in answers[3][1]['error']['message']
    found = client.events(prompt=stub.LOST, max_tokens=30)
    assert 'nan' in found[-1]['error']['message']
    assert client.texts(prompt='a') == ['a']

  def test_a_dead_engine(self):
    """Fails what waits, at once, and all that comes."""
    engine = stub.Engine(is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(6) as pool:
      asked = [
          pool.submit(client.post, prompt='abcdefgh') for _ in range(5)
      ]
      streamed = pool.submit(client.events, prompt='abcdefgh')
      wait_until(lambda: num_requests(client.server) == 6)
      assert client.get('/health')[0] == 200
      engine.errors = [RuntimeError('the device is gone')]
      engine.steps.release()
      assert [x.result(stub.WAIT)[0] for x in asked] == [503] * 5
      assert 'gone' in streamed.result(stub.WAIT)[-1]['error']['message']
      assert client.get('/health')[0] == client.get('/ready')[0] == 503
      assert client.post(prompt='a')[0] == 503

  def test_a_full_queue(self):
    """Refuses at once and whole; what was accepted is answered."""
    engine = stub.Engine(is_held=True)
    with (
        stub.serving(engine, max_waiting=4) as client,
        futures.ThreadPoolExecutor(9) as pool,
    ):
      running = pool.submit(client.texts, prompt='r', n=stub.ROWS)
      wait_until(lambda: client.server.service.num_running == 1)
      waiting = pool.submit(client.texts, prompt=['a', 'b', 'c'])
      wait_until(lambda: client.server.service.num_waiting == 3)
      status, headers, body = client.ask(
          'POST', '/v1/completions', stub.body(prompt=['d', 'e']), stub.JSON
      )
      assert status == 429 and int(headers['retry-after']) >= 1
      assert json.loads(body)['error']['code'] == 'queue_full'
      assert client.server.service.num_waiting == 3
      assert client.post(prompt=['a'] * 3, n=2)[0] == 400  # never fits
      fits = pool.submit(client.texts, prompt='f')
      wait_until(lambda: client.server.service.num_waiting == 4)
      engine.steps.release(1000)
      assert running.result(stub.WAIT) == ['r'] * stub.ROWS
      assert waiting.result(stub.WAIT) == ['a', 'b', 'c']
      assert fits.result(stub.WAIT) == ['f']

  @pytest.mark.parametrize('is_streamed', [True, False])
  def test_a_client_that_leaves_frees_its_rows(self, is_streamed):
    """And others are not disturbed, nor is anything left behind."""
    engine = stub.Engine(tokens_per_step=1, is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(4) as pool:
      server = client.server
      long = 'stays' * 10
      stays = pool.submit(client.texts, prompt=long, max_tokens=64)
      for _ in range(10):
        wait_until(lambda: num_requests(server) == 1)
        connection = client.connect()
        connection.request(
            'POST', '/v1/completions',
            stub.body(prompt='leaves', stream=is_streamed), stub.JSON,
        )  # fmt: skip
        wait_until(lambda: num_requests(server) == 2)
        linger = struct.pack('ii', 1, 0)  # it is reset, not closed in order
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()
        wait_until(lambda: len(server._running) == 1)
        engine.steps.release()  # the loop returns, and learns of it
      engine.steps.release(10**6)
      assert stays.result(stub.WAIT) == [long]
      wait_until(lambda: not num_requests(server) and not server._running)
      _, metrics = client.get('/metrics')
      aborted = 'request_success_total{finished_reason="abort"}'
      assert _value(metrics, aborted) == 10
      assert _value(metrics, 'num_requests_running') == 0


# Of bodies that do not end.
UNENDED = [
    b'Content-Length: 99999\r\n\r\n{"model',
    b'Transfer-Encoding: chunked\r\n\r\n6\r\n{"mode\r\n',
]


@contextlib.contextmanager
def _sent(client, rest):
  """Send the rest of a request; yield the socket."""
  with socket.create_connection(('127.0.0.1', client.port), stub.WAIT) as sock:
    sock.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: x\r\n' + rest)
    yield sock


@pytest.mark.parametrize('rest', UNENDED)
def test_a_body_that_does_not_end(client, monkeypatch, rest):
  monkeypatch.setattr(body_limits, 'READ_S', 0.1)
  with _sent(client, rest) as sock:
    response = http.client.HTTPResponse(sock)
    response.begin()
    assert response.status == 408 and response.headers['connection'] == 'close'
    error = json.loads(response.read())['error']
    assert error['type'] == 'invalid_request_error'
    assert not sock.recv(1)


def test_what_takes_too_long_ends_with_an_error(monkeypatch):
  """And requests that do not end hold up nobody."""
  monkeypatch.setattr(server_lib, '_CLOSE_S', 1)
  engine = stub.Engine(is_held=True)
  with (
      stub.serving(engine, grace_s=0.2) as client,
      futures.ThreadPoolExecutor(4) as pool,
      _sent(client, UNENDED[0]),
  ):
    asked = pool.submit(client.post, prompt='abcdefgh')
    streamed = pool.submit(client.events, prompt='abcdefgh')
    wait_until(lambda: num_requests(client.server) == 2)
    client.process.should_exit = True
    status, answer = asked.result(stub.WAIT)
    assert status == 503 and 'ends' in answer['error']['message']
    assert 'ends' in streamed.result(stub.WAIT)[-1]['error']['message']
    engine.steps.release(99)
    client.thread.join(stub.WAIT)
    assert not client.thread.is_alive()


class TestOtherPaths:

  def test_plain_decoding_is_another_model(self):
    engine, plain_engine = stub.Engine(), stub.Engine()
    with (
        service_lib.Service(plain_engine) as plain,
        stub.serving(engine, plain=plain, examples=['a']) as client,
    ):
      first, second = json.loads(client.get('/v1/models')[1])['data']
      assert first['id'] == 'echo' and first['speculative']
      assert second['id'] == 'echo-plain' and not second['speculative']
      assert first['examples'] == ['a']
      assert json.loads(client.get('/v1/models/echo')[1]) == first
      _, answer = client.post(prompt='abc', model='echo-plain')
      assert answer['model'] == 'echo-plain'
      assert answer['choices'][0]['text'] == 'abc'
      assert plain_engine.num_steps and not engine.num_steps
      status, answer = client.post(
          prompt='abc', model='echo-plain', prediction=stub.PREDICTION
      )
      assert status == 400 and answer['error']['param'] == 'prediction'
      plain_engine.errors = [ValueError('broken')]
      client.post(prompt='abc', model='echo-plain')
      wait_until(lambda: not plain.is_alive)
      assert client.get('/health')[0] == 503

  def test_the_schema(self, client):
    _, document = client.get('/openapi.json')
    schemas = json.loads(document)['components']['schemas']
    fields = schemas['CompletionRequest']['properties']
    assert {'prompt', 'best_of'} <= fields.keys() and 'ErrorAnswer' in schemas
    assert client.get('/docs')[0] == client.get('/')[0] == 200

  def test_metrics(self):
    with stub.serving(stub.Engine()) as client:
      client.post(prompt='abcdefg', max_tokens=4)
      client.events(prompt='abcdefg')
      wait_until(lambda: not client.server._running)
      _, text = client.get('/metrics')
    expected = {
        'request_success_total{finished_reason="length"}': 1,
        'request_success_total{finished_reason="stop"}': 1,
        'prompt_tokens_total': 16,
        'generation_tokens_total': 12,
        'spec_decode_num_drafts_total': 6,
        'spec_decode_num_draft_tokens_total': 12,
        'spec_decode_num_accepted_tokens_total': 6,
        'e2e_request_latency_seconds_count': 2,
        'time_to_first_token_seconds_count': 2,
        'request_queue_time_seconds_count': 2,
        'num_requests_waiting': 0,
    }
    assert {name: _value(text, name) for name in expected} == expected

  def test_an_engine_that_hangs_is_not_ready(self, monkeypatch):
    engine = stub.Engine(is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(1) as pool:
      asked = pool.submit(client.texts, prompt='a')
      wait_until(lambda: client.server.service.num_running == 1)
      assert client.get('/ready')[0] == 200
      monkeypatch.setattr('speculative_t5x.serving.app.STALL_S', 0)
      assert client.get('/ready')[0] == 503
      assert client.get('/health')[0] == 200
      engine.steps.release(9)
      assert asked.result(stub.WAIT) == ['a']
      wait_until(lambda: client.get('/ready')[0] == 200)


def _value(metrics: str, name: str) -> float:
  found = re.search(
      rf'^speculative_t5x_{re.escape(name)} (.+)$', metrics, re.MULTILINE
  )
  return float(found[1]) if found else 0.0
