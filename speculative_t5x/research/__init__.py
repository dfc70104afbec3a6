# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What an experiment needs: measurement, reports, the paper, simulation."""
