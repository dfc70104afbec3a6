# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of scripts."""

import pytest

from tests.scripts import fake_cloud


@pytest.fixture
def cloud(tmp_path):
  return fake_cloud.Cloud(tmp_path)
