# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server whose engine repeats its input, and clients without a library.

The vocabulary is bytes, so that a character may have several tokens. As a
program it serves: python -m tests.serving.stub <port>.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import http.client
import json
import sys
import threading
import time
import types

import numpy as np

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import vocabularies
from speculative_t5x.serving import app
from speculative_t5x.serving import server as server_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome

WAIT = 300  # seconds: a test that hangs must fail
MAX_TOKENS, INPUTS, ROWS, GAMMA = 64, 80, 3, 3
_END, _FIRST = 1, 3  # ids of the end and of byte 0
# The input with it has an output that is lost, as of logits that are NaN.
LOST = 'lost'


class Vocabulary(vocabularies.Vocabulary):
  """Bytes."""

  num_ids = 256 + _FIRST
  eos_id = _END

  def _encode(self, text: str) -> list[int]:
    return [byte + _FIRST for byte in text.encode()]

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    return bytes([i - _FIRST]) if i >= _FIRST else None

  def id_to_piece(self, i: int) -> str:
    return '</s>' if i == _END else self.decode([i])


class Decoder:
  """What the server needs of a decoder of texts, and of one of token ids."""

  def __init__(
      self,
      vocabulary: vocabularies.Vocabulary | None = None,
      is_continued: bool = False,
  ):
    self.vocabulary = vocabulary or Vocabulary()
    self.inputs_form = inputs_form.InputsForm(is_continued=is_continued)
    self.options = types.SimpleNamespace(
        max_tokens=MAX_TOKENS, inputs_length=INPUTS, hints_length=None
    )
    self.target_model = types.SimpleNamespace(
        vocab_size=self.vocabulary.num_ids, special_ids=contracts.SpecialIds(1)
    )
    self.tokens = types.SimpleNamespace(
        options=self.options,
        target_model=self.target_model,
        reads_hints=True,
        tokenized=self.of_ids,
    )

  text = text_decoder.TextDecoder.text
  detokenizer = text_decoder.TextDecoder.detokenizer

  def tokenized(self, request, number, name) -> pending_lib.Pending:
    ids = self.vocabulary.encode(request.inputs)
    hints = hints_lib.encode(request.hints, self.vocabulary)
    ids, is_truncated = [*ids, _END][:INPUTS], len(ids) >= INPUTS
    values = {**vars(request), 'inputs': ids, 'hints': hints}
    return pending_lib.Pending(request_lib.Request(**values), is_truncated)

  def of_ids(self, request, number, name) -> pending_lib.Pending:
    if not all(0 <= i < self.vocabulary.num_ids for i in request.inputs):
      raise ValueError(f'{name} has ids that there are not.')
    return pending_lib.Pending(request)


def output(request: request_lib.Request, number: int) -> list[int]:
  """Return the tokens of an output: the input, and what decides a sample."""
  ids = [i for i in request.inputs if i != _END]
  if request.sampling.temperature:
    key = request.seed, request.example_id, number
    ids += Vocabulary().encode(f' {key}')
  return [*ids, _END][: request.max_tokens]


