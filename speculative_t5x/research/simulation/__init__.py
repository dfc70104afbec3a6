# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of networks of any size, with simulated acceptance."""
