# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check-pair job: a pair is found and placed, and not read."""

from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import drafters
from speculative_t5x.loading import placement


def check_pair(
    *,
    workload: workload_lib.Workload,
    drafter: drafters.Drafting,
    gamma: int,
    num_decodes: int = 1,
    batch_size: int | None = None,
    vocabulary_file: str | None = None,
) -> placement.Placed:
  """Print what is found of a target and a drafter; read no weights.

  The arguments are explained in `configs/runs/check_pair.gin`.

  Raises:
    ValueError: if they cannot work together, or not on this machine.
  """
  target = workload.find_target(workload.vocabulary(vocabulary_file))
  placed = workload.place(
      target,
      [drafter],
      sizes=None if batch_size is None else [batch_size],
      num_decodes=num_decodes,
      gamma=gamma,
  )
  (found,) = placed.drafters
  print(f'target: {placed.target.describe()}')
  print(f'drafter: {found.description}')
  return placed
