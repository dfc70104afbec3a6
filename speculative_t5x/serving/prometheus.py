# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and times of `/metrics`, under the names of other engines.

Durations are differences of the monotonic clock.
"""

from collections.abc import Sequence
import time

import prometheus_client

from speculative_t5x.decoder import service as service_lib
from speculative_t5x.serving import running as running_lib
from speculative_t5x.speculation import outcome

_SECONDS = [0.001 * 2**i for i in range(18)]  # to two minutes
# Name and help of each, and its label.
_COUNTERS = (
    ('prompt_tokens', 'Tokens of inputs.'),
    ('generation_tokens', 'Tokens of outputs.'),
    ('request_success', 'Choices, by why they ended.', ['finished_reason']),
    ('spec_decode_num_drafts', 'Target calls with draft tokens.'),
    ('spec_decode_num_draft_tokens', 'Draft tokens.'),
    ('spec_decode_num_accepted_tokens', 'Draft tokens that were accepted.'),
)
_TIMES = (
    ('e2e_request_latency_seconds', 'From submission to end.'),
    ('time_to_first_token_seconds', 'From submission.'),
    ('request_queue_time_seconds', 'Until a row is there.'),
)


class Metrics:
  """The metrics of a server."""

  def __init__(self, services: Sequence[service_lib.Service]):
    """Begin with counts of 0; show the queues of the services as one."""
    self._registry = prometheus_client.CollectorRegistry()
    settings = {'namespace': 'speculative_t5x', 'registry': self._registry}
    self._counters = {
        name: prometheus_client.Counter(name, *rest, **settings)
        for name, *rest in _COUNTERS
    }
    self._times = [
        prometheus_client.Histogram(*names, buckets=_SECONDS, **settings)
        for names in _TIMES
    ]
    for state in 'running', 'waiting':
      prometheus_client.Gauge(
          f'num_requests_{state}', f'Requests that are {state}.', **settings
      ).set_function(
          lambda name=f'num_{state}': sum(getattr(x, name) for x in services)
      )

  def text(self) -> bytes:
    """Return all metrics as Prometheus reads them."""
    return prometheus_client.generate_latest(self._registry)

  def count(self, running: running_lib.Running) -> None:
    """Count a completion that has ended, in whatever way."""
    for choice in running.choices:
      reason = choice.finish_reason or 'abort'
      self._counters['request_success'].labels(reason).inc()
      self._counters['generation_tokens'].inc(choice.num_tokens)
      if choice.statistics is not None:
        self._count_speculation(choice.statistics)
    if all(choice.finish_reason for choice in running.choices):
      for handle in running.handles:
        self._counters['prompt_tokens'].inc(len(handle.request.inputs))
        self._count_times(handle.times)

  def _count_times(self, times: service_lib.Times) -> None:
    # A stop text ends a request before its rows have.
    ended = times.ended or time.monotonic()
    moments = ended, times.first_tokens or ended, times.begun or ended
    for metric, moment in zip(self._times, moments, strict=True):
      metric.observe(moment - times.submitted)

  def _count_speculation(self, statistics: outcome.Statistics) -> None:
    for name, count in (
        ('drafts', statistics.drafted_histogram[1:].sum()),
        ('draft_tokens', statistics.num_drafted),
        ('accepted_tokens', statistics.num_accepted),
    ):
      self._counters[f'spec_decode_num_{name}'].inc(int(count))
