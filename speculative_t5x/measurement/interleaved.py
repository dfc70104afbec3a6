# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same batches decoded plainly and speculatively, each timed.

Legend: batches, repeats.
"""

from collections.abc import Callable
import dataclasses
import sys
import time

import jax
import numpy as np
from rich import console
from rich import progress

from speculative_t5x import token_decoder
from speculative_t5x.measurement import intervals
from speculative_t5x.runtime import compilation_cache
from speculative_t5x.runtime import interruption

WARMUP = 2  # untimed calls of each way: one compiles, one runs
_SECONDS_BETWEEN_LINES = 10


@dataclasses.dataclass(frozen=True)
class Run:
  """One way of decoding all batches.

  Attributes:
    decoded: one per batch, as numpy arrays, padding rows included.
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


def run(
    decoder: token_decoder.TokenDecoder,
    batches: list[token_decoder.Request],
    *,
    repeats: int,
    name: str,
    between: Callable[[int], object] = lambda number: None,
) -> tuple[Run, Run]:
  """Decodes every batch in both ways, interleaved, after a warm-up.

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
  with _Progress(name, len(batches)) as shown:
    for number, batch in enumerate(batches):
      between(number)
      for repeat in range(repeats):
        order = (0, 1) if (number + repeat) % 2 == 0 else (1, 0)
        outputs = [None, None]
        for way in order:
          outputs[way], seconds[way, number, repeat] = _timed(ways[way], batch)
      for way in (0, 1):
        decoded[way].append(jax.device_get(outputs[way]))
      shown.show(number + 1)
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
  """Shows how many batches are done: as a bar on a terminal, else in lines.

  It writes to stderr, and only within `show`: a thread that redraws the bar
  would disturb the timing in between.
  """

  def __init__(self, name: str, total: int):
    terminal = console.Console(stderr=True)
    self._bar = progress.Progress(
        progress.TextColumn('{task.description}', markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
        auto_refresh=False,
        disable=not terminal.is_terminal,
    )
    self._task = self._bar.add_task(name, total=total)
    self._last_line = time.monotonic()

  def __enter__(self) -> '_Progress':
    self._bar.start()
    return self

  def __exit__(self, *error: object) -> None:
    self._bar.stop()

  def show(self, num_done: int) -> None:
    """Shows that so many batches are done.

    Raises:
      KeyboardInterrupt: if there was an interrupt; see `interruption`.
    """
    interruption.check()
    self._bar.update(self._task, completed=num_done, refresh=True)
    task, now = self._bar.tasks[self._task], time.monotonic()
    is_due = task.finished or now - self._last_line >= _SECONDS_BETWEEN_LINES
    if self._bar.disable and is_due:
      self._last_line = now
      line = f'{task.description}: {num_done} of {task.total} batches'
      if task.time_remaining is not None:  # known after two batches
        line += f', {task.time_remaining:.0f} s left'
      print(line, file=sys.stderr)


def speedup(plain: Run, speculative: Run) -> float:
  """Returns plain over speculative walltime on the same examples."""
  return plain.walltime_s / speculative.walltime_s


def speedup_interval(
    plain: Run, speculative: Run
) -> tuple[float, float] | None:
  """Returns the 95 percent interval of the speedup, None for too few batches.

  It is a paired bootstrap over batches, see `intervals.ratio_interval`.
  """
  return intervals.ratio_interval(plain.seconds, speculative.seconds)
