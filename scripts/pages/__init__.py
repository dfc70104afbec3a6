# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README and docs from the records in `results`.

`python -m scripts.pages` (`make pages`) rewrites the pages in place by cog. A
table stands between two comments, the first of which holds the Python that
writes it (see https://cog.readthedocs.io):

  <!-- [[[cog cog.outl(runs.walltime('walltime_bulletins.jsonl')) ]]] -->
  | T | gamma | alpha | ...
  <!-- [[[end]]] -->

Prose holds no measured number: it speaks of the tables.

  records.py             reads the files of `results`
  run_tables.py          `runs`: tables of the jobs' records and of trainings
  benchmark_tables.py    `benchmarks`: tables of the records of `benchmarks`
  tpu_tables.py          `tpu`: tables of tpu-preflight records
  notebooks.py           writes the repository's address into the notebooks
  reports.py             renders the reports in `results`, and draws pictures
"""
