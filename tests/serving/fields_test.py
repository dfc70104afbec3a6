# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The validator, the schema and the page say the same of each field."""

import json
import pathlib

import jsonschema
import pytest

from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import fields
from tests.serving import stub

LIMITS = fields.Limits(stub.MAX_TOKENS, stub.INPUTS, 259, reads_hints=True)
FORM = fields.Form(fields.table(LIMITS))
SOUND = {'model': 'echo', 'prompt': 'a'}
# Of each field, values in and out of its range; every field must be here.
CONTENT = {'type': 'content', 'content': 'a'}
VALUES = {
    'model': ['echo', 'x', '', 5, None, ['echo']],
    'prompt': [
        'a', '', 'a' * 5120, 'a' * 5121, ['a', 'b'], [], [1, 2], [1.0], [1.5],
        [[1], [2, 3]], [[]], [1, 'a'], ['a', [1]], [259], [-1], [True], {},
        None, 3, ['a'] * 128, ['a'] * 129, [3] * 80, [3] * 81,
    ],
    'max_tokens': [1, 64, 65, 0, -1, 1.0, 1.5, '5', True, None],
    'temperature': [0, 0.5, 2, 2.1, -0.1, '1', None, False, 1e300],
    'top_p': [1, 0.5, 0, 1.1, 1e-7, None, 'a'],
    'top_k': [0, -1, 5, -2, 2**31, 2.0, None],
    'min_p': [0, 0.1, 1, 1.1, -0.1, None, False],
    'n': [1, 128, 129, 0, None, 2.0, [1]],
    'beams': [1, 4, 4.0, 2, 0, None, True, '4'],
    'seed': [0, 2**63 - 1, 2**63, -1, None, 1e3, 0.5, '1'],
    'stop': [None, 'a', '', ['a'], ['a'] * 4, ['a'] * 5, [''], [], 5],
    'stream': [True, False, None, 0, 'true'],
    'stream_options': [
        None, {}, {'include_usage': True}, {'include_usage': 1}, {'x': 1}, 5,
        {'include_obfuscation': False}, {'include_obfuscation': True},
    ],
    'logprobs': [0, None, 1, 5, 6, -1, False, True],
    'prediction': [
        None, CONTENT, [CONTENT, CONTENT], {'type': 'content'}, 'a',
        {**CONTENT, 'x': 1}, {'type': 'x', 'content': 'a'}, [],
        {**CONTENT, 'content': [{'type': 'text', 'text': 'a'}]},
    ],
    'return_trace': [True, None, 1],
    'user': ['me', '', None, 5],
    'best_of': [1, 1.0, 2, None, True],
    'echo': [False, True, 0, None],
    'logit_bias': [{}, None, {'5': 1}, []],
    'frequency_penalty': [0, 0.0, 0.5, False],
    'suffix': ['', None, 'a'],
    'skip_special_tokens': [True, False],
    'unknown': [None, 0],
    'functions': [[]],
}  # fmt: skip


def read(values):
  return completions.read(values, FORM, 'echo', 10**6)


def test_every_field_has_values():
  assert {x.name for x in FORM.fields} <= VALUES.keys()


@pytest.mark.parametrize('reads_hints', [True, False])
@pytest.mark.parametrize('name', VALUES)
def test_the_validator_takes_what_the_schema_does(name, reads_hints):
  limits = fields.Limits(stub.MAX_TOKENS, stub.INPUTS, 259, reads_hints, 4)
  form = fields.Form(fields.table(limits))
  jsonschema.Draft202012Validator.check_schema(form.schema)
  schema = jsonschema.Draft202012Validator(form.schema)
  taken = []
  for value in VALUES[name]:
    # As the server reads JSON.
    values = completions.parse(json.dumps(SOUND | {name: value}).encode())
    try:
      form.read(values)
      is_taken = True
    except api_error.ApiError as error:
      is_taken = False
      assert error.status == 400 and error.param == name
      assert json.dumps(error.body).isascii() and len(error.message) < 1500
    assert is_taken == schema.is_valid(values), value
    taken.append(is_taken)
  has_none = name in ('unknown', 'functions')
  has_none |= name == 'prediction' and not reads_hints
  assert any(taken) != has_none or name == 'prediction'
  assert not all(taken)


