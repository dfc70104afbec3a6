# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of JSON that a benchmark prints and writes."""

from collections.abc import Iterable
import pathlib


def write(lines: Iterable[str], output: pathlib.Path | None) -> None:
  """Prints each line when it is measured, and keeps all so far in a file.

  Args:
    lines: without their ends.
    output: the file; None to print only.
  """
  written = []
  for line in lines:
    print(line, flush=True)
    written.append(line + '\n')
    if output is not None:  # after each, as all of them take long
      output.write_text(''.join(written))
