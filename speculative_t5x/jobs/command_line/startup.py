# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens the TPU that a program asks for, or ends in one line."""

from collections.abc import Iterator
import contextlib
import os
import sys
import threading

import jax

_WAIT_S = 110  # JAX waits 300 for other hosts, and libtpu without a limit


@contextlib.contextmanager
def limited(remedy: str) -> Iterator[None]:
  """End the process if the context takes longer than two minutes.

  Args:
    remedy: Sentences that tell the user what to do.
  """
  waiting = threading.Timer(_WAIT_S, _give_up, [remedy])
  waiting.start()
  try:
    yield
  finally:
    waiting.cancel()


def open_tpu() -> None:
  """Open the TPU if JAX_PLATFORMS asks for one; otherwise do nothing.

  The process ends if that takes longer than two minutes, as on one host of a
  slice, where libtpu waits for the other hosts.

  Raises:
    RuntimeError: if JAX finds no TPU, or cannot open it.
  """
  platforms = jax.config.jax_platforms or ''
  if 'tpu' not in platforms.split(','):
    return
  with limited(
      'The TPU did not open. If the machine has several hosts, start the'
      ' program on all of them at the same time (docs/t5x.md#several-hosts).'
  ):
    try:
      jax.devices()
    except RuntimeError as error:
      reason = str(error).partition(' (set JAX_PLATFORMS')[0].rstrip('.')
      raise RuntimeError(
          f'JAX_PLATFORMS={platforms} asks for a TPU, and JAX opens none here'
          f' ({reason}). Check that this is a TPU VM, that'
          ' requirements-tpu.txt is installed, and that no other process uses'
          ' the TPU. JAX_PLATFORMS=cpu runs on the CPU.'
      ) from error


def _give_up(remedy: str) -> None:
  """End the process, whose main thread waits in C++."""
  print(
      f'error: Nothing happened for {_WAIT_S} s. {remedy}',
      file=sys.stderr,
      flush=True,
  )
  os._exit(1)
