# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Leaves tests of the server out where its extra is not installed."""

import importlib.util

_HAS_EXTRA = importlib.util.find_spec('uvicorn') is not None
collect_ignore_glob = [] if _HAS_EXTRA else ['*_test.py']
