# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that schemathesis makes of the schema, sound ones and others.

Each has a status and a body that the schema allows, and never a traceback.
"""

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi import checks as openapi_checks

from tests.serving import stub

pytestmark = [pytest.mark.exhaustive, pytest.mark.long]
_CASES = 10_000


def test_10_000_requests():
  engine = stub.Engine(tokens_per_step=64)
  with stub.serving(engine, max_waiting=256) as client:
    schema = schemathesis.openapi.from_url(f'{client.url}/openapi.json')
    operation = schema['/v1/completions']['POST']
    statuses = set()
    # A request that the schema allows may have more tokens than fit.
    own = [openapi_checks.positive_data_acceptance]
    # A body that is too large is not read, whatever else is wrong with it.
    too_large = [*own, openapi_checks.negative_data_rejection]

    @hypothesis.settings(
        max_examples=_CASES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(operation.as_strategy().map(_named) | _wrong(operation))
    def ask(case):
      response = case.call()
      statuses.add(response.status_code)
      assert response.status_code in (200, 400, 404, 413)
      excluded = too_large if response.status_code == 413 else own
      case.validate_response(response, excluded_checks=excluded)

    ask()
    assert {200, 400} <= statuses


def _named(case):
  """Return a request with the name of the model that is served."""
  case.body['model'] = 'echo'
  return case


def _wrong(operation):
  """Return a strategy of requests that the schema does not allow."""
  return operation.as_strategy(
      generation_mode=schemathesis.GenerationMode.NEGATIVE
  )
