# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters read from every layout of T5, and training states written.

Three layouts are read: T5X's today (Orbax), T5X's before (msgpack and zarr, as
the public T5 checkpoints), and Hugging Face folders of safetensors. Parameters
have T5X's names in all of them. `docs/checkpoints.md` says which models that
covers.
"""

from speculative_t5x.checkpoints import hugging_face
from speculative_t5x.checkpoints.errors import CheckpointError
from speculative_t5x.checkpoints.layouts import Layout
from speculative_t5x.checkpoints.layouts import Path
from speculative_t5x.checkpoints.layouts import detect
from speculative_t5x.checkpoints.layouts import find
from speculative_t5x.checkpoints.layouts import step_folders
from speculative_t5x.checkpoints.restoring import check_shapes
from speculative_t5x.checkpoints.restoring import read_params
from speculative_t5x.checkpoints.restoring import read_specs
from speculative_t5x.checkpoints.restoring import read_step
from speculative_t5x.checkpoints.restoring import restore_params
from speculative_t5x.checkpoints.restoring import restore_state
from speculative_t5x.checkpoints.saving import save
from speculative_t5x.checkpoints.saving import save_each
from speculative_t5x.checkpoints.trees import flatten
from speculative_t5x.checkpoints.trees import nest

__all__ = [
    'CheckpointError',
    'Layout',
    'Path',
    'check_shapes',
    'detect',
    'find',
    'flatten',
    'hugging_face',
    'nest',
    'read_params',
    'read_specs',
    'read_step',
    'restore_params',
    'restore_state',
    'save',
    'save_each',
    'step_folders',
]
