# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of OpenAI's beside the server, by an engine that repeats."""

import dataclasses
import json
import types

import pytest

from speculative_t5x.jobs.inference import batch_rows
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.research import progress
from speculative_t5x.serving import batch_lines
from tests.serving import stub

SEED = 7
BODIES = [
    {'prompt': 'né € 😀 end', 'max_tokens': 64},
    {'prompt': 'a' * 20},
    {'prompt': ['a', 'b'], 'n': 2, 'temperature': 1, 'seed': 2**40},
    {'prompt': 'one two three', 'stop': ['two', 'x'], 'max_tokens': 30},
    {'prompt': 'one two', 'stop': 'two', 'logprobs': 0, 'max_tokens': 30},
    {'prompt': 'né', 'logprobs': 0, 'return_trace': True},
    {'prompt': ['a b', 'c'], 'prediction': stub.PREDICTION, 'top_p': 0.5},
    {'prompt': [4, 5, 6]},
    # Errors:
    {'prompt': ['fine', stub.LOST]},
    {'prompt': 'a', 'model': 'other'},
    {'prompt': 'a', 'temperature': 3},
    {'prompt': 'a', 'max_tokens': 65},
    {'prompt': 'a', 'unknown': 1},
    {'prompt': 'a', 'n': '2'},
    {'prompt': 'a' * 100},
    {},
]


def line(custom_id='a', **values):
  """Return a line of a batch."""
  body = json.loads(stub.body(prompt='a'))
  request = {'method': 'POST', 'url': '/v1/completions', 'body': body}
  return json.dumps({'custom_id': custom_id, **request, **values}).encode()


def job():
  """Return what decodes a batch."""
  batch = batch_lines.Batch(stub.Decoder(), 'echo', 'fp_0', SEED)
  setup = types.SimpleNamespace(chunk_batches=1)
  shown = progress.Progress('test', None)
  job = inference.Inference(setup, None, None, 100, shown)
  vars(job).update(rows=batch_rows.BatchRows(batch), engine=stub.Engine())
  return job


def decoded(lines):
  """Return the answers to the lines of a batch, and the counts."""
  inputs = job().rows.read(batch_lines.parse(lines))
  (content,) = job().decode(enumerate(inputs), lambda row: None)
  return list(map(json.loads, content.rows)), content.values


def error_of(row):
  """Return status and field of an error."""
  response = row['response']
  return response['status_code'], response['body']['error']['param']


def test_answers_are_those_of_the_server():
  lines = [
      line(f'{i}', body=json.loads(stub.body(**body)))
      for i, body in enumerate(BODIES)
  ]
  rows, values = decoded(lines)
  assert decoded(lines)[0] == rows
  expected = []
  with stub.serving(stub.Engine()) as client:
    for body in BODIES:
      expected.append(client.post(**body))
  for number, (row, (status, answer)) in enumerate(zip(rows, expected)):
    response = row['response']
    if status == 200:
      for each in (answer, response['body']):
        assert each.pop('id') and isinstance(each.pop('created'), int)
        if 'seed' not in BODIES[number]:
          each.pop('seed')
    assert (response['status_code'], response['body']) == (status, answer)
    assert row['custom_id'] == f'{number}' and row['error'] is None
  statuses = [status for status, _ in expected]
  assert statuses == [200] * 8 + [500, 404] + [400] * 6
  assert values['num_examples'] == len(BODIES)
  assert values[text_rows.NUM_ERRORS] == 8
  assert len({row['id'] for row in rows}) == len(rows)


def test_identity_has_what_answers_are_made_of():
  """The ids of a line, which a source language changes, and its servers."""
  rows = job().rows
  (found,) = rows.read(batch_lines.parse([line()]))
  request = dataclasses.replace(found.requests[0], inputs=[5, 6, 1])
  other = dataclasses.replace(
      found,
      completion=dataclasses.replace(found.completion, requests=[request]),
  )
  batch = batch_lines.Batch(stub.Decoder(), 'echo', 'fp_1', SEED)
  identities = [
      rows.identity([found]),
      rows.identity([other]),
      batch_rows.BatchRows(batch).identity([found]),
  ]
  assert len({*map(json.dumps, identities)}) == 3


def test_seeds_of_lines_without_one():
  """Each has another, by which the server gives the same samples."""
  body = {'model': 'echo', 'prompt': 'a', 'max_tokens': 40}
  rows, _ = decoded([b'', line('a', body=body), line('b', body=body)])
  answers = [row['response']['body'] for row in rows]
  texts = [answer['choices'][0]['text'] for answer in answers]
  assert len({*texts}) == 2 and all(f'({SEED}, ' in x for x in texts)
  with stub.serving(stub.Engine()) as client:
    for answer, text in zip(answers, texts, strict=True):
      own = {'prompt': 'a', 'temperature': 1, 'seed': answer['seed']}
      assert client.texts(max_tokens=40, **own) == [text]


@pytest.mark.parametrize(
    ('bad', 'param', 'name'),
    [
        (b'{', None, None),
        (b'\xff', None, None),
        (b'["custom_id"]', None, None),
        (b'{"custom_id": ' + b'[' * 10**5, None, None),
        (b'{"custom_id": "\\ud800"}', 'custom_id', None),
        (line(None), 'custom_id', None),
        (line(5), 'custom_id', None),
        (line('é', method='GET'), 'method', 'é'),
        (line('é', url='/v1/chat/completions'), 'url', 'é'),
        (line('é', more=1), 'more', 'é'),
        (line('é', body=None), None, 'é'),
        (line('é').replace(b'echo', b'\\ud800'), 'model', 'é'),
        (line('é').replace(b'"echo"', b'NaN'), 'model', 'é'),
    ],
)
def test_a_line_that_is_no_request(bad, param, name):
  """Its name is kept where it can be read, and the others are decoded."""
  rows, values = decoded([line('first'), bad, b' ', line('last'), bad])
  assert error_of(rows[1]) == (400, param)
  statuses = [row['response']['status_code'] for row in rows]
  assert statuses == [200, 400, 200, 400]
  assert [row['custom_id'] for row in rows] == ['first', name, 'last', name]
  assert values[text_rows.NUM_ERRORS] == 2
