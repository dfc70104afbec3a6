# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured numbers into all pages: `python -m scripts.pages`."""

import pathlib
import sys

from scripts.pages import checkout

_ROOT = pathlib.Path(__file__).parents[2]


def main(root: pathlib.Path = _ROOT) -> None:
  """Rewrites the pages that differ from the records; on an error, none."""
  try:
    texts = [*checkout.rendered(root)]
  except ValueError as error:
    sys.exit(str(error))
  for path, text in texts:
    if text != path.read_text():
      path.write_text(text)
      print(f'Written: {path.relative_to(root)}')


if __name__ == '__main__':
  main()
