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


@dataclasses.dataclass(frozen=True)
class Completion:
  """A request for completions that can be decoded.

  Choices are numbered prompt by prompt.
  """

  body: schemas.CompletionRequest
  seed: int  # of 63 bits; with the number of a prompt it decides its samples
  requests: Sequence[request_lib.Request]  # a request of token ids per prompt


@dataclasses.dataclass(frozen=True)
class Offer:
  """An offer of a server, or of a batch, to requests."""

  decoder: text_decoder.TextDecoder  # turns texts to tokens and back
  # Names of the models, and whether each has a drafter that reads hints.
  models: Mapping[str, bool]
  # Beam search of requests that ask for beams; None for no such.
  search: beam_search.BeamSearch | None = None

  def read(
      self, body: schemas.CompletionRequest, seed: int | None = None
  ) -> Completion:
    """Return what a request asks for; tokenizing takes a while.

    The seed is that of a request without one; None to draw one.

    Raises:
      ApiError: if it is not offered, or a prompt cannot be decoded whole.
    """
    if body.model not in self.models:
      raise no_model(body.model, self.models)
    for name, problem in self._problems(body):
      raise api_error.ApiError(400, f'{name} {problem}.', name)
    if body.seed is not None:
      seed = body.seed
    elif seed is None:
      seed = secrets.randbits(31)
    search = self.search if body.beams > 1 else None
    requests = [
        self._request(body, number, search, *seed_and_id(seed, number))
        for number in range(len(body.prompts))
    ]
    return Completion(body, seed, requests)

  def _problems(
      self, body: schemas.CompletionRequest
  ) -> Iterator[tuple[str, str]]:
    """Yield fields that ask for what is not offered, and the reasons."""
    longest = self.decoder.options.max_tokens
    if (body.max_tokens or 0) > longest:
      yield 'max_tokens', (
          f'must be at most {longest}, which is `targets` of'
          f' TASK_FEATURE_LENGTHS, got {body.max_tokens}'
      )
    if body.prediction and not self.models[body.model]:
      yield 'prediction', 'must be left out: the drafter reads no hints'
    if body.beams == 1:
      return
    beams = self.search.beams if self.search else 1
    if body.beams != beams:
      yield 'beams', f'must be 1 or BEAMS of the server, which is {beams}'
    if body.n > body.beams:
      yield 'n', 'must be at most the beams'
    refused = {
        'temperature': body.temperature,
        'logprobs': body.logprobs is not None,
        'return_trace': body.return_trace,
    }
    for name in filter(refused.get, refused):
      yield name, 'must be left out with beams'

  def _request(
      self,
      body: schemas.CompletionRequest,
      number: int,
      search: beam_search.BeamSearch | None,
      seed: int,
      example_id: int,
  ) -> request_lib.Request:
    prompt, options = body.prompts[number], self.decoder.options
    hints = body.prediction and body.prediction.content
    decoder = self.decoder
    if not isinstance(prompt, str):
      hints = hints_lib.encode(hints, decoder.vocabulary, options.hints_length)
      decoder = decoder.tokens
    try:
      request = request_lib.Request(
          prompt,
          example_id,
          seed=seed,
          sampling=_sampling(body),
          max_tokens=body.max_tokens or min(_MAX_TOKENS, options.max_tokens),
          num_decodes=1 if search else body.n,
          search=search,
          alternatives=body.logprobs or 0,
          hints=hints,
      )
      result = decoder.tokenized(request, number, f'prompt {number}')
    except ValueError as error:
      raise api_error.ApiError(400, str(error), 'prompt') from error
    most = options.inputs_length
    if result.is_truncated or len(result.request.inputs) > most:
      raise api_error.ApiError(
          400,
          f'prompt {number} has more than {most} tokens, end included. Shorten'
          ' it, or raise `inputs` of TASK_FEATURE_LENGTHS.',
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
  # int32, which wraps around: the upper half of 32 bits is negative.
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
