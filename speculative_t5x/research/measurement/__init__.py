# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Costs and yields of decoding, as a whole and part by part."""
