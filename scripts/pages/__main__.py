# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured numbers of all pages: `python -m scripts.pages`."""

import pathlib
import sys

from scripts.pages import checkout

_ROOT = pathlib.Path(__file__).parents[2]


def write(root: pathlib.Path) -> None:
  """Rewrites the pages that differ from the records.

  Raises:
    ValueError: for a span that cannot be written; no page is changed then.
  """
  for path, text in [*checkout.rendered(root)]:
    if text != path.read_text():
      path.write_text(text)
      print(f'Written: {path.relative_to(root)}')


if __name__ == '__main__':
  try:
    write(_ROOT)
  except ValueError as error:
    sys.exit(str(error))
