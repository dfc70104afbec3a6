# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding loops for machines that are not there, and reads them.

  topology          a TPU's chips or a GPU, and their compiler
  program_reading   compiled loops: memory, and what one trip of each does, from
                    the instructions that hlo parses
  bench             pairs of T5 1.1 as models and batches of shapes, and all of
                    these for them: the record of preflight
  preflight_report  the record in Markdown
"""
