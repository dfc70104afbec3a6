# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Copies a checkpoint without its optimizer state, its parameters cast.

  python scripts/export_params.py <checkpoint> <folder> [dtype, e.g. bfloat16]

writes <folder>/checkpoint_<step> in T5X's Orbax layout.
"""

import sys

import jax.numpy as jnp

from speculative_t5x import checkpoints

# Orbax writes into these where the folder was on the machine that saved it.
_MARKERS = ('commit_success.txt', 'state/commit_success.txt')


def main(source: str, folder: str, dtype: str = 'bfloat16'):
  step_folder = checkpoints.find(source)
  expected = checkpoints.nest(checkpoints.read_specs(step_folder))
  params = checkpoints.restore_params(step_folder, expected, jnp.dtype(dtype))
  saved = checkpoints.save(folder, checkpoints.read_step(source), params)
  for marker in (saved / name for name in _MARKERS):
    marker.write_text('Checkpoint commit was successful')
  print(saved)


if __name__ == '__main__':
  main(*sys.argv[1:])
