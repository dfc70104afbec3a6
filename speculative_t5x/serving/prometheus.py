# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and times of `/metrics`, under the names of other engines.

Durations are differences of the monotonic clock.
"""

import collections
from collections.abc import Sequence
import time

import prometheus_client
from prometheus_client import exposition

from speculative_t5x.decoder import service as service_lib
from speculative_t5x.serving import api_error
from speculative_t5x.serving import replies
from speculative_t5x.serving import running as running_lib
from speculative_t5x.speculation import outcome

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST
_PREFIX = 'speculative_t5x'
_SECONDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25,
    50, 100,
)  # fmt: skip


class Metrics:
  """The metrics of a server."""

  def __init__(self, services: Sequence[service_lib.Service]):
    """Begin with counts of 0.

    Args:
      services: Their queues are shown, as one.
    """
    self._registry = prometheus_client.CollectorRegistry()
    settings = {'namespace': _PREFIX, 'registry': self._registry}
    counter = lambda name, text, *labels: prometheus_client.Counter(
        name, text, labels, **settings
    )
    seconds = lambda name, text: prometheus_client.Histogram(
        f'{name}_seconds', text, buckets=_SECONDS, **settings
    )

    def gauge(name, text, value):
      prometheus_client.Gauge(name, text, **settings).set_function(value)

    self._responses = counter(
        'http_responses', 'Responses, by HTTP status.', 'status'
    )
    self._ended = counter(
        'request_success', 'Choices, by why they ended.', 'finished_reason'
    )
    self._prompt_tokens = counter('prompt_tokens', 'Tokens of inputs.')
    self._tokens = counter('generation_tokens', 'Tokens of outputs.')
    self._steps = counter(
        'spec_decode_num_drafts', 'Target calls with draft tokens.'
    )
    self._drafted = counter('spec_decode_num_draft_tokens', 'Draft tokens.')
    self._accepted = counter(
        'spec_decode_num_accepted_tokens', 'Draft tokens that were accepted.'
    )
    self._accepted_at = counter(
        'spec_decode_num_accepted_tokens_per_pos',
        'Likewise, by their position in the block.',
        'position',
    )
    self._latency = seconds('e2e_request_latency', 'From submission to end.')
    self._first = seconds('time_to_first_token', 'From submission.')
    self._queue = seconds('request_queue_time', 'Until a row is there.')
    self._gap = seconds(
        'inter_token_latency', 'Between tokens that come at once, of streams.'
    )
    self._per_token = seconds(
        'request_time_per_output_token', 'After the first, per token.'
    )
    gauge(
        'num_requests_running',
        'Requests that have rows.',
        lambda: sum(service.num_running for service in services),
    )
    gauge(
        'num_requests_waiting',
        'Requests that wait for rows.',
        lambda: sum(service.num_waiting for service in services),
    )
    steps, drafted = 'num_spec_steps', 'num_draft_tokens'
    accepted = 'num_accepted_draft_tokens'
    self._totals = collections.Counter({steps: 0, drafted: 0, accepted: 0})
    gauge(
        'spec_decode_mean_accepted_length',
        'Tokens per target call with draft tokens.',
        lambda: 1 + self._ratio(accepted, steps),
    )
    gauge(
        'spec_decode_draft_acceptance_rate',
        'Share of draft tokens that were accepted.',
        lambda: self._ratio(accepted, drafted),
    )

  def text(self) -> bytes:
    """Return all metrics as Prometheus reads them."""
    return prometheus_client.generate_latest(self._registry)

  def count_response(self, status: int) -> None:
    """Count a response."""
    self._responses.labels(status).inc()

  def count(self, running: running_lib.Running) -> None:
    """Count a completion that has ended, in whatever way."""
    # Without an error the client has left a stream.
    error = running.error or api_error.left()
    unended = 'abort' if error.status == api_error.CLIENT_LEFT else 'error'
    for choice in running.choices:
      reason = choice.finish_reason or unended
      self._ended.labels(reason).inc()
      self._tokens.inc(choice.num_tokens)
      if choice.decode is not None:
        self._count_speculation(choice.decode.statistics)
    for gap in running.gaps:
      self._gap.observe(gap)
    if not all(choice.finish_reason for choice in running.choices):
      return
    for number, handle in enumerate(running.handles):
      self._prompt_tokens.inc(len(handle.request.inputs))
      longest = max(x.num_tokens for x in running.choices_of(number))
      self._count_times(handle.times, longest)

  def _count_times(self, times: service_lib.Times, num_tokens: int) -> None:
    """Add the times of a request whose longest output has so many tokens."""
    ended = time.monotonic() if times.ended is None else times.ended
    first = ended if times.first_tokens is None else times.first_tokens
    self._latency.observe(ended - times.submitted)
    self._first.observe(first - times.submitted)
    if times.first_tokens is not None and num_tokens > 1:
      self._per_token.observe((ended - first) / (num_tokens - 1))
    if times.begun is not None:
      self._queue.observe(times.begun - times.submitted)

  def _count_speculation(self, statistics: outcome.Statistics | None) -> None:
    """Add the counts of an output."""
    if (counts := replies.speculation(statistics)) is None:
      return
    self._totals.update({name: getattr(counts, name) for name in self._totals})
    self._steps.inc(counts.num_spec_steps)
    self._drafted.inc(counts.num_draft_tokens)
    self._accepted.inc(counts.num_accepted_draft_tokens)
    at = outcome.tokens_per_position(statistics.accepted_histogram)
    for position, number in enumerate(at.tolist()):
      self._accepted_at.labels(position).inc(number)

  def _ratio(self, one: str, other: str) -> float:
    return self._totals[one] / max(self._totals[other], 1)
