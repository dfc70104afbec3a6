# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs T5X's own scripts, as a user does."""

import collections
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import contextlib
import gzip
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf

from tests import processes

CHECKOUT = pathlib.Path(__file__).parents[2]
NUM_EXAMPLES = 64  # what the oracle has decoded
# Bindings of a mesh of eight devices, each two of which share a target.
MESH_4X2 = (
    'partitioning.PjitPartitioner.num_partitions=None',
    'partitioning.PjitPartitioner.model_parallel_submesh=(1, 2)',
)
# Bindings that split a target over two processes of one device each.
TWO_HOSTS = (
    'partitioning.PjitPartitioner.num_partitions=None',
    'partitioning.PjitPartitioner.model_parallel_submesh=(2, 1)',
)
_SECONDS = 600


def quoted(path) -> str:
  return f'"{path}"'


def run(script: str, *flags: str, devices: int = 1) -> str:
  """Run `python -m t5x.<script>` with flags; return its log."""
  return _run([f't5x.{script}'], flags, devices)


def run_on_hosts(script: str, *flags: str) -> list[str]:
  """Run a script in two connected processes; return their logs."""
  program = ['speculative_t5x.jobs.command_line.t5x_multihost', script]

  def run_one(index):
    own = [
        f'--coordinator_address=localhost:{port}',
        '--process_count=2',
        f'--process_index={index}',
    ]
    return _run(program, [*own, *flags], devices=1)

  with _reserved_port() as port, futures.ThreadPoolExecutor() as pool:
    return list(pool.map(run_one, range(2)))


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
  """Yield a port that only a server with SO_REUSEPORT can use.

  JAX's is one. Other programs are not given the port in the meantime.
  """
  with socket.socket() as reserved:
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(('localhost', 0))
    yield reserved.getsockname()[1]


def _run(program: Sequence[str], flags: Sequence[str], devices: int) -> str:
  """Run a module with flags, which must succeed; return its log."""
  done = subprocess.run(
      _command(program, flags),
      cwd=CHECKOUT,
      env=_environment(devices),
      capture_output=True,
      text=True,
      timeout=_SECONDS,
  )
  assert done.returncode == 0, done.stderr[-4000:]
  return done.stderr


def run_until(script: str, *flags: str, is_time: Callable[[], bool]) -> bool:
  """Run a script and kill it when it is time; return whether it was."""
  with subprocess.Popen(
      _command([f't5x.{script}'], flags),
      cwd=CHECKOUT,
      env=_environment(devices=1),
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
  ) as process:
    while process.poll() is None and not is_time():
      time.sleep(0.05)
    was_running = process.poll() is None
    process.kill()
  return was_running


def _command(program: Sequence[str], flags: Sequence[str]) -> list[str]:
  search_paths = f'--gin_search_paths={CHECKOUT}'
  return [sys.executable, '-m', *program, search_paths, *flags]


def _environment(devices: int) -> dict[str, str]:
  return {
      **os.environ,
      'PYTHONPATH': f'{CHECKOUT}:{os.environ.get("PYTHONPATH", "")}',
      **processes.environment(devices),
  }


def run_multi30k(script: str, *arguments, devices: int = 1, **paths):
  """Run the project's Multi30k configuration; see `multi30k_flags`."""
  flags = multi30k_flags(script, *arguments, **paths)
  return run(script, *flags, devices=devices)


def multi30k_flags(
    script: str, shared, output, *bindings: str, gin_file=None, **paths
) -> list[str]:
  """Return the flags of the Multi30k configuration with the oracle's pair.

  Bindings come after all else. Paths of `data`, `target` or `draft` are in
  place of those in the folder of shared test data.
  """
  oracle = shared / 't5x_oracle'
  target = paths.get('target', oracle / 'target/t5x_orbax/checkpoint_2500')
  draft = paths.get('draft', oracle / 'draft/t5x_orbax/checkpoint_1500')
  data = paths.get('data', shared / 'data/multi30k')
  settings = [
      f'{script.upper()}_OUTPUT_DIR={quoted(output)}',
      f'MULTI30K_DIR={quoted(data)}',
      f'CHECKPOINT_PATH={quoted(target)}',
      f'DRAFT_CHECKPOINT_PATH={quoted(draft)}',
  ]
  if script == 'eval':
    settings.append(f'NUM_EXAMPLES={NUM_EXAMPLES}')
  return [
      f'--gin_file=configs/t5x/{script}_multi30k.gin',
      *([f'--gin_file={gin_file}'] if gin_file else []),
      *(f'--gin.{setting}' for setting in [*settings, *bindings]),
  ]


def first_examples(shared, folder: pathlib.Path) -> pathlib.Path:
  """Make a copy of Multi30k with only the oracle's examples."""
  source = shared / 'data/multi30k'
  folder.mkdir()
  for path in source.glob('*.gz'):
    lines = gzip.decompress(path.read_bytes()).decode().split('\n')
    text = '\n'.join(lines[:NUM_EXAMPLES]) + '\n'
    (folder / path.name).write_bytes(gzip.compress(text.encode()))
  name = 'ende4k.model'
  (folder / name).write_bytes((source / name).read_bytes())
  return folder


def bleu(output: pathlib.Path) -> float:
  """Return the BLEU that T5X's eval job wrote."""
  path = output / 'inference_eval/multi30k_ende-metrics.jsonl'
  return json.loads(path.read_text().splitlines()[-1])['bleu']


def translations(output: pathlib.Path) -> list[str]:
  """Return the output of each example that T5X's eval job wrote."""
  (path,) = (output / 'inference_eval').glob('*-002500.jsonl')
  return [line['prediction'] for line in read_jsonl(path)]


def logged(folder: pathlib.Path) -> dict[str, dict]:
  """Return the tensors in TensorBoard's files, by tag and step."""
  found = collections.defaultdict(dict)
  for path in sorted(folder.glob('events*')):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        found[value.tag][event.step] = value.tensor
  return found


def read_jsonl(path: pathlib.Path) -> list[dict]:
  return [json.loads(line) for line in path.read_text().splitlines()]


def predictions(output: pathlib.Path) -> list[dict]:
  """Return the predictions that T5X's infer job wrote, one per example."""
  (path,) = output.glob('multi30k_ende-predict*-of-0000?')
  return read_jsonl(path)


def unpadded(tokens: np.ndarray) -> list[list[int]]:
  """Return rows without their padding."""
  return [row[row != 0].tolist() for row in tokens]
