# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the generator knows: templates, words and German declension."""

import pathlib
import tomllib
from typing import Any


def read(name: str) -> dict[str, Any]:
  """Reads a file by its path below this folder, without the suffix."""
  path = pathlib.Path(__file__).parent / f'{name}.toml'
  return tomllib.loads(path.read_text(encoding='utf-8'))
