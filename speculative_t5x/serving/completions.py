# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The body of a request for completions, as requests to decode."""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import secrets
from typing import Any

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import fields
from speculative_t5x.speculation import sampling as sampling_lib

Prompt = str | list[int]


@dataclasses.dataclass(frozen=True)
class Completion:
  """A request for completions.

  Choices are numbered prompt by prompt.

  Attributes:
    model: Name of the model.
    prompts: Texts or token ids.
    hints: What the output of each prompt may repeat, if anything.
    num_choices: Outputs per prompt.
    search: Beam search, whose best hypotheses they are; None for none.
    max_tokens: Most tokens per output.
    sampling: Sampling of all of them.
    seed: Of 63 bits; with the number of a prompt it decides its samples.
    stops: Texts before which an output ends.
    is_streamed: Whether tokens are sent as they come.
    includes_usage: Whether a last event of a stream has the usage.
    has_log_probs: Whether choices have log-probabilities.
    alternatives: Likeliest tokens per token that these have, beside it.
    has_trace: Whether choices say how each token came about.
  """

  model: str
  prompts: list[Prompt]
  hints: Sequence[hints_lib.Hints]
  num_choices: int
  search: beam_search.BeamSearch | None
  max_tokens: int
  sampling: sampling_lib.Sampling
  seed: int
  stops: Sequence[str] = ()
  is_streamed: bool = False
  includes_usage: bool = False
  has_log_probs: bool = False
  alternatives: int = 0
  has_trace: bool = False

  def requests(
      self, decoder: text_decoder.TextDecoder
  ) -> list[request_lib.Request]:
    """Return a request of token ids per prompt; tokenizing takes a while.

    Raises:
      ApiError: for a prompt that cannot be decoded whole.
    """
    return [
        self._request(decoder, number) for number in range(len(self.prompts))
    ]

  def _request(
      self, decoder: text_decoder.TextDecoder, number: int
  ) -> request_lib.Request:
    prompt, hints = self.prompts[number], self.hints[number]
    _check_size(hints, fields.max_characters(decoder.options.inputs_length))
    seed, example_id = seed_and_id(self.seed, number)
    tokenized = decoder.tokenized
    if not isinstance(prompt, str):
      tokenized = decoder.tokens.tokenized
      limit = decoder.options.hints_length
      hints = hints_lib.encode(hints, decoder.vocabulary, limit)
    try:
      request = request_lib.Request(
          prompt,
          example_id,
          seed=seed,
          sampling=self.sampling,
          max_tokens=self.max_tokens,
          num_decodes=self.num_choices if self.search is None else 1,
          search=self.search,
          alternatives=self.alternatives,
          hints=hints,
      )
      found = tokenized(request, number, f'prompt {number}')
    except ValueError as error:
      raise api_error.ApiError(400, str(error), 'prompt') from error
    if found.is_truncated:
      raise api_error.ApiError(
          400,
          f'prompt {number} has more than {decoder.options.inputs_length}'
          ' tokens, end included, which are all that the server takes. Shorten'
          ' it, or raise `inputs` of TASK_FEATURE_LENGTHS.',
          'prompt',
          'context_length_exceeded',
      )
    return found.request


def seed_and_id(seed: int, number: int) -> tuple[int, int]:
  """Return the seed and the example id of the `Request` of a prompt.

  Both have 32 bits, and the seed of a completion has 63. Its lower 31 are the
  seed. The upper ones are added to the number of the prompt: seeds that differ
  there by `fields.MAX_CHOICES` or more share no samples, whatever the prompts.
  """
  example_id = ((seed >> 31) + number) % 2**32
  return seed % 2**31, example_id - 2**32 * (example_id >= 2**31)


def form_of(
    decoder: text_decoder.TextDecoder,
    search: beam_search.BeamSearch | None = None,
) -> fields.Form:
  """Return what requests to a decoder may say, with the search it offers."""
  tokens = decoder.tokens
  return fields.Form(
      fields.table(
          fields.Limits(
              tokens.options.max_tokens,
              tokens.options.inputs_length,
              tokens.target_model.vocab_size,
              tokens.reads_hints,
              search.beams if search else 1,
          )
      )
  )


