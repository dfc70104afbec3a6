# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens the devices that a program asks for, or ends in one line."""

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

  It prints the remedy: sentences that tell the user what to do.
  """
  waiting = threading.Timer(_WAIT_S, _give_up, [remedy])
  waiting.start()
  try:
    yield
  finally:
    waiting.cancel()


def open_devices() -> None:
  """Open the devices that JAX_PLATFORMS asks for; without it do nothing.

  The process ends if that takes longer than two minutes, as on one host of a
  slice, where libtpu waits for the other hosts.
  """
  platforms = jax.config.jax_platforms or 'cpu'
  if platforms == 'cpu':
    return
  with limited(
      'The devices did not open. If the machine has several hosts, start the'
      ' program on all of them at the same time (docs/t5x.md#several-hosts).'
  ):
    try:
      jax.devices()
    except (RuntimeError, AssertionError) as error:  # of an unknown platform
      reason = str(error).partition(' (set JAX_PLATFORMS')[0].rstrip('.')
      remedy = "JAX's plugin is installed (jax[cuda12] or jax[cuda13])"
      if 'tpu' in platforms.split(','):
        remedy = 'this is a TPU VM, that requirements-tpu.txt is installed'
      raise RuntimeError(
          f'JAX_PLATFORMS={platforms} asks for devices, and JAX opens none here'
          f' ({reason or "there is no such platform"}). Check that {remedy},'
          ' and that no other process uses them. JAX_PLATFORMS=cpu runs on the'
          ' CPU.'
      ) from error


def _give_up(remedy: str) -> None:
  """End the process, whose main thread waits in C++."""
  print(
      f'error: Nothing happened for {_WAIT_S} s. {remedy}',
      file=sys.stderr,
      flush=True,
  )
  os._exit(1)
