# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bodies that are requests, and bodies that are not."""

import pathlib

import pydantic
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import schemas
from tests.serving import stub

SOUND = {'model': 'echo', 'prompt': 'a'}
CONTENT = {'type': 'content', 'content': 'a'}
# Of each field, values that are taken and values that are not.
VALUES = {
    'model': (['echo'], ['', 5, None, ['echo'], '\ud800', 'x' * 1001]),
    'prompt': (
        ['a', 'a' * 79, ['a', 'b'], [1, 2], [[1], [2, 3]], [3] * 80],
        ['', 'a' * 80, [], [1.0], [[]], [1, 'a'], ['a', [1]], [-1], [259],
         [True], {}, None, 3, ['a'] * 129, [3] * 81],
    ),
    'max_tokens': ([1, 64, 5.0, None], [65, 0, -1, 1.5, '5', True]),
    'temperature': ([0, 0.5, 2, None], [2.1, -0.1, '1', False, 1e300, 1e400]),
    'top_p': ([1, 0.5, None], [0, 1.1, 1e-7, 'a', float('nan')]),
    'top_k': ([0, -1, 5, None], [-2, 2**31]),
    'min_p': ([0, 0.1, 1, None], [1.1, -0.1, False]),
    'n': ([1, 128, None], [129, 0, [1]]),
    'beams': ([1, 4, None], [2, 0, True, '4']),
    'seed': ([0, -0.0, 2**63 - 1, None], [2**63, -1, 0.5, '1']),
    'stop': ([None, 'a', ['a'] * 4, []], ['', ['a'] * 5, [''], 5]),
    'stream': ([True, False, None], [0, 'true']),
    'stream_options': (
        [None, {}, {'include_usage': True}], [{'include_usage': 1}, {'x': 1}, 5]
    ),
    'logprobs': ([0, None, 1, 5], [6, -1, False, True]),
    'prediction': (
        [None, CONTENT],
        [{'type': 'content'}, 'a', {**CONTENT, 'x': 1}, [CONTENT],
         {'type': 'x', 'content': 'a'}],
    ),
    'return_trace': ([True, None], [1]),
    'user': (['me', '', None], [5]),
    'best_of': ([1, 1.0, None], [2, True]),
    'echo': ([False, None], [True, 0]),
    'logit_bias': ([{}, None], [{'5': 1}, []]),
    'frequency_penalty': ([0, 0.0], [0.5, False]),
    'suffix': (['', None], ['a']),
    'skip_special_tokens': ([True], [False]),
    'unknown': ([], [None, 0]),
}  # fmt: skip


def read(values):
  """Return a completion, or raise ApiError, as a batch does."""
  search = beam_search.BeamSearch(beams=4)
  offer = completions.Offer(stub.Decoder(), {'echo': True}, search)
  try:
    body = schemas.CompletionRequest.model_validate(values)
  except pydantic.ValidationError as error:
    raise api_error.invalid(error.errors()) from error
  return offer.read(body)


@pytest.mark.parametrize('name', VALUES)
def test_values(name):
  taken, refused = VALUES[name]
  for value in taken:
    read(SOUND | {name: value})
  for value in refused:
    with pytest.raises(api_error.ApiError) as caught:
      read(SOUND | {name: value})
    assert (caught.value.status_code, caught.value.param) == (400, name), value
    assert name in caught.value.detail
    assert caught.value.answer.model_dump_json()


@pytest.mark.parametrize(
    ('values', 'param', 'word'),
    [
        ({'\udfff': 1}, None, 'JSON'),
        ({'max_token': 5}, 'max_token', 'max_tokens'),
        ({'frequency_penalty': 0.5}, 'frequency_penalty', 'only 0 '),
        ({'echo': True}, 'echo', 'only false '),
        ({'model': None}, 'model', 'string'),
        ({'beams': 4, 'temperature': 0.5}, 'temperature', 'beams'),
        ({'beams': 4, 'n': 5}, 'n', 'beams'),
        ({'beams': 4, 'logprobs': 0}, 'logprobs', 'beams'),
        ({'beams': 4, 'return_trace': True}, 'return_trace', 'beams'),
    ],
)
def test_refusals_name_field_and_remedy(values, param, word):
  with pytest.raises(api_error.ApiError) as caught:
    read(SOUND | values)
  assert caught.value.param == param and word in caught.value.detail
  assert caught.value.answer.model_dump_json()


def test_requests_of_a_body():
  completion = read(SOUND)
  (request,) = completion.requests
  assert request.max_tokens == 16 and 0 <= completion.seed < 2**31
  assert request.sampling.temperature == 1
  (request,) = read(SOUND | {'beams': 4}).requests
  assert request.sampling.is_greedy and request.num_outputs == 4
  assert read(SOUND | {'prompt': [5, 6]}).requests[0].inputs == [5, 6]
  several = read(SOUND | {'prompt': ['a', 'b'], 'prediction': CONTENT})
  assert [len(x.hints) for x in several.requests] == [1, 1]
  assert read(SOUND | {'logprobs': 3}).requests[0].alternatives == 3
  for stop, stops in ((None, []), ('a', ['a']), (['a', 'b'], ['a', 'b'])):
    assert read(SOUND | {'stop': stop}).body.stops == stops


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


def test_the_page_has_all_fields():
  page = pathlib.Path(__file__).parents[2] / 'docs/serving.md'
  _, fields = page.read_text().split('\n## Fields\n')
  for name, field in schemas.CompletionRequest.model_fields.items():
    if field.description is None:  # one that asks for nothing
      assert f'`{name}`' in fields
      continue
    (row,) = [x for x in fields.splitlines() if x.startswith(f'| `{name}` |')]
    *_, default, text = row.removesuffix(' |').split(' | ')
    assert text == ' '.join(field.description.split())
    if field.is_required():
      assert default == 'required'
