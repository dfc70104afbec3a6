# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Runs T5X's train, eval or infer script on several hosts.

  python -m speculative_t5x.jobs.command_line.t5x_multihost {train,eval,infer} \
    [--coordinator_address=HOST:PORT --process_count=N --process_index=I] \
    <flags of the T5X script>

Every host runs the same command with its own index, which counts from 0. The
address is that of host 0. The three flags may be left out where JAX finds the
other hosts itself, as on a Cloud TPU.
"""

import argparse
from collections.abc import Sequence
import os
import runpy
import sys

import jax

from speculative_t5x.jobs.command_line import process

# JAX's own port for Cloud TPUs, 8482, is not among those that Google's firewall
# rule for a slice opens (https://github.com/jax-ml/jax/issues/35905).
_CLOUD_TPU_PORT = '8476'


def main(argv: Sequence[str] | None = None) -> int | str | None:
  """Connect the hosts, run the script and return its exit status.

  An invalid command line prints an error and exits with status 2. A connection
  that fails prints an error and exits with status 1.
  """
  _, usage, description = __doc__.split('\n\n')
  parser = argparse.ArgumentParser(
      usage=usage.strip(), description=description, allow_abbrev=False
  )
  parser.add_argument('script', choices=['train', 'eval', 'infer'])
  parser.add_argument('--coordinator_address')
  parser.add_argument('--process_count', type=int)
  parser.add_argument('--process_index', type=int)
  options, arguments = parser.parse_known_args(argv)
  try:
    # Before T5X is imported, because the devices must not be in use yet.
    connect(
        options.coordinator_address,
        options.process_count,
        options.process_index,
    )
  except (RuntimeError, ValueError) as error:
    return (
        f'error: JAX cannot connect the hosts ({error}). Start the command on'
        ' all hosts at the same time, each with all of --coordinator_address'
        ' (HOST:PORT of host 0), --process_count and its own --process_index,'
        f' or run python -m t5x.{options.script} on a single host.'
    )
  return run_script(options.script, arguments)


def connect(
    address: str | None = None,
    count: int | None = None,
    index: int | None = None,
) -> None:
  """Connect the hosts, and open their TPU if JAX_PLATFORMS asks for one.

  The address is host 0 and a free port of it, HOST:PORT; indices count from 0.
  Arguments are None where JAX finds them. The process ends with an error if it
  takes longer than two minutes to connect, or to open the TPU.
  """
  os.environ.setdefault('JAX_COORDINATOR_PORT', _CLOUD_TPU_PORT)
  with process.limited(
      'The hosts did not connect. Start the command on all hosts at the same'
      ' time, each with its own --process_index, and check that they reach the'
      ' port of host 0.'
  ):
    jax.distributed.initialize(address, count, index)
  process.open_devices()


def run_script(name: str, arguments: Sequence[str]) -> int | str | None:
  """Run a script of T5X as `python -m` does, and return its exit status."""
  module = f't5x.{name}'
  sys.argv = [module, *arguments]
  try:
    # T5X's gin files import the script as `__main__`.
    runpy.run_module(module, run_name='__main__', alter_sys=True)
  except SystemExit as error:
    return error.code
  return 0


if __name__ == '__main__':
  sys.exit(main())
