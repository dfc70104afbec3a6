# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the loop becomes on a TPU, compiled and read where there is none."""
