# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What decoding costs and what it yields, as a whole and part by part."""
