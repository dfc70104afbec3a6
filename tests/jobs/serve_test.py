# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the serve job refuses before it reads weights.

`tests/serving/serve_job_test.py` has what it serves.
"""

import pathlib
import socket

import pytest

from speculative_t5x.jobs.command_line import main

_CHECKOUT = pathlib.Path(__file__).parents[2]


def run(capsys, *flags):
  """Run the job; return its status and what it says on stderr."""
  file = _CHECKOUT / 'configs/runs/serve_bulletins.gin'
  status = main.main(['serve', f'--gin_file={file}', *flags])
  return status, capsys.readouterr().err


def test_a_port_that_is_taken(capsys):
  with socket.create_server(('127.0.0.1', 0)) as other:
    port = other.getsockname()[1]
    status, error = run(capsys, f'--gin.PORT={port}')
  assert status == 1 and str(port) in error and 'loading' not in error


@pytest.mark.parametrize(
    'flag',
    [
        'PORT=70000', 'ROWS=0', 'GRACE_S=-1.0', 'MAX_WAITING=0',
        'GAMMA="x"', 'TEMPERATURE=0.0', 'DRAFT_TOPK=1',
    ],  # fmt: skip
)
def test_values_out_of_range(capsys, flag):
  status, error = run(capsys, f'--gin.{flag}')
  assert status in (1, 2) and flag.partition('=')[0] in error
  assert error.count('\n') == 1
