# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests for completions as requests to decode, beside what is offered."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import secrets

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import schemas
from speculative_t5x.speculation import sampling as sampling_lib

_MAX_TOKENS = 16  # where a request leaves it out, as OpenAI has it
# No vocabulary has pieces so long: a text with more characters per token that
# fits has too many tokens, which need not be counted.
_CHARACTERS_PER_TOKEN = 64


@dataclasses.dataclass(frozen=True)
class Completion:
  """A request for completions that can be decoded.

  Choices are numbered prompt by prompt.

  Attributes:
    body: The request.
    seed: Of 63 bits; with the number of a prompt it decides its samples.
    search: Beam search, whose best hypotheses are the choices; None for none.
    requests: A request of token ids per prompt; none before it is tokenized.
  """

  body: schemas.CompletionRequest
  seed: int
  search: beam_search.BeamSearch | None
  requests: Sequence[request_lib.Request] = ()

  @property
  def num_decodes(self) -> int:
    """Outputs that are decoded, of searches all hypotheses."""
    return len(self.body.prompts) * max(self.body.n, self.body.beams)


@dataclasses.dataclass(frozen=True)
class Offer:
  """An offer of a server, or of a batch, to requests.

  Attributes:
    decoder: Turns texts to tokens and back.
    models: Names of the models, and whether each has a drafter that reads
      hints.
    max_choices: Most choices of a request.
    search: Beam search of requests that ask for beams; None for no such.
  """

  decoder: text_decoder.TextDecoder
  models: Mapping[str, bool]
  max_choices: int
  search: beam_search.BeamSearch | None = None

  def read(
      self, body: schemas.CompletionRequest, seed: int | None = None
  ) -> Completion:
    """Return what a request asks for, before it is tokenized.

    Args:
      body: The request.
      seed: Seed of a request without one; None to draw one.
    Raises:
      ApiError: if it is not offered.
    """
    if body.model not in self.models:
      raise no_model(body.model, self.models)
    for name, problem in self._problems(body):
      raise api_error.ApiError(400, f'{name} {problem}.', name)
    if body.seed is not None:
      seed = body.seed
    return Completion(
        body,
        secrets.randbits(31) if seed is None else seed,
        self.search if body.beams > 1 else None,
    )

  def tokenized(self, completion: Completion) -> Completion:
    """Return a completion with its requests; tokenizing takes a while.

    Raises:
      ApiError: for a prompt that cannot be decoded whole.
    """
    requests = [
        self._request(completion, number)
        for number in range(len(completion.body.prompts))
    ]
    return dataclasses.replace(completion, requests=requests)

  def _problems(
      self, body: schemas.CompletionRequest
  ) -> Iterator[tuple[str, str]]:
    """Yield fields that ask for what is not offered, and the reasons."""
    options = self.decoder.options
    if (body.max_tokens or 0) > options.max_tokens:
      yield 'max_tokens', (
          f'must be at most {options.max_tokens}, which is `targets` of'
          f' TASK_FEATURE_LENGTHS, got {body.max_tokens}'
      )
    if body.beams > 1:
      yield from self._problems_of_search(body)
    count = len(body.prompts)
    if count * max(body.n, body.beams) > self.max_choices:
      yield 'n', (
          f'is {body.n} of each of {count} prompts, and more than'
          f' {self.max_choices} outputs never fit the queue; ask for fewer'
      )
    predictions = body.predictions
    if any(predictions) and not self.models[body.model]:
      yield 'prediction', (
          'must be left out, because the drafter of this model reads no hints'
      )
    if len(predictions) != count:
      yield 'prediction', (
          f'has {len(predictions)} predictions for {count} prompts; give one'
          ' for all, or one for each'
      )
    most = _CHARACTERS_PER_TOKEN * options.inputs_length
    texts = [('prompt', text) for text in body.prompts if isinstance(text, str)]
    texts += [('prediction', text) for text in predictions if text]
    for name, text in texts:
      if len(text) > most:
        yield name, (
            f'has {len(text)} characters, and {most} are all that is taken;'
            ' shorten it, or raise `inputs` of TASK_FEATURE_LENGTHS'
        )

  def _problems_of_search(
      self, body: schemas.CompletionRequest
  ) -> Iterator[tuple[str, str]]:
    """Yield fields that a search does not have, and the reasons."""
    if self.search is None:
      yield 'beams', 'must be 1, as the server was started without BEAMS'
    elif body.beams != self.search.beams:
      yield 'beams', f'must be 1 or {self.search.beams}, got {body.beams}'
    if body.temperature:
      yield 'temperature', 'must be 0 or left out with beams'
    if body.n > body.beams:
      yield 'n', f'must be at most {body.beams} with {body.beams} beams'
    if body.logprobs is not None:
      yield 'logprobs', 'must be left out with beams'
    if body.return_trace:
      yield 'return_trace', 'must be false or left out with beams'

  def _request(
      self, completion: Completion, number: int
  ) -> request_lib.Request:
    """Return the request of a prompt."""
    body, decoder = completion.body, self.decoder
    prompt, hints = body.prompts[number], body.predictions[number]
    seed, example_id = seed_and_id(completion.seed, number)
    most = decoder.options.inputs_length
    if isinstance(prompt, str):
      tokenized, is_cut = decoder.tokenized, False
    else:
      tokenized, is_cut = decoder.tokens.tokenized, len(prompt) > most
      limit = decoder.options.hints_length
      hints = hints_lib.encode(hints, decoder.vocabulary, limit)
    try:
      request = request_lib.Request(
          prompt,
          example_id,
          seed=seed,
          sampling=_sampling(body),
          max_tokens=body.max_tokens
          or min(_MAX_TOKENS, decoder.options.max_tokens),
          num_decodes=1 if completion.search else body.n,
          search=completion.search,
          alternatives=body.logprobs or 0,
          hints=hints,
      )
      result = tokenized(request, number, f'prompt {number}')
    except ValueError as error:
      raise api_error.ApiError(400, str(error), 'prompt') from error
    if is_cut or result.is_truncated:
      raise api_error.ApiError(
          400,
          f'prompt {number} has more than {most} tokens, end included, which'
          ' are all that the server takes. Shorten it, or raise `inputs` of'
          ' TASK_FEATURE_LENGTHS.',
          'prompt',
          'context_length_exceeded',
      )
    return result.request


def seed_and_id(seed: int, number: int) -> tuple[int, int]:
  """Return the seed and the example id of the `Request` of a prompt.

  Both have 32 bits, and the seed of a completion has 63. Its lower 31 are the
  seed. The upper ones are added to the number of the prompt: seeds that differ
  there by `schemas.MAX_CHOICES` or more share no samples, whatever the prompts.
  """
  example_id = ((seed >> 31) + number) % 2**32
  return seed % 2**31, example_id - 2**32 * (example_id >= 2**31)


def no_model(name: str, known: Sequence[str]) -> api_error.ApiError:
  """Return the error for the name of another model."""
  names = ' and '.join(map(repr, known))
  message = f'There is no model {api_error.shown(name)}. There is {names}.'
  return api_error.ApiError(404, message, 'model', 'model_not_found')


def _sampling(body: schemas.CompletionRequest) -> sampling_lib.Sampling:
  if body.beams > 1:
    return sampling_lib.GREEDY
  temperature = 1.0 if body.temperature is None else body.temperature
  return sampling_lib.Sampling(
      temperature, max(body.top_k, 0), body.top_p, body.min_p
  )
