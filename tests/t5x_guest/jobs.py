# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs T5X's own scripts, as a user does."""

import gzip
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

from tests import simulated_devices

CHECKOUT = pathlib.Path(__file__).parents[2]
NUM_EXAMPLES = 64  # what the oracle has decoded
_SECONDS = 600


def quoted(path) -> str:
  return f'"{path}"'


def run(script: str, *flags: str, devices: int = 1, cwd=CHECKOUT):
  """Runs `python -m t5x.<script>` with flags; returns the ended process."""
  env = {
      **os.environ,
      'PYTHONPATH': f'{CHECKOUT}:{os.environ.get("PYTHONPATH", "")}',
      **simulated_devices.environment(devices),
  }
  search_paths = f'--gin_search_paths={CHECKOUT}'
  command = [sys.executable, '-m', f't5x.{script}', search_paths]
  return subprocess.run(
      [*command, *flags],
      cwd=cwd,
      env=env,
      capture_output=True,
      text=True,
      timeout=_SECONDS,
  )


def run_multi30k(
    script: str, shared, output, *bindings: str, devices=1, **paths
):
  """Runs the project's Multi30k configuration on the oracle's pair.

  Args:
    script: 'eval' or 'infer'.
    shared: the folder of shared test data.
    output: folder of the results.
    *bindings: `NAME=VALUE` for gin, after all else.
    devices: simulated devices.
    **paths: of `target` or `draft`, in place of the oracle's.
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
  return run(
      script,
      f'--gin_file=configs/t5x/{script}_multi30k.gin',
      *(f'--gin.{setting}' for setting in [*settings, *bindings]),
      devices=devices,
  )


def first_examples(shared, folder: pathlib.Path) -> pathlib.Path:
  """Makes a copy of Multi30k with only the oracle's examples."""
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
  """Returns the BLEU that T5X's eval job wrote."""
  path = output / 'inference_eval/multi30k_ende-metrics.jsonl'
  return json.loads(path.read_text().splitlines()[-1])['bleu']


def translations(output: pathlib.Path) -> list[str]:
  """Returns the output of each example that T5X's eval job wrote."""
  (path,) = (output / 'inference_eval').glob('*-002500.jsonl')
  return [line['prediction'] for line in read_jsonl(path)]


def read_jsonl(path: pathlib.Path) -> list[dict]:
  return [json.loads(line) for line in path.read_text().splitlines()]


def predictions(output: pathlib.Path) -> list[dict]:
  """Returns the predictions that T5X's infer job wrote, one per example."""
  (path,) = output.glob('multi30k_ende-predict*-of-*1')
  return read_jsonl(path)


def unpadded(tokens: np.ndarray) -> list[list[int]]:
  """Returns rows without their padding."""
  return [row[row != 0].tolist() for row in tokens]
