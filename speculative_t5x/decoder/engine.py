# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many requests, decoded one after another."""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
import time

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder

# Adds earlier answers to a request as hints, see `answers.Finder`.
Answers = Callable[[requests_lib.Request], requests_lib.Request]


@dataclasses.dataclass(frozen=True)
class Result:
  """What a request became.

  Attributes:
    request: The request, with the hints that it was decoded with.
    decoded: Tokens and counts per row, as numpy arrays.
    seconds: From token ids on the device to token ids on the device, the
      encoders included.
  """

  request: requests_lib.Request
  decoded: token_decoder.Decoded
  seconds: float


class Engine:
  """The way in which jobs decode many requests.

  Results come in the order of the requests, each before the next request is
  read, so that any number of requests takes the memory of one. A result depends
  on its own request alone.

  Attributes:
    decoder: Target, drafter and lengths.
    is_plain: Whether the target decodes alone.
    answers: Adds earlier answers to requests; None for none.
    is_warm: Whether a stream has begun, so that programs are compiled.
    compile_s: See `compile_seconds`; None before the first stream.
  """

  def __init__(
      self,
      decoder: token_decoder.TokenDecoder,
      *,
      is_plain: bool = False,
      answers: Answers | None = None,
  ):
    """Bind a decoder; compile nothing yet.

    Args:
      decoder: Target, drafter and lengths.
      is_plain: Whether the target decodes alone, one token per call.
      answers: Adds earlier answers behind the hints; None for none.
    Raises:
      ValueError: for answers that are found by the encoder of another target.
    """
    # The features that they add to a request are those of their own encoder.
    if getattr(answers, 'decoder', decoder).target is not decoder.target:
      raise ValueError(
          'The answers are found by the encoder of another target. Make the'
          ' Embedder of their store with this decoder.'
      )
    self.decoder = decoder
    self.is_plain = is_plain
    self.answers = answers
    self.is_warm = False
    self.compile_s: float | None = None
    self._decode = decoder.plain if is_plain else decoder.speculative

  def stream(
      self, requests: Iterable[requests_lib.Request]
  ) -> Iterator[Result]:
    """Yield the result of each request; compile at the first.

    Args:
      requests: Read one at a time; all of one shape, or more is compiled.
    Raises:
      ValueError: see `token_decoder.check`.
    """
    for request in requests:
      if not self.is_warm:
        # Rows of limit 0 end at once: this compiles, and decodes nothing.
        nothing = request.replace(limits=jnp.zeros_like(request.limits))
        self.compile_s = compile_seconds(lambda x=nothing: self.run(x).seconds)
        self.is_warm = True
      yield self.run(request)

  def run(self, request: requests_lib.Request) -> Result:
    """Return the result of one request; see `stream`."""
    request = self.decoder.place(request)
    start = time.perf_counter()
    if self.answers is not None:
      request = self.answers(request)
    decoded = jax.block_until_ready(self._decode(request))
    seconds = time.perf_counter() - start
    decoded = jax.device_get(decoded)
    token_decoder.check(decoded)
    return Result(request, decoded, seconds)


def compile_seconds(run: Callable[[], float]) -> float | None:
  """Return what a first call takes longer than a second one, in seconds.

  Args:
    run: Makes the call, and returns its seconds.
  Returns:
    None if JAX's compilation cache had one of its programs.
  """
  with compilation_cache.watch() as loaded:
    first = run()
  second = run()
  return None if loaded else max(first - second, 0.0)
