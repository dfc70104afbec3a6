# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers, streams and errors over sockets, by an engine that repeats."""

from concurrent import futures
import contextlib
import http.client
import json
import logging
import re
import socket
import struct
import threading
import time

import jax
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.serving import envelope
from speculative_t5x.serving import replies
from speculative_t5x.serving import server as server_lib
from tests import vocabulary_kinds
from tests.serving import stub

PROMPT = 'né € 😀 end'  # characters of 1, 2, 3 and 4 bytes


@pytest.fixture(scope='module')
def client():
  with stub.serving(stub.Engine()) as client:
    yield client


def wait_until(holds):
  """Wait until something holds, which another thread brings about."""
  deadline = time.monotonic() + stub.WAIT
  while not holds():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def num_requests(server):
  return server.service.num_running + server.service.num_waiting


def is_idle(server):
  return num_requests(server) == 0


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

  def test_16_tokens_unless_more_are_asked_for(self, client):
    _, answer = client.post(prompt='a' * 20)
    assert answer['choices'][0]['text'] == 'a' * 16
    assert answer['choices'][0]['finish_reason'] == 'length'

  def test_choices_of_prompts_in_their_order(self, client):
    texts = client.texts(prompt=['a', 'b'], n=2, temperature=1, seed=3)
    assert texts == [
        f'{text} (3, {number}, {i})'
        for number, text in enumerate('ab')
        for i in range(2)
    ]

  def test_equal_prompts_have_samples_of_their_own(self, client):
    sampled = dict(temperature=1, max_tokens=64, seed=5)
    texts = client.texts(prompt=['a', 'a'], **sampled)
    assert texts[0] != texts[1]
    assert client.texts(prompt='a', **sampled) == texts[:1]

  def test_beams(self, client):
    status, answer = client.post(prompt='a', beams=4)
    assert status == 400 and answer['error']['param'] == 'beams'
    search = beam_search.BeamSearch(beams=4)
    with stub.serving(stub.Engine(), search=search) as searching:
      asked = {'prompt': ['a', 'b'], 'beams': 4}
      assert searching.texts(**asked, n=2) == ['a', 'a', 'b', 'b']
      assert searching.texts(**asked, temperature=0) == ['a', 'b']
      for name, value in (
          ('temperature', 0.5),
          ('n', 5),
          ('logprobs', 0),
          ('return_trace', True),
          ('best_of', 4),
      ):
        status, answer = searching.post(**asked | {name: value})
        assert status == 400 and answer['error']['param'] == name

  def test_token_ids(self, client):
    ids = stub.Vocabulary().encode('hi')
    assert client.texts(prompt=ids) == ['hi']
    assert client.texts(prompt=[ids, ids]) == ['hi'] * 2

  def test_a_seed_decides_and_is_returned(self, client):
    for seed in (None, 2**40):
      sampled = dict(prompt='a', temperature=1, max_tokens=64)
      _, first = client.post(**sampled, seed=seed)
      _, again = client.post(**sampled, seed=first['seed'])
      assert first['choices'] == again['choices']
      assert seed in (None, first['seed'])
    texts = client.texts(**sampled, seed=2**40)
    assert texts == [f'a (0, {2**9}, 0)']

  def test_log_probabilities(self, client):
    _, answer = client.post(prompt='né', logprobs=0)
    (choice,) = answer['choices']
    found = choice['logprobs']
    assert found['tokens'] == ['n', '', 'é', '</s>']
    assert found['token_logprobs'] == [0, -1, -2, -3]
    assert found['text_offset'] == [0, 1, 1, 2]
    assert found['top_logprobs'] == [
        {x: y} for x, y in zip(found['tokens'], found['token_logprobs'])
    ]

  def test_alternatives(self, client):
    """The token itself is always there, bytes of a character by their piece."""
    _, answer = client.post(prompt='bzé', logprobs=2)
    (choice,) = answer['choices']
    found = choice['logprobs']
    assert found['tokens'] == ['b', 'z', '', 'é', '</s>']
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

  @pytest.mark.parametrize('is_streamed', [False, True])
  def test_stops(self, client, is_streamed):
    request = dict(prompt='one two three', stop=['two', 'x'], max_tokens=30)
    if is_streamed:
      found = client.events(**request, stream_options={'include_usage': True})
      assert found.pop() == '[DONE]'
      *parts, totals = found
      choices = [x['choices'][0] for x in parts]
    else:
      _, totals = client.post(**request)
      choices = totals['choices']
    assert ''.join(x['text'] for x in choices) == 'one '
    assert choices[-1]['finish_reason'] == 'stop'
    assert totals['usage']['completion_tokens'] == len('one two')
    assert totals['metrics'] == {'speculative_decoding': None}
    wait_until(lambda: is_idle(client.server))

  @pytest.mark.parametrize('is_streamed', [False, True])
  def test_counting_predictions_holds_up_nobody(
      self, client, monkeypatch, is_streamed
  ):
    """It takes seconds where both are long."""
    is_counting, may_go_on = threading.Event(), threading.Event()

    def count(one, other):
      is_counting.set()
      assert may_go_on.wait(stub.WAIT)
      return 0

    monkeypatch.setattr(replies, 'num_common', count)
    values = dict(
        prompt='a', prediction={'type': 'content', 'content': 'a'}
    )
    if is_streamed:
      values['stream_options'] = {'include_usage': True}
    ask = client.events if is_streamed else client.post
    with futures.ThreadPoolExecutor(1) as pool:
      answer = pool.submit(ask, **values)
      assert is_counting.wait(stub.WAIT)
      try:
        assert client.get('/health')[0] == 200
      finally:
        may_go_on.set()
      assert answer.result(stub.WAIT)

  @pytest.mark.parametrize('is_text', [True, False])
  def test_predictions(self, client, is_text):
    """For a prompt of token ids, a prediction is a text too."""
    prompt = 'one two three'
    _, answer = client.post(
        prompt=prompt if is_text else stub.Vocabulary().encode(prompt),
        prediction={'type': 'content', 'content': 'one three four'},
        max_tokens=30,
    )
    details = answer['usage']['completion_tokens_details']
    assert details == {
        'accepted_prediction_tokens': len('one three') + 1,
        'rejected_prediction_tokens': len(' four'),
    }

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

  def test_tokens_come_before_the_end(self):
    engine = stub.Engine(is_held=True)
    with stub.serving(engine) as client:
      with client.streamed(prompt='abcdefgh') as response:
        for expected in ('abcd', 'efgh'):
          engine.steps.release()
          event = response.readline().decode()
          text = json.loads(event.removeprefix('data: '))['choices'][0]['text']
          assert text == expected
          assert response.readline() == b'\n'
        engine.steps.release(9)
        assert b'[DONE]' in response.read()


