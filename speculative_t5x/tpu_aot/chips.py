# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is published of each generation of TPU, a chip.

Memory, its bandwidth and the peak are from Google Cloud's pages on each
generation. The clock of v4 is printed by Jouppi et al. (2023), "TPU v4: An
Optically Reconfigurable Supercomputer for Machine Learning", Table 4. Those of
v5e and v5p follow from their peaks and the sizes of their matrix units; that of
v6e does not, and is not stated.
"""

import dataclasses

_GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Chip:
  """One generation.

  Attributes:
    name: as in the names of topologies.
    memory_bytes: HBM of a chip.
    bandwidth: of it, bytes a second.
    peak: bfloat16 operations a second.
    clock_hz: cycles a second; None if it is not known.
  """

  name: str
  memory_bytes: int
  bandwidth: float
  peak: float
  clock_hz: float | None

  def seconds(self, cycles: float) -> float | None:
    """Of so many cycles, if the clock is known."""
    return None if self.clock_hz is None else cycles / self.clock_hz


CHIPS = {
    chip.name: chip
    for chip in (
        Chip('v4', 32 * _GIB, 1.228e12, 275e12, 1.05e9),
        Chip('v5e', 16 * _GIB, 0.819e12, 197e12, 1.5e9),
        Chip('v5p', 95 * _GIB, 2.765e12, 459e12, 1.75e9),
        Chip('v6e', 32 * _GIB, 1.64e12, 918e12, None),
    )
}
