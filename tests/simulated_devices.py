# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a process needs to have several devices on a CPU.

Their number is settled when JAX starts, hence processes of their own.
"""


def environment(count: int, xla_flags: str = '') -> dict[str, str]:
  """Variables for so many devices, beside other flags of XLA."""
  return {
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': (
          f'{xla_flags} --xla_force_host_platform_device_count={count}'
      ),
      # Devices that wait for each other hold threads of one pool. With as many
      # threads as devices, and work to be shared out, none could go on.
      'NPROC': '32',
  }
