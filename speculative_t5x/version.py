# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of the package, also read when it is built."""

VERSION = '0.1.0'
