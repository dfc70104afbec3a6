# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5's public checkpoints in T5X's bucket, by the names of their folders.

T5X's page of models lists the folders and the steps.
"""

import os

from etils import epath

from speculative_t5x.loading.files import user_paths

_FOLDER = 'gs://t5-data/pretrained_models/t5x'
_FLAN_STEPS = {
    'small': 1_198_000,
    'base': 1_184_000,
    'large': 1_164_000,
    'xl': 1_138_000,
    'xxl': 1_114_000,
}
STEPS = {
    **{f't5_1_1_{size}': 1_000_000 for size in _FLAN_STEPS},
    **{f't5_1_1_lm100k_{size}': 1_100_000 for size in _FLAN_STEPS},
    **{f'flan_t5_{size}': step for size, step in _FLAN_STEPS.items()},
    **{f't5_{size}': 1_000_000 for size in ('small', '3B', '11B')},
    't5_base': 999_900,
    't5_large': 1_000_700,
}
"""The training step of each checkpoint."""
VOCABULARY_FILE = (
    'gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model'
)
"""The vocabulary of all of them, with T5's 100 sentinel tokens."""


def folder(name: str) -> str:
  """Return the path of the checkpoint of a name in `STEPS`."""
  return f'{_FOLDER}/{name}/checkpoint_{STEPS[name]}'


def checkpoint(path: epath.PathLike) -> epath.PathLike:
  """Return the checkpoint that a name of `STEPS` means; other paths as given.

  A name at which there is a local path is that path.
  """
  return folder(os.fspath(path)) if _is_name(path) else path


def vocabulary(path: epath.PathLike) -> epath.PathLike:
  """Return the vocabulary of what `checkpoint` knows; other paths as given."""
  return VOCABULARY_FILE if _is_name(path) else path


def _is_name(path: epath.PathLike) -> bool:
  return os.fspath(path) in STEPS and not user_paths.expand(path).exists()
