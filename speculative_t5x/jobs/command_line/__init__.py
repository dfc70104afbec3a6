# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `speculative-t5x`, the only subpackage that imports gin."""
