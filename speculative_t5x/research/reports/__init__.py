# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reports on run records: tables and sentences.

console           prints reports, in the style of a terminal or as plain text
eval_table        the report of the eval job
walltime_summary  the report of the walltime and simulate jobs
advice            which gamma to use
token_trace       a decoded sentence, with the fate of each draft token
runs, readings    labels of runs, and values derived from their records
cells, markdown   the form of tables
"""
