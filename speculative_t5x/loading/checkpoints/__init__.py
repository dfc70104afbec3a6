# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters read from every layout, and training states written.

`open` finds a checkpoint, whose specs, parameters and state can then be read.
Three layouts are read: T5X's today (Orbax), T5X's before (msgpack and zarr, as
the public checkpoints), and Hugging Face folders. Parameters have T5X's names
in all of them. `docs/checkpoints.md` says which models that covers.
"""

from speculative_t5x.loading.checkpoints import hugging_face
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import legacy
from speculative_t5x.loading.checkpoints import orbax
from speculative_t5x.loading.checkpoints.checkpoint import Checkpoint
from speculative_t5x.loading.checkpoints.checkpoint import differences
from speculative_t5x.loading.checkpoints.checkpoint import shapes
from speculative_t5x.loading.checkpoints.layouts import WRITTEN_ANEW
from speculative_t5x.loading.checkpoints.layouts import Layout
from speculative_t5x.loading.checkpoints.layouts import Path
from speculative_t5x.loading.checkpoints.layouts import fetch
from speculative_t5x.loading.checkpoints.layouts import files_in
from speculative_t5x.loading.checkpoints.layouts import is_cut_off
from speculative_t5x.loading.checkpoints.layouts import step_folders
from speculative_t5x.loading.checkpoints.saving import save
from speculative_t5x.loading.checkpoints.saving import save_each
from speculative_t5x.loading.checkpoints.trees import flatten
from speculative_t5x.loading.checkpoints.trees import is_finite
from speculative_t5x.loading.checkpoints.trees import nest
from speculative_t5x.loading.errors import CheckpointError

_KINDS = {
    each.layout: each
    for each in (
        orbax.OrbaxCheckpoint,
        legacy.LegacyCheckpoint,
        hugging_face.HuggingFaceCheckpoint,
    )
}


def open(path: Path) -> Checkpoint:
  """Find a checkpoint; read no metadata yet.

  The path is of a `checkpoint_<step>` folder of T5X, a folder of several (the
  newest step is taken), or a Hugging Face folder (config.json and safetensors
  or PyTorch's files). Or it is the name of a model of the Hugging Face hub,
  which is downloaded (`hub`), or of T5X's bucket (`public_t5`).
  """
  source, path = layouts.fetch(path)
  folder, layout = layouts.resolve(path)
  return _KINDS[layout](folder, source)
