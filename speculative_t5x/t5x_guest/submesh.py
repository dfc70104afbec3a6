# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses the devices of a slice that share a model in T5X."""

import itertools
import math

import jax
from t5x import partitioning


def submesh(num_partitions: int = 1) -> tuple[int, int, int, int]:
  """Returns a `model_parallel_submesh` for T5X's partitioner.

  T5X has none of its own for most types of TPU. This one is the box that is
  most like a cube, on few hosts, and divides the slice.

  Args:
    num_partitions: Number of devices that share a model.

  Raises:
    ValueError: if no such box divides the slice.
  """
  last = max(jax.devices(), key=partitioning.get_coords)
  bounds = partitioning.bounds_from_last_device(last)
  boxes = [*itertools.product(*map(_divisors, bounds))]
  fitting = [box for box in boxes if math.prod(box) == num_partitions]
  if not fitting:
    raise ValueError(
        f'{num_partitions} partitions do not divide these devices,'
        f' {" x ".join(map(str, bounds))} of {last.device_kind}. Set'
        f' NUM_PARTITIONS to one of {sorted({*map(math.prod, boxes)})}.'
    )
  # Hosts have a depth of one in the third dimension.
  box = min(fitting, key=lambda box: (max(box), box[::-1]))
  # T5X asks for four numbers, also of devices in two dimensions: on a CPU.
  return (*box, 1, 1)[:4]


def _divisors(number: int) -> list[int]:
  return [each for each in range(1, number + 1) if number % each == 0]
