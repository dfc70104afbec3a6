# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests from many threads, cancelled ones, full queues, lost rows."""

from concurrent import futures
import dataclasses
import itertools
import threading
import time

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import rows as rows_lib
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.speculation import sampling
from tests.decoder import engine_test

WAIT = 120  # seconds: a test that hangs must fail


@pytest.fixture
def service():
  with service_lib.Service(engine_test.engine()) as service:
    yield service


def test_results_are_those_of_a_stream(service):
  """From eight threads at once."""
  requests = list(engine_test.random_requests(1, 40))
  expected = list(engine_test.engine().stream(requests))

  def decode(number):
    return service.submit(requests[number]).result(WAIT)

  with futures.ThreadPoolExecutor(8) as pool:
    found = list(pool.map(decode, range(len(requests))))
  for one, other in zip(found, expected, strict=True):
    assert one.tokens == other.tokens
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-5)


def test_searches_beside_samples(service):
  requests = list(engine_test.random_searches(2, 8))
  handles = [service.submit(each) for each in requests]
  for request, handle in zip(requests, handles, strict=True):
    result = handle.result(WAIT)
    if request.search is not None:
      engine_test.check_search(result, request)
    assert len(result.decodes) == request.num_outputs


def test_tokens_grow_up_to_the_result(service):
  seen = []
  handle = service.submit(
      request_lib.Request([5, 9, 20, 1], max_tokens=12),
      on_tokens=lambda number, committed: seen.append((number, committed)),
  )
  (decode,) = handle.result(WAIT).decodes
  for number, committed in seen:
    size = len(committed.tokens)
    assert number == 0 and committed.tokens == decode.tokens[:size]
    for name in ('log_probs', 'model_log_probs', 'origins'):
      expected = getattr(decode, name)[:size]
      np.testing.assert_array_equal(getattr(committed, name), expected)
  sizes = [len(each.tokens) for _, each in seen]
  assert sizes == sorted(sizes)
  # A result has the last target calls.
  assert len(sizes) == (decode.num_calls - 1) // service_lib._TOLD_STEPS


def test_a_decode_that_ends_before_the_others_is_told_once(service):
  told = []
  handle = service.submit(
      request_lib.Request(
          [5, 9, 20, 1], sampling=sampling.Sampling(1.0), num_decodes=6
      ),
      on_tokens=lambda _, x: told.append(x),
  )
  decodes = {x.number: x for x in handle.result(WAIT).decodes}
  assert [*sorted(decodes)] == [*range(6)]
  ended = [x for x in told if x.is_whole]
  assert ended and len({x.number for x in ended}) == len(ended) < 6
  assert all(decodes[x.number] is x for x in ended)


def test_what_is_told_may_fail(service):
  """The request fails, and the others do not."""
  def fail(number, committed):
    raise OSError('the reader is gone')

  requests = list(engine_test.random_requests(11, 12))
  expected = list(engine_test.engine().stream(requests))
  calls = [fail if number % 3 == 0 else None for number in range(12)]
  handles = service.submit_all(requests, calls)
  for number, handle in enumerate(handles):
    try:
      assert handle.result(WAIT).tokens == expected[number].tokens
    except OSError:
      assert number % 3 == 0
  with pytest.raises(OSError, match='gone'):
    handles[6].result(WAIT)


def test_some_requests_are_taken_together():
  service = service_lib.Service(engine_test.engine(), max_waiting=5)
  request = request_lib.Request([5, 1], num_decodes=2)
  with service, pytest.raises(service_lib.BusyError):
    service.submit_all([request] * 3, [None] * 3)
  assert service.num_waiting == service.num_running == 0


def test_a_cancelled_request_leaves_the_others_alone(service):
  requests = list(engine_test.random_requests(6, 30))
  expected = list(engine_test.engine().stream(requests))
  handles = [service.submit(request) for request in requests]
  for handle in handles[::3]:
    handle.cancel()
  for number, handle in enumerate(handles):
    try:
      assert handle.result(WAIT).tokens == expected[number].tokens
    except futures.CancelledError:
      assert number % 3 == 0
  service.close()
  assert service.num_waiting == service.num_running == 0


def test_what_is_cancelled_as_it_ends_does_not_run_on(monkeypatch, service):
  """Though no other request comes that would have it forgotten."""
  is_submitted, advance = threading.Event(), rows_lib.Rows.advance

  def cancel_and_advance(*args, **options):
    assert is_submitted.wait(WAIT)
    handle.cancel()
    advance(*args, **options)

  monkeypatch.setattr(rows_lib.Rows, 'advance', cancel_and_advance)
  handle = service.submit(request_lib.Request([5, 9, 1], max_tokens=1))
  is_submitted.set()
  with pytest.raises(futures.CancelledError):
    handle.result(WAIT)
  deadline = time.monotonic() + WAIT
  while service.num_running and time.monotonic() < deadline:
    time.sleep(0.001)
  assert service.num_running == 0


