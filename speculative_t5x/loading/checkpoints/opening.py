# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens a checkpoint of whatever layout."""

from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import hugging_face
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import legacy
from speculative_t5x.loading.checkpoints import orbax

_KINDS = {
    each.layout: each
    for each in (
        orbax.OrbaxCheckpoint,
        legacy.LegacyCheckpoint,
        hugging_face.HuggingFaceCheckpoint,
    )
}


def open(path: layouts.Path) -> checkpoint.Checkpoint:
  """Finds a checkpoint; reads no metadata yet.

  Args:
    path: A `checkpoint_<step>` folder of T5X, a folder of several (the newest
      step is taken), or a Hugging Face folder (config.json and
      safetensors or PyTorch's files).
  Raises:
    CheckpointError: if there is no finished checkpoint of a known layout.
  """
  folder, layout = layouts.resolve(path)
  return _KINDS[layout](folder)
