# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 description of the server."""

from collections.abc import Mapping, Sequence
from typing import Any

from speculative_t5x import version
from speculative_t5x.serving import fields

_BODY = {
    400: 'Something is wrong with the request; nothing was decoded.',
    401: 'The key is missing, or another one.',
    404: 'There is no such path or model.',
    408: 'The body has not come in time.',
    413: 'The body is too large.',
    415: 'The body is not JSON.',
    429: 'Too many requests wait. Ask again later.',
    500: 'A prompt could not be decoded.',
    503: 'The server ends, or its engine has stopped.',
}


def document(
    form: fields.Form, names: Sequence[str], needs_key: bool
) -> dict[str, Any]:
  """Return the description.

  Args:
    form: What a request for completions may say.
    names: Names of the models.
    needs_key: Whether `/v1` takes requests with the server's key alone.
  """
  security = [{'key': []}] if needs_key else []
  get = lambda text, statuses=(), **more: {
      'get': {'summary': text, 'responses': _responses(statuses, **more)}
  }
  completions = _operation(form, names)
  models = get('The models.', (401,), **_json('Models'))
  model = get('A model by its name.', (401, 404), **_json('Model'))
  model['parameters'] = [{
      'name': 'model', 'in': 'path', 'required': True,
      'schema': {'type': 'string', 'minLength': 1},
  }]  # fmt: skip
  for each in (completions['post'], models['get'], model['get']):
    each['security'] = security
  text = lambda kind: {'content': {kind: {'schema': {'type': 'string'}}}}
  return {
      'openapi': '3.1.0',
      'info': {'title': 'speculative_t5x', 'version': version.VERSION},
      'paths': {
          '/v1/completions': completions,
          '/v1/models': models,
          '/v1/models/{model}': model,
          '/health': get('Whether it is alive.', (503,), **_json('Status')),
          '/ready': get(
              'Whether it takes requests.', (503,), **_json('Status')
          ),
          '/metrics': get('Metrics for Prometheus.', **text('text/plain')),
          '/openapi.json': get('This description.', **_json('Any')),
      },
      'components': {
          'schemas': _SCHEMAS,
          'securitySchemes': {'key': {'type': 'http', 'scheme': 'bearer'}},
      },
  }


def _operation(form: fields.Form, names: Sequence[str]) -> dict[str, Any]:
  answer = {
      'content': {
          'application/json': {'schema': _ref('Completion')},
          # Of each event. What `data` says is JSON, or [DONE].
          'text/event-stream': {
              'schema': {
                  'type': 'object', 'properties': {'data': {'type': 'string'}}
              }  # fmt: skip
          },
      }
  }
  schema = form.schema
  schema['properties']['model']['enum'] = [*names]  # others are not found (404)
  body = {'required': True, 'content': {'application/json': {'schema': schema}}}
  return {
      'post': {
          'summary': 'Decode prompts.',
          'requestBody': body,
          'responses': _responses(tuple(_BODY), **answer),
      }
  }


def _responses(
    statuses: Sequence[int], **answer: Any
) -> Mapping[str, Mapping[str, Any]]:
  """Return the responses of an operation: 200, and errors."""
  found = {'200': {'description': 'The answer.', **answer}}
  for status in statuses:
    found[str(status)] = {'description': _BODY[status], **_json('Error')}
  return found


def _ref(name: str) -> dict[str, str]:
  return {'$ref': f'#/components/schemas/{name}'}


def _json(name: str) -> dict[str, Any]:
  return {'content': {'application/json': {'schema': _ref(name)}}}


def _object(**properties: Any) -> dict[str, Any]:
  return {
      'type': 'object',
      'properties': properties,
      'required': list(properties),
      'additionalProperties': False,
  }


def _list(items: Any) -> dict[str, Any]:
  return {'type': 'array', 'items': items}


def _or_null(schema: Any) -> dict[str, Any]:
  return {'anyOf': [schema, {'type': 'null'}]}


_TEXT, _COUNT, _NUMBER = (
    {'type': kind} for kind in ('string', 'integer', 'number')
)
_MODEL = _object(
    id=_TEXT,
    object={'const': 'model'},
    created=_COUNT,
    owned_by=_TEXT,
    speculative={'type': 'boolean'},
    max_tokens=_COUNT,
    examples=_list(_TEXT),
)
_LOG_PROBS = _object(
    tokens=_list(_TEXT),
    token_logprobs=_list(_NUMBER),
    top_logprobs=_list(
        {'type': 'object', 'additionalProperties': _NUMBER}
    ),
    text_offset=_list(_COUNT),
)
_CHOICE = _object(
    index=_COUNT,
    text=_TEXT,
    finish_reason={'enum': ['stop', 'length']},
    logprobs=_or_null(_LOG_PROBS),
)
_CHOICE['properties']['trace'] = _list(
    _object(text=_TEXT, kind={'enum': ['accepted', 'drawn', 'rejected']})
)
_USAGE = _object(
    prompt_tokens=_COUNT, completion_tokens=_COUNT, total_tokens=_COUNT
)
_USAGE['properties']['completion_tokens_details'] = _object(
    accepted_prediction_tokens=_COUNT, rejected_prediction_tokens=_COUNT
)
_SPECULATION = _object(
    mean_acceptance_length=_NUMBER,
    draft_acceptance_rate=_NUMBER,
    acceptance_histogram=_list(_COUNT),
    num_spec_steps=_COUNT,
    num_accepted_draft_tokens=_COUNT,
    num_draft_tokens=_COUNT,
    num_spec_tokens=_COUNT,
)
_SCHEMAS = {
    'Any': {'type': 'object'},
    'Status': _object(status=_TEXT),
    'Model': _MODEL,
    'Models': _object(object={'const': 'list'}, data=_list(_ref('Model'))),
    'Error': _object(
        error=_object(
            message=_TEXT,
            type=_TEXT,
            param=_or_null(_TEXT),
            code=_or_null(_TEXT),
        )
    ),
    'Completion': _object(
        id=_TEXT,
        object={'const': 'text_completion'},
        created=_COUNT,
        model=_TEXT,
        system_fingerprint=_TEXT,
        seed=_COUNT,
        choices=_list(_CHOICE),
        usage=_USAGE,
        metrics=_object(speculative_decoding=_or_null(_SPECULATION)),
    ),
}
