# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft decoder of its own on the output of the target's encoder.

It has a few layers and no encoder, so that no input is encoded twice. Its
widths may differ from the target's; its cross-attention projects the target's
encoder output to heads of its own.
"""

from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import contracts


def read_target(context: contracts.Context) -> t5_model.Encoded:
  """Returns what the target's encoder made of the inputs."""
  return t5_model.Encoded(context.features, context.target.memory.is_input)
