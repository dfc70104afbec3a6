# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 networks whose decoder takes a block of tokens per call."""

from speculative_t5x import version

version.check()  # whatever uses JAX imports this package or `speculation`
