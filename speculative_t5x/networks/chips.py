# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Published figures of TPU chips, and the dtype that suits a device.

Memory size, memory bandwidth and peak of a chip are from Google Cloud's pages
on each generation. The clock of v4 is from Jouppi et al. (2023), "TPU v4: An
Optically Reconfigurable Supercomputer for Machine Learning", Table 4. The
clocks of v5e and v5p are computed from their peaks and the sizes of their
matrix units. The clock of v6e cannot be computed in this way and is left out.
"""

import dataclasses

import jax

_GIB = 2**30
_NATIVE_FROM = 8  # NVIDIA's compute capability: Ampere and later


@dataclasses.dataclass(frozen=True)
class Chip:
  """Published figures per chip of one TPU generation."""

  name: str  # of the generation, as in topology names
  memory_bytes: int  # of the HBM
  bandwidth: float  # of the HBM, bytes per second
  peak: float  # bfloat16 operations per second
  clock_hz: float | None  # cycles per second; None if unknown

  def seconds(self, cycles: float) -> float | None:
    """Convert cycles to seconds; return None if the clock is unknown."""
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

# By JAX's names of devices, their generation.
_GENERATIONS = {
    'TPU v4': 'v4',
    'TPU v5 lite': 'v5e',
    'TPU v5e': 'v5e',
    'TPU v5': 'v5p',
    'TPU v5p': 'v5p',
    'TPU v6 lite': 'v6e',
    'TPU v6e': 'v6e',
}


def of_kind(device_kind: str) -> Chip | None:
  """Return the chip of a device by JAX's name for it; None if unknown."""
  return CHIPS.get(_GENERATIONS.get(device_kind))


def suited_dtype() -> str:
  """Return the dtype to decode in where none is given.

  It is bfloat16 on TPU, and on GPUs that multiply it natively. XLA:CPU
  multiplies in float32, and keeps float32 copies of weights in bfloat16.
  """
  device = jax.local_devices()[0]
  # AMD's GPUs have names in place of numbers.
  capability = str(getattr(device, 'compute_capability', ''))
  major = capability.partition('.')[0]
  is_native = major.isdecimal() and int(major) >= _NATIVE_FROM
  if device.platform == 'tpu' or device.platform == 'gpu' and is_native:
    return 'bfloat16'
  return 'float32'
