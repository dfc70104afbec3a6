# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether two checkpoints can work as a pair, told without their weights."""
