# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what shows records: `python -m scripts.pages`.

The tables of all pages, the reports, the repository's address in the notebooks,
and the pictures whose digest is not that of their records (all pictures with
`--draw`, after a change of their look).
"""

import itertools
import pathlib
import sys

import cogapp

from scripts.pages import notebooks
from scripts.pages import reports

_ROOT = pathlib.Path(__file__).parents[2]
_PATTERNS = (
    'README.md', 'docs/*.md', 'speculative_t5x/embedded/MODEL_CARD.md',
    'results/multi30k/README.md',
)  # fmt: skip
_PROLOGUE = (
    'import cog; from scripts.pages import run_tables as runs,'
    ' benchmark_tables as benchmarks, tpu_tables as tpu'
)


def run_cog(flag: str) -> int:
  """Run cog on all pages, and return its exit status.

  Args:
    flag: `-r` to rewrite the pages, or `--check` to fail where they differ.
  """
  pages = [str(x) for each in _PATTERNS for x in sorted(_ROOT.glob(each))]
  flags = flag, '--verbosity=1', '-p', _PROLOGUE
  return cogapp.Cog().main(['cog', *flags, *pages])


def main(*, draws_all: bool = False) -> int:
  """Rewrite what differs from the records, and return the exit status."""
  rendered = reports.render(), notebooks.render(notebooks.repository())
  for path, text in itertools.chain(*rendered):
    if text != path.read_text():
      path.write_text(text)
      print(f'Written: {path}')
  for picture in reports.pictures():
    if draws_all or not picture.is_current():
      picture.path.write_bytes(picture.render())
      print(f'Written: {picture.path}')
  return run_cog('-r')


if __name__ == '__main__':
  sys.exit(main(draws_all='--draw' in sys.argv[1:]))
