# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a TPU worker, optionally with a trace and several hosts.

  python -m scripts.cloud_tpu.worker_main --output_dir=<folder> [--trace] \
    [--num_hosts=4] <program> <its arguments>

A program is `speculative-t5x`, `t5x.train`, `t5x.eval` or `t5x.infer`. It gets
the output folder by its own flag. The trace, for xprof, is written to `trace`
in that folder.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import pathlib
import sys
import tempfile

from etils import epath
import jax

from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import main as package_main
from speculative_t5x.jobs.command_line import t5x_multihost

# Each program's flag for the output folder; T5X's values are gin expressions.
_OUTPUT_FLAGS = {
    'speculative-t5x': '--output_dir={}',
    't5x.train': '--gin.MODEL_DIR="{}"',
    't5x.eval': '--gin.EVAL_OUTPUT_DIR="{}"',
    't5x.infer': '--gin.INFER_OUTPUT_DIR="{}"',
}


def main(argv: Sequence[str]) -> int | str | None:
  """Runs a program and returns its exit status.

  Args:
    argv: Arguments as in the docstring of this module.
  """
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('--output_dir', required=True)
  parser.add_argument('--trace', action='store_true')
  parser.add_argument('--num_hosts', type=int, default=1)
  parser.add_argument('program', choices=list(_OUTPUT_FLAGS))
  parser.add_argument('arguments', nargs=argparse.REMAINDER)
  options = parser.parse_args(argv)
  if options.num_hosts > 1:
    # Connects the hosts, which must happen before devices are used.
    jax.distributed.initialize()
  flag = _OUTPUT_FLAGS[options.program].format(options.output_dir)
  arguments = [*options.arguments, flag]
  with contextlib.ExitStack() as stack:
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
  """Traces the context, also if it raises.

  JAX writes traces only to local folders, so they are copied.

  Args:
    folder: folder for `plugins/profile/<time>/<host>.xplane.pb`; may be remote.
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
  sys.exit(main(sys.argv[1:]))