def read(
    body: Any,
    form: fields.Form,
    models: Sequence[str],
    max_choices: int,
    seed: int | None = None,
    search: beam_search.BeamSearch | None = None,
) -> Completion:
  """Read the body of a request.

  Args:
    body: A value of JSON; see `parse`.
    form: What it may say.
    models: Names of the models.
    max_choices: Most choices of a request.
    seed: Of a request without one; None to draw one.
    search: Beam search of requests that ask for beams.
  Raises:
    ApiError: for a body that is not as the form says.
  """
  values = form.read(body)
  if values['model'] not in models:
    raise no_model(values['model'], models)
  prompts = _prompts(values['prompt'])
  if values['beams'] > 1:
    values['temperature'] = body.get('temperature') or 0
    _check_search(values)
  else:
    search = None
  if len(prompts) * values['n'] > max_choices:
    raise api_error.ApiError(
        400,
        f'{len(prompts)} prompts with n={values["n"]} are more than'
        f' {max_choices} choices, which never fit the queue. Ask for fewer.',
        'n',
    )
  stops = values['stop'] or []
  options = values['stream_options'] or {}
  if values['seed'] is not None:
    seed = values['seed']
  return Completion(
      values['model'],
      prompts,
      _hints(values['prediction'], len(prompts)),
      values['n'],
      search,
      values['max_tokens'],
      _sampling(values),
      secrets.randbits(31) if seed is None else seed,
      [stops] if isinstance(stops, str) else stops,
      values['stream'],
      options.get('include_usage', False),
      values['logprobs'] is not None,
      values['logprobs'] or 0,
      values['return_trace'],
  )


def _check_search(values: Mapping[str, Any]) -> None:
  """Check that a request with beams asks for nothing that has to be drawn."""
  beams = values['beams']
  problems = {
      'temperature': values['temperature'] and 'must be 0 or left out',
      'n': values['n'] > beams and f'must be at most {beams}',
      'logprobs': values['logprobs'] is not None and 'must be left out',
      'return_trace': values['return_trace'] and 'must be false or left out',
  }
  for name, problem in problems.items():
    if problem:
      raise api_error.ApiError(
          400, f'{name} {problem} with {beams} beams.', name
      )


def _sampling(values: Mapping[str, Any]) -> sampling_lib.Sampling:
  if values['beams'] > 1:
    return sampling_lib.GREEDY
  return sampling_lib.Sampling(
      values['temperature'],
      max(values['top_k'], 0),
      values['top_p'],
      values['min_p'],
  )


def no_model(name: str, known: Sequence[str]) -> api_error.ApiError:
  """Return the error for the name of another model."""
  names = ' and '.join(map(repr, known))
  message = f'There is no model {api_error.shown(name)}. There is {names}.'
  return api_error.ApiError(404, message, 'model', 'model_not_found')


def parse(body: bytes) -> Any:
  """Return the value of JSON, with whole numbers such as 1.0 as integers."""

  def number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value

  def refuse(text: str) -> None:
    raise ValueError(f'{text} is not JSON')

  try:
    value = json.loads(body, parse_float=number, parse_constant=refuse)
    # A lone half of a surrogate pair is no text: neither a prompt nor a message
    # may have it.
    json.dumps(value, ensure_ascii=False).encode()
  except (ValueError, RecursionError) as error:
    reason = str(error).encode('ascii', 'backslashreplace').decode()[:200]
    raise api_error.ApiError(
        400, f'The body cannot be read as JSON: {reason}.'
    ) from error
  return value


def _prompts(value: Prompt | list[Prompt]) -> list[Prompt]:
  is_one = isinstance(value, str) or isinstance(value[0], int)
  return [value] if is_one else value


def _hints(prediction: Any, count: int) -> Sequence[hints_lib.Hints]:
  """Return the hints of each prompt, of predictions as OpenAI writes them."""
  if not isinstance(prediction, list):
    return [_text_of(prediction)] * count
  if len(prediction) != count:
    raise api_error.ApiError(
        400,
        f'There are {len(prediction)} predictions for {count} prompts. Give one'
        ' for all, or one for each.',
        'prediction',
    )
  return [_text_of(each) for each in prediction]


def _text_of(prediction: dict[str, Any] | None) -> str | None:
  if prediction is None:
    return None
  content = prediction['content']
  if isinstance(content, str):
    return content
  return ''.join(part['text'] for part in content)


def _check_size(hints: hints_lib.Hints, most: int) -> None:
  """Check that the parts of a prediction are no more than it may have."""
  if hints is not None and len(hints) > most:
    raise api_error.ApiError(
        400,
        f'A prediction has {len(hints)} characters in all its parts, and {most}'
        ' are all that the server takes. Shorten it, or raise `inputs` of'
        ' TASK_FEATURE_LENGTHS.',
        'prediction',
    )
