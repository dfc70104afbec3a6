# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The needs of experiments: measurement, reports, the paper, simulation."""
