# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what shows records: `python -m scripts.pages`.

The reports in `results`, the repository's address in the notebooks, and the
pictures whose digest is not that of their records (all pictures with `--draw`,
after a change of their look).
"""

import itertools
import sys

from scripts.pages import notebooks
from scripts.pages import reports


def main(*, draws_all: bool = False) -> None:
  """Write what differs from the records."""
  rendered = reports.render(), notebooks.render(notebooks.repository())
  for path, text in itertools.chain(*rendered):
    if not path.exists() or text != path.read_text():
      path.write_text(text)
      print(f'Written: {path}')
  for picture in reports.pictures():
    if draws_all or not picture.is_current():
      picture.path.write_bytes(picture.render())
      print(f'Written: {picture.path}')


if __name__ == '__main__':
  main(draws_all='--draw' in sys.argv[1:])