def test_a_full_queue_refuses_at_once():
  """Decodes count, not requests; what was accepted is decoded."""
  began, may_go_on = threading.Event(), threading.Event()
  engine = engine_lib.Engine(engine_test.decoder(), 2)

  def held(number, tokens):
    began.set()
    may_go_on.wait(WAIT)

  with service_lib.Service(engine, max_waiting=4) as service:
    request = request_lib.Request([5, 9, 20, 1])
    handles = [service.submit(request, held)]
    assert began.wait(WAIT) or handles[0].result(WAIT)
    several = request_lib.Request([5, 9, 1], num_decodes=3)
    handles += [service.submit(several)]
    with pytest.raises(service_lib.BusyError, match='max_waiting'):
      service.submit(several)
    may_go_on.set()
    for handle in handles:
      assert handle.result(WAIT).tokens


def test_closing_finishes_what_runs():
  service = service_lib.Service(engine_test.engine())
  handles = [
      service.submit(request)
      for request in engine_test.random_requests(7, 12)
  ]
  service.close()
  assert all(handle.result(0).tokens for handle in handles)
  with pytest.raises(service_lib.ClosedError):
    service.submit(request_lib.Request([5, 1]))


def test_lost_logits_fail_their_request_alone(monkeypatch, service):
  """A row whose score is not finite."""
  advance = row_programs.RowPrograms.advance
  requests = list(engine_test.random_requests(8, 8))
  expected = list(engine_test.engine().stream(requests))

  def lose(self, *args, **settings):
    run, report = advance(self, *args, **settings)
    report = jax.device_get(report)
    is_lost = report.sequences[:, 0] == expected[0].decodes[0].tokens[0]
    log_probs = np.where(is_lost, np.nan, report.log_probs)
    return run, report.replace(log_probs=log_probs)

  monkeypatch.setattr(row_programs.RowPrograms, 'advance', lose)
  num_lost = 0
  for request, known in zip(requests, expected, strict=True):
    firsts = {each.tokens[0] for each in known.decodes}
    handle = service.submit(request)
    if expected[0].decodes[0].tokens[0] in firsts:
      num_lost += 1
      with pytest.raises(ValueError, match='not finite'):
        handle.result(WAIT)
    else:
      assert handle.result(WAIT).tokens == known.tokens
  assert 0 < num_lost < len(requests)


@pytest.fixture
def hooked(monkeypatch):
  """Return what threads leave to their hook."""
  found = []
  monkeypatch.setattr(threading, 'excepthook', found.append)
  return found


def test_an_error_of_the_engine_reaches_all(monkeypatch, hooked):
  """Those who wait, and those who come later."""
  service = service_lib.Service(engine_test.engine())

  def fail(*_, **unused):
    raise RuntimeError('the device is gone')

  monkeypatch.setattr(rows_lib.Rows, 'advance', fail)
  handle = service.submit(request_lib.Request([5, 1]))
  with pytest.raises(RuntimeError, match='gone'):
    handle.result(WAIT)
  service.close()
  assert not service.is_alive and not hooked
  with pytest.raises(service_lib.ClosedError, match='gone'):
    service.submit(request_lib.Request([5, 1]))


def fail_at(monkeypatch, *numbers):
  """Have the device fail at some calls, which take the rows with them."""
  advance, count = row_programs.RowPrograms.advance, itertools.count()

  def fail(self, *args, **settings):
    found = advance(self, *args, **settings)
    if next(count) in numbers:
      raise jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: Out of memory.')
    return found

  monkeypatch.setattr(row_programs.RowPrograms, 'advance', fail)


def single_requests(seed, count):
  for request in engine_test.random_requests(seed, count):
    yield dataclasses.replace(request, num_decodes=1)


def test_requests_whose_rows_are_lost_fail(monkeypatch, service):
  """And no others, which are decoded."""
  requests = list(single_requests(14, 3 * engine_test.ROWS))
  expected = list(engine_test.engine().stream(requests))
  fail_at(monkeypatch, 0)
  handles = service.submit_all(requests, [None] * len(requests))
  num_failed = 0
  for handle, known in zip(handles, expected, strict=True):
    try:
      assert handle.result(WAIT).tokens == known.tokens
    except service_lib.DecodeError as error:
      assert 'RESOURCE_EXHAUSTED' in str(error)
      num_failed += 1
  assert num_failed == engine_test.ROWS
  assert service.num_running == service.num_waiting == 0


def test_a_device_that_fails_always_is_given_up(monkeypatch, hooked):
  service = service_lib.Service(engine_test.engine())
  fail_at(monkeypatch, *range(99))
  requests = list(single_requests(15, 3 * engine_test.ROWS))
  handles = service.submit_all(requests, [None] * len(requests))
  for handle in handles:
    with pytest.raises(RuntimeError, match='RESOURCE_EXHAUSTED'):
      handle.result(WAIT)
  service.close()
  assert not service.is_alive and not hooked
