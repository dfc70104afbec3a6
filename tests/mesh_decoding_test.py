# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of `mesh` on eight simulated devices.

One process runs all of them, because starting and compiling take most of the
time.
"""

import os

import pytest

from tests import exhaustive
from tests import processes

pytestmark = pytest.mark.long

_NAMES = ('placement', 'decoding', 'jobs', 'training')
_FILES = [f'tests/mesh/{name}.py' for name in _NAMES]


@pytest.mark.parametrize(
    'which', exhaustive.all_but(['not exhaustive'], ['not exhaustive', ''])
)
def test_on_eight_devices(which):
  flags = os.environ.get('XLA_FLAGS', '')
  processes.run([*_FILES, '-m', which], processes.environment(8, flags))