@pytest.mark.parametrize('missing', SOUND)
def test_what_is_missing(missing):
  values = {x: y for x, y in SOUND.items() if x != missing}
  with pytest.raises(api_error.ApiError, match=missing):
    FORM.read(values)


@pytest.mark.parametrize(
    'body',
    [
        b'', b'{', b'[]', b'5', b'null', b'{"model": NaN}', b'\xff',
        b'[' * 9999, b'{"model": 1e400}', b'{"seed": ' + b'9' * 5000 + b'}',
        b'{"prompt": "\\ud800", "model": "echo"}', b'{"\\udfff": 1}',
    ],
)  # fmt: skip
def test_bodies_that_are_no_request(body):
  with pytest.raises(api_error.ApiError) as caught:
    completions.read(completions.parse(body), FORM, 'echo', 5)
  assert caught.value.status == 400
  json.dumps(caught.value.body, ensure_ascii=False).encode()


def test_requests_of_a_body():
  found = read(SOUND)
  assert found.prompts == ['a'] and found.max_tokens == 16
  assert found.sampling.temperature == 1 and 0 <= found.seed < 2**31
  assert read(SOUND | {'prompt': [5, 6]}).prompts == [[5, 6]]
  assert read(SOUND | {'stop': 'a'}).stops == ['a']
  assert read(SOUND | {'stop': []}).stops == []
  several = read(SOUND | {'prompt': ['a', 'b'], 'prediction': CONTENT})
  assert several.hints == ['a', 'a']
  assert read(SOUND | {'logprobs': 0}).has_log_probs
  assert read(SOUND | {'logprobs': 3}).alternatives == 3
  with pytest.raises(api_error.ApiError, match='1 predictions for 2 prompts'):
    read(SOUND | {'prompt': ['a', 'b'], 'prediction': [CONTENT]})


def test_parts_of_a_prediction_are_as_long_as_one_text():
  half = {'type': 'text', 'text': 'a' * (32 * stub.INPUTS)}
  prediction = {'type': 'content', 'content': [half, half]}
  request = SOUND | {'prediction': prediction}
  (found,) = read(request).requests(stub.Decoder())
  assert sum(map(len, found.hints)) == 64 * stub.INPUTS + 1  # with its end
  prediction['content'].append(half)
  with pytest.raises(api_error.ApiError) as caught:
    read(request).requests(stub.Decoder())
  assert caught.value.param == 'prediction'


def test_fresh_seeds_differ():
  assert len({read(SOUND).seed for _ in range(20)}) > 15


@pytest.mark.parametrize(
    ('seed', 'number', 'expected'),
    [
        (0, 0, (0, 0)), (2**31 - 1, 0, (2**31 - 1, 0)), (2**31, 0, (0, 1)),
        (2**62, 0, (0, -(2**31))), (2**63 - 1, 0, (2**31 - 1, -1)),
        (7, 5, (7, 5)), (2**62 - 1, 1, (2**31 - 1, -(2**31))),
        (2**63 - 1, 127, (2**31 - 1, 126)),
    ],
)  # fmt: skip
def test_seeds_of_prompts(seed, number, expected):
  assert completions.seed_and_id(seed, number) == expected


def test_more_choices_than_the_queue_holds():
  body = json.dumps(SOUND | {'prompt': ['a'] * 3, 'n': 2}).encode()
  with pytest.raises(api_error.ApiError, match='more than 5 choices'):
    completions.read(completions.parse(body), FORM, 'echo', 5)


def test_the_page_has_the_table():
  """Of the server that `serve_bulletins.gin` starts, with another drafter."""
  page = pathlib.Path(__file__).parents[2] / 'docs/serving.md'
  limits = fields.Limits(96, 96, 2048, reads_hints=True, beams=4)
  table = fields.table(limits)
  rows = ['| field | values | default | |', '|---|---|---|---|']
  for field in table:
    default = '' if field.default is None else repr(field.default).lower()
    if field.default is fields.REQUIRED:
      default = 'required'
    cells = f'`{field.name}`', fields.words(field.values), default, field.text
    rows.append(f'| {" | ".join(cells)} |')
  assert '\n'.join(rows) in page.read_text()
  for name in fields.INERT:
    assert f'`{name}`' in page.read_text()
