# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Environment variables that give a process several devices on a CPU.

JAX determines the number of devices when it starts, so tests need separate
processes.
"""


def environment(count: int, xla_flags: str = '') -> dict[str, str]:
  """Returns variables for a number of devices, besides other flags of XLA."""
  return {
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': (
          f'{xla_flags} --xla_force_host_platform_device_count={count}'
      ),
      # Devices that wait for each other hold threads of one pool. With as many
      # threads as devices, and work to be shared out, none could go on.
      'NPROC': '32',
  }
