# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a host of a Cloud TPU.

  python -m scripts.cloud_tpu.worker --output_dir=<folder> [--chips=1] \
    [--num_hosts=4] [--trace] <program> <its arguments>

A program is `speculative-t5x`, `t5x.train`, `t5x.eval` or `t5x.infer`. It gets
the output folder by its own flag, and fails without a TPU unless JAX_PLATFORMS
says otherwise. The trace, for xprof, is written to `trace` in that folder.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import os
import pathlib
import sys
import tempfile

from etils import epath
import jax

from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import main as package_main
from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.command_line import t5x_multihost

# Each program's flag for the output folder; T5X's values are gin expressions.
_OUTPUT_FLAGS = {
    'speculative-t5x': '--output_dir={}',
    't5x.train': '--gin.MODEL_DIR="{}"',
    't5x.eval': '--gin.EVAL_OUTPUT_DIR="{}"',
    't5x.infer': '--gin.INFER_OUTPUT_DIR="{}"',
}
# One chip as a complete TPU: without the bounds, libtpu waits for the others.
_ONE_CHIP = {
    'TPU_VISIBLE_CHIPS': '0',
    'TPU_CHIPS_PER_PROCESS_BOUNDS': '1,1,1',
    'TPU_PROCESS_BOUNDS': '1,1,1',
}


def main(argv: Sequence[str]) -> int | str | None:
  """Run a program and return its exit status.

  Args:
    argv: Arguments as in the docstring of this module.
  """
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('--output_dir', required=True)
  parser.add_argument('--chips', choices=['1', 'all'], default='all')
  parser.add_argument('--num_hosts', type=int, default=1)
  parser.add_argument('--trace', action='store_true')
  parser.add_argument('program', choices=list(_OUTPUT_FLAGS))
  parser.add_argument('arguments', nargs=argparse.REMAINDER)
  options = parser.parse_args(argv)
  if options.chips == '1':
    os.environ.update(_ONE_CHIP)
  if not jax.config.jax_platforms:
    # Without it, JAX would use the CPU silently where it finds no TPU.
    jax.config.update('jax_platforms', 'tpu,cpu')
  flag = _OUTPUT_FLAGS[options.program].format(options.output_dir)
  arguments = [*options.arguments, flag]
  with contextlib.ExitStack() as stack:
    try:
      # Before the trace, which opens the devices.
      if options.num_hosts > 1:
        t5x_multihost.connect()
      else:
        process.open_devices()
    except (RuntimeError, ValueError) as error:
      return f'error: {error}'
    if options.trace:
      stack.enter_context(traced(epath.Path(options.output_dir) / 'trace'))
    if options.program == 'speculative-t5x':
      return package_main.main(arguments)
    # Jobs of the package enable the cache themselves.
    compilation_cache.enable(options.output_dir)
    # As in the heads of configs/t5x: the checkout is the current folder.
    arguments = ['--gin_search_paths=.', *arguments]
    script = options.program.removeprefix('t5x.')
    return t5x_multihost.run_script(script, arguments)


@contextlib.contextmanager
def traced(folder: epath.Path) -> Iterator[None]:
  """Trace the context, also if it raises.

  JAX writes traces only to local folders, so they are copied.

  Args:
    folder: Folder for `plugins/profile/<time>/<host>.xplane.pb`; may be remote.
  """
  options = jax.profiler.ProfileOptions()
  # Python calls would fill most of the trace and slow the job down.
  options.python_tracer_level = 0
  with tempfile.TemporaryDirectory() as local:
    try:
      with jax.profiler.trace(local, profiler_options=options):
        yield
    finally:
      for path in filter(pathlib.Path.is_file, pathlib.Path(local).rglob('*')):
        target = folder / path.relative_to(local).as_posix()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


if __name__ == '__main__':
  process.open_streams()
  sys.exit(main(sys.argv[1:]))
