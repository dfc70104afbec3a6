# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same batches decoded plainly and speculatively, each timed.

Legend: batches, repeats.
"""

from collections.abc import Callable, Iterator
import dataclasses
import functools
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import analysis
from speculative_t5x import compilation_cache
from speculative_t5x import interruption
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import token_decoder
from speculative_t5x import verification

WARMUP = 2  # untimed calls of each way: one compiles, one runs
_SECONDS_BETWEEN_LINES = 10


@dataclasses.dataclass(frozen=True)
class Run:
  """One way of decoding all batches.

  Attributes:
    decoded: one a batch, as numpy arrays, padding rows included.
    seconds: [batches], from token ids on the device to token ids on the
      device, the encoders included, no compilation; the median of the repeats.
    compile_s: what the first call took longer than the second; None if JAX's
      compilation cache had one of its programs.
  """

  decoded: list[token_decoder.Decoded]
  seconds: np.ndarray
  compile_s: float | None

  @property
  def walltime_s(self) -> float:
    return float(self.seconds.sum())

  def best_last(
      self, num_examples: int, num_decodes: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """See `token_decoder.best_last`; without the padding rows."""
    parts = [token_decoder.best_last(d, num_decodes) for d in self.decoded]
    sequences, scores = map(np.concatenate, zip(*parts, strict=True))
    return sequences[:num_examples], scores[:num_examples]


def requests(
    tokens: np.ndarray,
    example_ids: np.ndarray,
    *,
    batch_size: int,
    length: int,
    seed: int,
    sampling: sampling_lib.Sampling,
    draft_sampling: sampling_lib.Sampling,
    rule: verification.Rule = verification.TOKENWISE,
) -> Iterator[token_decoder.Request]:
  """Examples in batches of one shape, the last filled up by padding.

  Args:
    tokens: [examples, inputs_length] int32.
    example_ids: [examples] int32.
    batch_size: examples a batch.
    length: most tokens of an output.
    seed: of the samples.
    sampling: the target's law.
    draft_sampling: the draft's.
    rule: which guesses are kept.
  """
  pad = functools.partial(_pad_rows, count=batch_size)
  for start in range(0, len(tokens), batch_size):
    part = slice(start, start + batch_size)
    yield token_decoder.Request(
        encoder_input_tokens=pad(tokens[part]),
        example_ids=pad(example_ids[part]),
        limits=pad(np.full(len(tokens[part]), length, np.int32)),
        seed=jnp.asarray(seed, jnp.int32),
        sampling=sampling,
        draft_sampling=draft_sampling,
        rule=rule,
    )


def _pad_rows(x: np.ndarray, count: int) -> jax.Array:
  padding = [(0, count - len(x))] + [(0, 0)] * (x.ndim - 1)
  return jnp.asarray(np.pad(x, padding))


def run(
    decoder: token_decoder.TokenDecoder,
    batches: list[token_decoder.Request],
    *,
    repeats: int,
    name: str,
    between: Callable[[int], object] = lambda number: None,
) -> tuple[Run, Run]:
  """Decodes every batch in both ways, in turns, after a warm-up.

  Both ways see the same state of the machine: they alternate batch by batch,
  and which comes first alternates too.

  Args:
    decoder: both ways.
    batches: of one shape.
    repeats: how often each batch is timed.
    name: what the progress lines begin with.
    between: called with the number of each batch before it is decoded, so that
      what it measures sees the same state of the machine.
  Returns:
    The plain and the speculative run.
  """
  ways = (decoder.plain, decoder.speculative)
  compile_s = [_warm_up(way, batches[0]) for way in ways]
  decoded = [[], []]
  seconds = np.zeros((2, len(batches), repeats))
  progress = _Progress(name, len(batches))
  for number, batch in enumerate(batches):
    between(number)
    for repeat in range(repeats):
      order = (0, 1) if (number + repeat) % 2 == 0 else (1, 0)
      outputs = [None, None]
      for way in order:
        outputs[way], seconds[way, number, repeat] = _timed(ways[way], batch)
    for way in (0, 1):
      decoded[way].append(jax.device_get(outputs[way]))
    progress.show(number + 1)
  medians = np.median(seconds, axis=-1)
  return tuple(
      Run(*parts) for parts in zip(decoded, medians, compile_s, strict=True)
  )


def _timed(way: Callable, batch) -> tuple[token_decoder.Decoded, float]:
  start = time.perf_counter()
  output = jax.block_until_ready(way(batch))
  return output, time.perf_counter() - start


def _warm_up(way: Callable, batch) -> float | None:
  with compilation_cache.watch() as loaded:
    _, first = _timed(way, batch)
  _, second = _timed(way, batch)
  return None if loaded else max(first - second, 0.0)


class _Progress:
  """A line now and then on stderr."""

  def __init__(self, name: str, total: int):
    self._name, self._total = name, total
    self._start = self._last = time.monotonic()

  def show(self, done: int) -> None:
    interruption.check()
    now = time.monotonic()
    if done < self._total and now - self._last < _SECONDS_BETWEEN_LINES:
      return
    self._last = now
    left = (now - self._start) / done * (self._total - done)
    print(
        f'{self._name}: {done} of {self._total} batches, {left:.0f} s left',
        file=sys.stderr,
    )


def speedup(plain: Run, speculative: Run) -> float:
  """Plain over speculative walltime on the same examples."""
  return plain.walltime_s / speculative.walltime_s


def speedup_interval(plain: Run, speculative: Run) -> list[float] | None:
  """95 percent interval of the speedup by a paired bootstrap over batches.

  None for fewer batches than an interval takes.
  """
  interval = analysis.ratio_interval(plain.seconds, speculative.seconds)
  return None if interval is None else list(interval)
