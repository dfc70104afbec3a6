# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules by which draft tokens are accepted, one file each.

The rule of the paper is `speculation.verification.Tokenwise`.
"""
