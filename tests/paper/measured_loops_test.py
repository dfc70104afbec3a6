# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A row of Figure 5 is drawn even if its parts took longer than the loop."""

from speculative_t5x.paper import measured_loops


def test_parts_that_took_longer_than_their_run(capsys):
  def make(num_steps, walltime_ms=None):
    if walltime_ms is not None:
      raise ValueError('too short')
    return num_steps

  assert measured_loops._row(make, 7, 1.0) == 7
  assert 'commits are left out' in capsys.readouterr().err
