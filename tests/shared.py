# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds test data that is not part of the project."""

import os
import pathlib

_VARIABLE = 'SPECULATIVE_T5X_SHARED'


def shared_folder() -> pathlib.Path | None:
  """Return the folder of shared test data, or None if there is none.

  That is the one named by SPECULATIVE_T5X_SHARED, else `shared` beside the
  checkout.
  """
  beside = pathlib.Path(__file__).parents[2] / 'shared'
  folder = pathlib.Path(os.environ.get(_VARIABLE) or beside)
  return folder if folder.is_dir() else None