def decode(request: request_lib.Request, number: int) -> results.Decode:
  """Return an output: per target call, two draft tokens, one rejected."""
  tokens = output(request, number)
  origins = [
      outcome.ACCEPTED if i % 2 == 0 else _FIRST + ord('x')
      for i in range(len(tokens))
  ]
  num_calls = -(-len(tokens) // 2)
  histogram = lambda at: np.eye(GAMMA + 1, dtype=np.int32)[at] * num_calls
  return results.Decode(
      tokens,
      np.zeros(len(tokens), np.float32),
      -np.arange(len(tokens), dtype=np.float32),
      np.array(origins, np.int32),
      number,
      tokens[-1] == _END,
      0.0,
      num_calls,
      outcome.Statistics(
          histogram(1),
          histogram(2),
          histogram(2),
          np.int32(2 * num_calls),
          np.int32(0),
      ),
      alternatives=_alternatives(request, len(tokens)),
  )


def _alternatives(request, count) -> outcome.Alternatives | None:
  """Return the same likeliest bytes at each place: a, b, and on."""
  if not request.alternatives:
    return None
  order = np.arange(request.alternatives)
  rows = np.ones((count, 1))
  return outcome.Alternatives(
      (rows * (order + _FIRST + ord('a'))).astype(np.int32),
      (rows * -order).astype(np.float32),
  )


def _end(work: pending_lib.Pending, number: int) -> None:
  """End a decode of a request."""
  work.decodes[number] = decode(work.request, number)
  if LOST in Vocabulary().decode(work.decodes[number].tokens):
    work.error = ValueError('Row 0 has log-probability nan.')


class Rows:
  """Rows that write some tokens at each return."""

  def __init__(self, engine: 'Engine'):
    self._engine = engine
    self._places: list[list] = []  # work, number, tokens so far

  @property
  def is_idle(self) -> bool:
    return not self._places

  def fill(self, waiting: list[pending_lib.Pending]) -> None:
    while waiting and len(self._places) < ROWS:
      work = waiting[0]
      self._places.append([work, work.num_begun, 0])
      work.num_begun += 1
      if work.is_begun:
        waiting.pop(0)

  def advance(self, returns_early: bool, limit: int) -> None:
    assert self._engine.steps.acquire(timeout=WAIT)
    if self._engine.errors:
      raise self._engine.errors.pop(0)
    self._engine.num_steps += 1
    time.sleep(self._engine.step_s)

  def ended(self) -> Iterator[pending_lib.Pending]:
    self._places = [x for x in self._places if not x[0].is_cancelled]
    for place in list(self._places):
      work, number, _ = place
      place[2] += self._engine.tokens_per_step
      whole = decode(work.request, number)
      if place[2] < len(whole.tokens):
        continue
      self._places.remove(place)
      _end(work, number)
      if work.has_ended:
        yield work

  def committed(self):
    for work, number, count in self._places:
      whole = decode(work.request, number)
      names = 'tokens', 'log_probs', 'model_log_probs', 'origins'
      yield work, number, dataclasses.replace(
          whole,
          **{name: getattr(whole, name)[:count] for name in names},
          has_end=False,
          alternatives=_alternatives(work.request, count),
          is_whole=False,
      )


@dataclasses.dataclass
class Engine:
  """An engine of these rows.

  Attributes:
    tokens_per_step: Tokens that a row writes per step.
    is_held: Whether steps wait until a test releases `steps`.
    step_s: Seconds per step.
    errors: Are raised by the next steps.
  """

  tokens_per_step: int = 4
  is_held: bool = False
  step_s: float = 0.0
  errors: list[Exception] = dataclasses.field(default_factory=list)
  num_steps: int = 0

  def __post_init__(self):
    self.steps = threading.Semaphore(0 if self.is_held else 10**9)
    # Of an engine that decodes a stream.
    self.counters = counts.Counts()
    self.is_warm, self.compile_s = True, None

  def new_runs(self) -> Rows:
    return Rows(self)

  def pending(self, request, number) -> pending_lib.Pending:
    return pending_lib.Pending(request)

  def stream_ended(self, requests) -> Iterator[pending_lib.Pending]:
    for number, request in enumerate(requests):
      work = self.pending(request, number)
      for decode_number in range(request.num_decodes):
        _end(work, decode_number)
      yield work

  def result(self, work: pending_lib.Pending) -> results.Result:
    if work.error is not None:
      raise work.error
    # In another order than that of their numbers, as by scores.
    decodes = [work.decodes[i] for i in reversed(sorted(work.decodes))]
    return results.Result([], [], np.zeros(0), {}, decodes=decodes)


@contextlib.contextmanager
def serving(
    engine: Engine,
    max_waiting: int = 50,
    grace_s: float = 30,
    decoder: Decoder | None = None,
    **settings,
) -> Iterator['Client']:
  """Serve by an engine, in threads; yield a client."""
  sock = server_lib.listen('127.0.0.1', 0)
  with service_lib.Service(engine, max_waiting) as service:
    decoder = decoder or Decoder()
    server = app.Server(decoder, service, 'echo', 'fp_0', **settings)
    process = server_lib.Process(server, grace_s)
    thread = threading.Thread(target=process.run, args=([sock],), daemon=True)
    thread.start()
    try:
      yield Client(sock.getsockname()[1], server, process, thread)
    finally:
      process.should_exit = True
      thread.join(WAIT)
      assert not thread.is_alive()


@dataclasses.dataclass
class Client:
  """Requests by the standard library alone.

  Attributes:
    port: Of the server.
    server: The server.
    process: Runs it.
    thread: The thread that runs it.
  """

  port: int
  server: app.Server | None = None
  process: server_lib.Process | None = None
  thread: threading.Thread | None = None

  @property
  def url(self) -> str:
    return f'http://127.0.0.1:{self.port}'

  def connect(self) -> http.client.HTTPConnection:
    return http.client.HTTPConnection('127.0.0.1', self.port, timeout=WAIT)

  def ask(self, method, path, body=None, headers=()):
    """Return status, headers and body of a response."""
    connection = self.connect()
    with contextlib.closing(connection):
      connection.request(method, path, body, dict(headers))
      response = connection.getresponse()
      return response.status, response.headers, response.read()

  def get(self, path, **headers):
    """Return status and text of a response."""
    status, _, body = self.ask('GET', path, headers=headers)
    return status, body.decode()

  def post(self, headers=(), **values):
    """Return status and JSON of a completion."""
    status, _, content = self.ask(
        'POST', '/v1/completions', body(**values), {**JSON, **dict(headers)}
    )
    return status, json.loads(content)

  def texts(self, **values) -> list[str]:
    """Return the texts of a completion."""
    status, answer = self.post(**values)
    assert status == 200, answer
    return [choice['text'] for choice in answer['choices']]

  @contextlib.contextmanager
  def streamed(self, **values):
    """Begin a stream; yield its response."""
    connection = self.connect()
    with contextlib.closing(connection):
      connection.request(
          'POST', '/v1/completions', body(stream=True, **values), JSON
      )
      response = connection.getresponse()
      with response:
        yield response

  def events(self, **values) -> list[dict | str]:
    """Return the events of a stream."""
    with self.streamed(**values) as response:
      return events(response.read())


JSON = {'Content-Type': 'application/json'}
PREDICTION = {'type': 'content', 'content': 'a b'}


def body(**values) -> bytes:
  """Return the body of a request."""
  return json.dumps({'model': 'echo', 'temperature': 0, **values}).encode()


def events(content: bytes) -> list[dict | str]:
  """Return the events of the body of a stream."""
  lines = content.decode().split('\n\n')
  assert lines.pop() == ''
  assert all(line.startswith('data: ') for line in lines)
  values = [line.removeprefix('data: ') for line in lines]
  return [x if x == '[DONE]' else json.loads(x) for x in values]


def by_choice(found: list[dict | str]) -> dict[int, list[dict]]:
  """Return the choices of the events of a stream, by their number."""
  choices = {}
  for event in found:
    for choice in event['choices'] if isinstance(event, dict) else ():
      choices.setdefault(choice['index'], []).append(choice)
  return choices


def main() -> None:
  """Serve at a port, with steps so slow that a signal comes between them."""
  sock = server_lib.listen('127.0.0.1', int(sys.argv[1]))
  engine = Engine(tokens_per_step=1, step_s=0.02)
  with service_lib.Service(engine) as service:
    server = app.Server(Decoder(), service, 'echo', 'fp_0')
    print(sock.getsockname()[1], flush=True)
    server_lib.Process(server, grace_s=30).run(sockets=[sock])


if __name__ == '__main__':
  main()
