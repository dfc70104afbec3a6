# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Copies a checkpoint without optimizer state, and casts its parameters.

  python scripts/export_params.py <checkpoint> <folder> [dtype, e.g. bfloat16]

writes <folder>/checkpoint_<step> in T5X's Orbax layout.
"""

import sys

import jax.numpy as jnp

from speculative_t5x import checkpoints

# Orbax writes the folder's path on the saving machine into these files.
_MARKERS = ('commit_success.txt', 'state/commit_success.txt')


def main(source: str, folder: str, dtype: str = 'bfloat16'):
  checkpoint = checkpoints.open(source)
  expected = checkpoints.nest(checkpoint.specs)
  params = checkpoint.restore_params(expected, jnp.dtype(dtype))
  saved = checkpoints.save(folder, checkpoint.step, params)
  for marker in (saved / name for name in _MARKERS):
    marker.write_text('Checkpoint commit was successful')
  print(saved)


if __name__ == '__main__':
  main(*sys.argv[1:])
