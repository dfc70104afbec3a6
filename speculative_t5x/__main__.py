# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the command line by `python -m speculative_t5x`."""

from speculative_t5x.jobs.command_line import main

if __name__ == '__main__':
  main.run()