class TestErrors:

  @pytest.mark.parametrize(
      ('method', 'path', 'content', 'headers', 'status'),
      [
          ('GET', '/nowhere', None, {}, 404),
          ('GET', '/v1/models/', None, {}, 404),
          ('GET', '/v1/models/other', None, {}, 404),
          ('GET', '/v1/completions', None, {}, 405),
          ('DELETE', '/health', None, {}, 405),
          ('POST', '/v1/completions', b'{}', {}, 415),
          ('POST', '/v1/completions', b'{}', stub.JSON, 400),
          ('POST', '/v1/completions', b'x', stub.JSON, 400),
          ('POST', '/v1/completions', b'', stub.JSON, 400),
          ('POST', '/v1/completions', b' ' * (1 << 21), stub.JSON, 413),
          ('POST', '/v1/completions', b'{"prompt": "\xe9"}', stub.JSON, 400),
          ('POST', '/v1/completions', b'"\\ud800"', stub.JSON, 400),
          ('POST', '/v1/completions', b'{"n": NaN}', stub.JSON, 400),
          ('POST', '/v1/chat/completions', b'{}', stub.JSON, 404),
          (
              'POST', '/v1/completions', stub.body(prompt=[258]),
              stub.JSON, 200,
          ),
          (
              'POST', '/v1/completions', stub.body(prompt='a', model='b'),
              stub.JSON, 404,
          ),
      ],
  )  # fmt: skip
  def test_statuses(self, client, method, path, content, headers, status):
    found, answered, body = client.ask(method, path, content, headers)
    assert found == status
    assert answered['x-request-id'].startswith('req-')
    if status != 200:
      error = json.loads(body)['error']
      assert error.keys() == {'message', 'type', 'param', 'code'}
      assert error['message']

  @pytest.mark.parametrize(
      'values',
      [
          {'prompt': 'a' * 80}, {'prompt': 'a' * 9999}, {'prompt': [9] * 81},
          {'prompt': 'a', 'max_tokens': 65},
      ],
  )  # fmt: skip
  def test_what_is_too_long_names_the_setting(self, client, values):
    status, answer = client.post(**values)
    assert status == 400
    assert 'TASK_FEATURE_LENGTHS' in answer['error']['message']

  def test_a_key(self):
    with stub.serving(stub.Engine(), api_key='schlüssel') as client:
      for given in (None, 'Bearer', 'Bearer x', 'Basic schlüssel'):
        headers = {'Authorization': given.encode()} if given else {}
        status, answer = client.post(prompt='a', headers=headers)
        assert (status, answer['error']['code']) == (401, 'invalid_api_key')
      headers = {'Authorization': 'Bearer schlüssel'.encode()}
      assert client.post(prompt='a', headers=headers)[0] == 200
      assert client.get('/v1/models')[0] == 401
      assert client.get('/health')[0] == 200

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

  def test_a_device_that_fails(self):
    """Ends the requests that it decoded, and no others."""
    engine = stub.Engine(is_held=True)
    error = jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: no memory')
    engine.errors = [error]
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(2) as pool:
      asked = pool.submit(client.post, prompt='a', n=stub.ROWS)
      wait_until(lambda: client.server.service.num_running == 1)
      streamed = pool.submit(client.events, prompt='b')
      wait_until(lambda: num_requests(client.server) == 2)
      engine.steps.release(99)
      status, answer = asked.result(stub.WAIT)
      assert status == 500 and 'RESOURCE' in answer['error']['message']
      found = streamed.result(stub.WAIT)
      assert stub.by_choice(found)[0][0]['text'] == 'b'
      assert client.get('/ready')[0] == 200

  def test_a_dead_engine(self):
    """Fails what waits, at once, and all that comes."""
    engine = stub.Engine(is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(6) as pool:
      asked = [
          pool.submit(client.post, prompt='abcdefgh') for _ in range(5)
      ]
      streamed = pool.submit(client.events, prompt='abcdefgh')
      service = client.server.service
      # Open ones may not have reached it yet.
      wait_until(lambda: service.num_running + service.num_waiting == 6)
      assert client.get('/health')[0] == 200
      engine.errors = [RuntimeError('the device is gone')]
      engine.steps.release()
      assert [x.result(stub.WAIT)[0] for x in asked] == [503] * 5
      assert 'gone' in streamed.result(stub.WAIT)[-1]['error']['message']
      assert client.get('/health')[0] == client.get('/ready')[0] == 503
      assert client.post(prompt='a')[0] == 503


class TestQueue:

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
      assert json.loads(body)['error']['type'] == 'rate_limit_error'
      assert client.server.service.num_waiting == 3
      # Before it is tokenized.
      assert client.post(prompt=['a' * 80, 'b'])[0] == 429
      fits = pool.submit(client.texts, prompt='f')
      wait_until(lambda: client.server.service.num_waiting == 4)
      assert client.post(prompt=['a'] * 3, n=2)[0] == 400  # never fits
      engine.steps.release(1000)
      assert running.result(stub.WAIT) == ['r'] * stub.ROWS
      assert waiting.result(stub.WAIT) == ['a', 'b', 'c']
      assert fits.result(stub.WAIT) == ['f']

  def test_equal_request_ids_are_labels(self, client, caplog):
    headers = {'X-Request-Id': 'mine'}
    with caplog.at_level(logging.INFO, 'speculative_t5x.serving'):
      with futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(
            lambda x: client.post(prompt=x, headers=headers), ('a', 'b')
        )
        texts = [x['choices'][0]['text'] for _, x in found]
    assert texts == ['a', 'b']
    wait_until(lambda: caplog.text.count('mine POST /v1/completions 200') == 2)

  @pytest.mark.parametrize('own', ['a' * 129, 'a\tb', 'é'])
  def test_ids_that_a_log_does_not_take(self, client, own):
    headers = {'X-Request-Id': own.encode()}
    _, answered, _ = client.ask('HEAD', '/health', headers=headers)
    assert re.fullmatch('req-[0-9a-f]{32}', answered['x-request-id'])


class TestClientsThatLeave:

  @pytest.mark.parametrize('is_streamed', [True, False])
  def test_their_rows_are_freed(self, is_streamed):
    """And others are not disturbed, nor is anything left behind."""
    engine = stub.Engine(tokens_per_step=1, is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(4) as pool:
      server = client.server
      long = 'stays' * 10
      stays = pool.submit(client.texts, prompt=long, max_tokens=64)
      for _ in range(30):
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
        wait_until(lambda: server.num_open == 1)
        engine.steps.release()  # the loop returns, and learns of it
      engine.steps.release(10**6)
      assert stays.result(stub.WAIT) == [long]
      wait_until(lambda: is_idle(server))
      assert server.num_open == 0 and not server._running
      _, metrics = client.get('/metrics')
      aborted = 'request_success_total{finished_reason="abort"}'
      assert _value(metrics, aborted) == 30
      assert _value(metrics, 'num_requests_running') == 0

  def test_a_reader_that_stops(self, monkeypatch):
    """Nobody waits for it, and it is cut off in the end."""
    monkeypatch.setattr(server_lib, 'STALL_S', 0.5)
    with (
        _small_buffers(),
        stub.serving(stub.Engine(), max_waiting=2000) as client,
    ):
      with _stopped_reader(client):
        assert client.texts(prompt='other') == ['other']
        wait_until(lambda: client.server.num_open == 0)
      wait_until(lambda: is_idle(client.server))

  def test_a_reader_that_stops_holds_up_no_end(self, monkeypatch):
    monkeypatch.setattr(server_lib, '_CLOSE_S', 0.1)
    with (
        _small_buffers(),
        stub.serving(stub.Engine(), max_waiting=2000, grace_s=0) as client,
        _stopped_reader(client),
    ):
      server = client.server
      wait_until(lambda: server._running and is_idle(server))
      server.is_draining = True
      wait_until(lambda: server.num_open == 0)
    assert not server._running


HEAD = (
    b'POST /v1/completions HTTP/1.1\r\nHost: x\r\n'
    b'Content-Type: application/json\r\n'
)
# Of bodies that do not end.
UNENDED = [
    HEAD + b'Content-Length: 99999\r\n\r\n{"model',
    HEAD + b'Transfer-Encoding: chunked\r\n\r\n6\r\n{"mode\r\n',
]


@contextlib.contextmanager
def _sent(client, content: bytes):
  """Send bytes to a server; yield the socket."""
  with socket.create_connection(('127.0.0.1', client.port), stub.WAIT) as sock:
    sock.sendall(content)
    yield sock


def _response(sock):
  """Return status, headers and body of a response."""
  response = http.client.HTTPResponse(sock)
  response.begin()
  return response.status, response.headers, response.read()


class TestRequestsThatDoNotEnd:

  @pytest.mark.parametrize('content', UNENDED)
  def test_a_body(self, client, monkeypatch, content):
    monkeypatch.setattr(envelope, 'READ_S', 0.1)
    with _sent(client, content) as sock:
      status, headers, body = _response(sock)
      assert status == 408 and headers['connection'] == 'close'
      assert json.loads(body)['error']['type'] == 'invalid_request_error'
      assert not sock.recv(1)
    wait_until(lambda: client.server.num_open == 0)

  @pytest.mark.parametrize(
      'content',
      [
          b'',
          b'POST /v1/completions HTTP/1.1\r\nHost: x\r\n',
          b'GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /he',
      ],
  )
  def test_headers(self, client, monkeypatch, content):
    monkeypatch.setattr(envelope, 'READ_S', 0.1)
    with _sent(client, content) as sock:
      while sock.recv(1000):
        pass

  def test_a_body_of_a_request_that_was_answered(self, client, monkeypatch):
    """Though some of it comes now and then."""
    monkeypatch.setattr(envelope, 'READ_S', 0.1)
    content = UNENDED[0].replace(b'completions', b'nowhere')
    with _sent(client, content) as sock:
      assert _response(sock)[0] == 404
      with pytest.raises(OSError):
        for _ in range(90000):
          sock.sendall(b'a')
          time.sleep(0.01)

  @pytest.mark.parametrize('content', UNENDED)
  def test_the_end_of_the_server(self, content, caplog):
    """Does not wait for them."""
    with stub.serving(stub.Engine()) as client, _sent(client, content) as sock:
      server = client.server
      wait_until(lambda: server.num_open == 1 and server.num_running == 0)
      server.is_draining = True
      status, _, body = _response(sock)
      assert status == 503 and b'ends' in body
    assert not caplog.records

  def test_a_client_that_leaves(self, client, caplog):
    with _sent(client, UNENDED[0]):
      wait_until(lambda: client.server.num_open == 1)
    wait_until(lambda: client.server.num_open == 0)
    assert not caplog.records


@contextlib.contextmanager
def _stopped_reader(client):
  """Ask for a stream that is longer than buffers, and do not read it."""
  content = stub.body(
      prompt=['abcdefgh' * 7] * 16, n=16, stream=True, return_trace=True,
      max_tokens=64,
  )  # fmt: skip
  sock = socket.socket()
  sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
  sock.connect(('127.0.0.1', client.port))
  with contextlib.closing(sock):
    sock.sendall(
        HEAD + b'Content-Length: %d\r\n\r\n' % len(content) + content
    )
    wait_until(lambda: client.server.num_open == 1)
    yield


@contextlib.contextmanager
def _small_buffers():
  """Have servers send little that is not read."""
  bind = server_lib.bind

  def small(*address):
    bound = bind(*address)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return bound

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(server_lib, 'bind', small)
    yield


class TestEnd:

  def test_what_runs_is_finished(self):
    engine = stub.Engine(is_held=True)
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(4) as pool:
      asked = pool.submit(client.texts, prompt='abcdefgh')
      streamed = pool.submit(client.events, prompt='abcdefgh')
      wait_until(lambda: num_requests(client.server) == 2)
      client.server.is_draining = True
      status, answer = client.post(prompt='new')
      assert status == 503 and 'ends' in answer['error']['message']
      assert client.get('/ready')[0] == 503
      assert client.get('/health')[0] == 200
      engine.steps.release(99)
      assert asked.result(stub.WAIT) == ['abcdefgh']
      assert streamed.result(stub.WAIT)[-1] == '[DONE]'

  def test_what_takes_too_long_ends_with_an_error(self):
    engine = stub.Engine(is_held=True)
    with (
        stub.serving(engine, grace_s=0.2) as client,
        futures.ThreadPoolExecutor(4) as pool,
    ):
      asked = pool.submit(client.post, prompt='abcdefgh')
      streamed = pool.submit(client.events, prompt='abcdefgh')
      wait_until(lambda: num_requests(client.server) == 2)
      client.server.is_draining = True
      status, answer = asked.result(stub.WAIT)
      assert status == 503 and 'ends' in answer['error']['message']
      assert 'ends' in streamed.result(stub.WAIT)[-1]['error']['message']
      engine.steps.release(99)


class TestOtherPaths:

  def test_models(self, client):
    _, listed = client.get('/v1/models')
    (model,) = json.loads(listed)['data']
    assert model['id'] == 'echo' and model['object'] == 'model'
    assert json.loads(client.get('/v1/models/echo')[1]) == model
    assert model['speculative'] and model['max_tokens'] == stub.MAX_TOKENS

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
      _, answer = client.post(prompt='abc', model='echo-plain')
      assert answer['model'] == 'echo-plain'
      assert answer['choices'][0]['text'] == 'abc'
      assert plain_engine.num_steps and not engine.num_steps
      prediction = {'type': 'content', 'content': 'a'}
      status, answer = client.post(
          prompt='abc', model='echo-plain', prediction=prediction
      )
      assert status == 400 and answer['error']['param'] == 'prediction'
      assert client.post(prompt='abc', prediction=prediction)[0] == 200
      plain_engine.errors = [ValueError('broken')]
      client.post(prompt='abc', model='echo-plain')
      wait_until(lambda: not plain.is_alive)
      assert client.get('/health')[0] == 503

  def test_the_page_is_not_kept(self, client):
    status, headers, content = client.ask('GET', '/')
    assert status == 200 and content.startswith(b'<!doctype html>')
    assert headers['content-type'] == 'text/html; charset=utf-8'
    assert headers['cache-control'] == 'no-cache'

  def test_the_schema(self, client):
    _, document = client.get('/openapi.json')
    schemas = json.loads(document)['components']['schemas']
    fields = schemas['CompletionRequest']['properties']
    assert {'prompt', 'best_of'} <= fields.keys() and 'ErrorAnswer' in schemas
    assert client.get('/docs')[0] == 200

  def test_metrics(self):
    with stub.serving(stub.Engine()) as client:
      client.post(prompt='abcdefg', max_tokens=4)
      client.events(prompt='abcdefg')
      client.post(prompt='a', max_tokens=0)
      wait_until(lambda: client.server.num_open == 0)
      _, text = client.get('/metrics')
    expected = {
        'http_responses_total{status="200"}': 2,
        'http_responses_total{status="400"}': 1,
        'request_success_total{finished_reason="length"}': 1,
        'request_success_total{finished_reason="stop"}': 1,
        'prompt_tokens_total': 16,
        'generation_tokens_total': 12,
        'spec_decode_num_drafts_total': 6,
        'spec_decode_num_draft_tokens_total': 12,
        'spec_decode_num_accepted_tokens_total': 6,
        'spec_decode_num_accepted_tokens_per_pos_total{position="0"}': 6,
        'spec_decode_num_accepted_tokens_per_pos_total{position="1"}': 0,
        'spec_decode_mean_accepted_length': 2,
        'spec_decode_draft_acceptance_rate': 0.5,
        'e2e_request_latency_seconds_count': 2,
        'time_to_first_token_seconds_count': 2,
        'request_queue_time_seconds_count': 2,
        'num_requests_waiting': 0,
    }
    assert {name: _value(text, name) for name in expected} == expected

  def test_the_wall_clock_may_step(self, monkeypatch):
    """By a day, either way, within a request: durations do not see it."""
    engine, begun = stub.Engine(is_held=True), time.monotonic()
    real, step = time.time, [0.0]
    monkeypatch.setattr(time, 'time', lambda: real() + step[0])
    with stub.serving(engine) as client, futures.ThreadPoolExecutor(2) as pool:
      asked = [
          pool.submit(client.events, prompt='abcdefgh'),
          pool.submit(client.texts, prompt='abcdefgh'),
      ]
      wait_until(lambda: num_requests(client.server) == 2)
      for step[0] in (86400.0, -86400.0):
        engine.steps.release()
      engine.steps.release(99)
      assert [x.result(stub.WAIT) for x in asked][1] == ['abcdefgh']
      wait_until(lambda: client.server.num_open == 0)
      _, text = client.get('/metrics')
      assert client.get('/ready')[0] == 200
    for name in ('e2e_request_latency', 'time_to_first_token'):
      seconds = _value(text, f'{name}_seconds_sum')  # of two requests
      assert 0 < seconds < 2 * (time.monotonic() - begun)

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


@pytest.mark.parametrize('is_loading', [True, False])
def test_a_port_that_is_taken(is_loading):
  with server_lib.bind('127.0.0.1', 0) as other:
    port = other.getsockname()[1]
    if not is_loading:
      server_lib.listen(other)
    with pytest.raises(ValueError, match=f'Port {port} '):
      server_lib.bind('127.0.0.1', port)
