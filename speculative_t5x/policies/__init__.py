# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to choose how many draft tokens are wanted, one file each."""
