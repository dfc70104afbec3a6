# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of tpu-preflight records, those of their reports."""

from collections.abc import Sequence
import re

from scripts.pages import records
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.tpu_aot import report


def section(
    title: str,
    *folders: str,
    columns: Sequence[str] = (),
    rows: str = '',
) -> str:
  """Returns the table in a section of reports, with the chip if several.

  Args:
    title: the section.
    *folders: the records.
    columns: the columns to show; none for all.
    rows: a regular expression for the rows to show.
  """
  found = []
  for folder in folders:
    record = records.entry(f'tpu_preflight/{folder}/tpu_preflight.json')
    chip = f'{record["topology"]}, batch {record["batch_size"]}'
    label = {'chip': chip} if len(folders) > 1 else {}
    found += [label | row for row in report.rows_of(record, title)]
  found = [x for x in found if re.search(rows, ' | '.join(x.values()))]
  return markdown.table(found, columns and [*label, *columns])
