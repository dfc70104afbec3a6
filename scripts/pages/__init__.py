# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes measured numbers into README and docs from the records in `results`.

`python -m scripts.pages` (`make pages`) rewrites the pages in place. In a page

  gains <!--= speedup(bulletins(temperature=0, gamma=7)) -->1.80x<!--/-->

the comments are invisible when rendered. The text between them is the value of
the Python expression in the first comment, which is evaluated with the names of
`names.py`. If the value has several lines, each comment is on a separate line.
An expression must contain neither a bar, which would end a table cell, nor two
hyphens, which end a comment.

  spans.py            finds, checks and writes generated spans
  checkout.py         renders all pages, and the reports in `results`
  reports.py          renders those reports, and draws the pictures there
  records.py          reads the files of `results`, with keys as attributes
  names.py            the names that expressions can use
  formats.py          formats numbers
  walltime_tables.py  tables of walltime, simulate and eval records
  benchmark_tables.py tables of the records of `benchmarks`
  tpu_tables.py       tables of tpu-preflight records
"""
