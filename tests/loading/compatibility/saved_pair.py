# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a tiny target and a smaller draft model.

Both have as many logits as the vocabulary of the embedded corpus has pieces.
"""

import pathlib

from speculative_t5x.loading import checkpoints
from tests import tiny

TARGET = tiny.config(vocab_size=2048)
DRAFT = tiny.config(vocab_size=2048, num_decoder_layers=1, emb_dim=16)


def save(folder: pathlib.Path) -> None:
  """Write the checkpoints to the subfolders `target` and `draft`."""
  checkpoints.save(folder / 'target', 1, tiny.params(TARGET))
  checkpoints.save(folder / 'draft', 1, tiny.params(DRAFT))
