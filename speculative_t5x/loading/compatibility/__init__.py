# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks without weights whether two checkpoints can be used as a pair."""
