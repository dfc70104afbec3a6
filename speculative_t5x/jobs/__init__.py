# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs of the command line, as functions of a frozen dataclass of settings."""
