# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles the decoding loop for a TPU ahead of time and analyses the program.

No TPU is needed.
"""
