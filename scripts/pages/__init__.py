# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what shows records: `python -m scripts.pages` (`make pages`).

  records.py             reads the files of `results`
  reports.py             the reports and pictures beside the records
  notebooks.py           writes the repository's address into the notebooks
"""
