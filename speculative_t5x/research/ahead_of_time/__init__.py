# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding loops for machines that are not there, and reads them.

  topology       a TPU's chips or a GPU, and their compiler
  abstract_pair  models and batches of shapes, for a topology
  programs       compiled loops: memory, and one trip of each
  reading        what a trip does, from the instructions that hlo parses
  bench          all of these for pairs of T5 1.1: the record of preflight
  report         the record in Markdown
"""
