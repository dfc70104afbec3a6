# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that reading holds one tensor in memory at a time.

Each case is read by a process of its own, which says by how much its peak
resident memory (VmHWM, set back before reading) rose above where it began. That
counts all that reading takes, pages of files that PyTorch maps included; pages
that the system caches belong to no process.
"""

import pathlib
import sys

import jax
import numpy as np
import pytest

from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import processes
from tests import tiny

_MB = 2**20
_RESET = pathlib.Path('/proc/self/clear_refs')
pytestmark = pytest.mark.skipif(
    not _RESET.exists(), reason='needs the memory records of Linux'
)
# Memory of threads and allocators, independent of the checkpoint.
_SLACK = 4 * _MB

_READ = """
import sys
from speculative_t5x.loading import checkpoints

def resident(field):
  for line in open('/proc/self/status'):
    if line.startswith(field):
      return 1024 * int(line.split()[1])

opened = checkpoints.open(sys.argv[1])
specs = opened.specs
names = sorted(specs, key=lambda name: specs[name].size)
opened._read_array(names[0])  # threads are started
open('/proc/self/clear_refs', 'w').write('5')
start = resident('VmRSS')
total = 0
for name in names:
  array = opened._read_array(name)
  total += array.nbytes
  array[0].sum()
  del array
print(total, resident('VmHWM') - start)
"""


def write(layout: str, folder: pathlib.Path, num_bytes: int) -> int:
  """Write about `num_bytes` bytes; return those of the largest tensor.

  The embedding and the head are the largest, as in a T5. Values are random, so
  that they compress as weights do.
  """
  width = 16 * int((num_bytes / 4 / 255) ** 0.5 / 16)
  config = tiny.config(
      vocab_size=32 * width,
      emb_dim=width,
      num_heads=2,
      head_dim=width // 2,
      mlp_dim=4 * width,
      num_encoder_layers=5,
      num_decoder_layers=5,
  )
  rng = np.random.default_rng(0)
  params = jax.tree.map(
      lambda x: rng.random(x.shape, np.float32) - 0.5,
      models.abstract_params(config),
  )
  largest = max(x.nbytes for x in jax.tree.leaves(params))
  if layout != 'zarr':
    tensors = by_hand.hugging_face_tensors(config, params)
    fields = by_hand.hugging_face_config(config)
    by_hand.write_hugging_face(folder, fields, tensors, shards=2)
    if layout == 'torch':
      torch = pytest.importorskip('torch', reason='PyTorch is not installed')
      for file in folder.glob('model*'):
        file.unlink()
      tensors = {name: torch.from_numpy(x) for name, x in tensors.items()}
      torch.save(tensors, folder / 'pytorch_model.bin')
  else:
    # T5X splits at 64 MB, so its larger tensors have several chunks.
    by_hand.write_legacy(folder, params, max_chunk=largest // 16)
  return largest


@pytest.mark.parametrize('layout', ['zarr', 'hugging_face', 'torch'])
def test_at_most_twice_the_largest_tensor(tmp_path, layout):
  num_bytes = 64 * _MB
  largest = write(layout, tmp_path / 'model', num_bytes)
  command = [sys.executable, '-c', _READ, str(tmp_path / 'model')]
  done = processes.outside(
      command, tmp_path, JAX_PLATFORMS='cpu', MALLOC_MMAP_THRESHOLD_=str(_MB)
  )
  total, peak = map(int, done.stdout.split())
  assert total > 0.9 * num_bytes > 5 * largest
  assert peak <= 2 * largest + _SLACK
