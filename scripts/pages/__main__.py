# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what shows records: `python -m scripts.pages`.

The numbers of all pages, the reports, and the pictures whose digest is not that
of their records (all pictures with `--draw`, after a change of their look).
"""

import pathlib
import sys

from scripts.pages import checkout
from scripts.pages import reports

_ROOT = pathlib.Path(__file__).parents[2]


def main(root: pathlib.Path = _ROOT, *, draws_all: bool = False) -> None:
  """Rewrites what differs from the records; on an error, nothing."""
  try:
    texts = [*checkout.rendered(root)]
    pictures = [
        (each.path, each.render())
        for each in reports.pictures(root / 'results')
        if draws_all or not each.is_current()
    ]
  except ValueError as error:
    sys.exit(str(error))
  changed = [(p, text) for p, text in texts if text != p.read_text()]
  for path, content in changed:
    path.write_text(content)
  for path, content in pictures:
    path.write_bytes(content)
  for path, _ in changed + pictures:
    print(f'Written: {path.relative_to(root)}')


if __name__ == '__main__':
  main(draws_all='--draw' in sys.argv[1:])
