# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measured numbers in README and docs, written from the records in `results`.

`python -m scripts.pages` (`make pages`) rewrites the pages in place. In a page

  gains <!--= speedup(bulletins(temperature=0, gamma=7)) -->1.80x<!--/-->

the comments are invisible when rendered, and what stands between them is what
the Python expression in the first one returns. It is evaluated with the names
of `names.py`; where it returns several lines, each comment stands on a line of
its own. An expression must hold neither a bar, which would end a table's cell,
nor two hyphens, which end a comment.

  spans.py            generated spans: found, checked and written
  checkout.py         all pages, and the reports in `results`
  reports.py          those reports, whole
  records.py          the files of `results`, keys as attributes
  names.py            what an expression may use
  formats.py          numbers as the pages write them
  walltime_tables.py  tables of walltime, simulate and eval records
  benchmark_tables.py tables of what `benchmarks` measured
  tpu_tables.py       tables of tpu-preflight records
"""
