# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the serve job refuses before it reads weights.

`tests/serving/serve_job_test.py` has what it serves.
"""

import pathlib
import socket

import pytest

from speculative_t5x.jobs import serve
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
  assert status == 1 and f'Port {port} ' in error and 'loading' not in error


@pytest.mark.parametrize(
    'flag',
    [
        'PORT=70000', 'ROWS=0', 'GRACE_S=-1.0', 'MAX_WAITING=0',
        'GAMMA="x"',
    ],  # fmt: skip
)
def test_values_out_of_range(capsys, flag):
  status, error = run(capsys, f'--gin.{flag}')
  assert status in (1, 2) and flag.partition('=')[0] in error
  assert error.count('\n') == 1


@pytest.mark.parametrize('flag', ['TEMPERATURE=0.0', 'SEED=3', 'DRAFT_TOPK=1'])
def test_settings_that_requests_have(capsys, flag):
  status, error = run(capsys, f'--gin.{flag}')
  assert status == 1 and flag.partition('=')[0] in error
  assert error.count('\n') == 1


def test_an_api_key(tmp_path, monkeypatch):
  """Of the file that is named, else of the environment."""
  monkeypatch.delenv('SPECULATIVE_T5X_API_KEY', raising=False)
  assert serve._api_key(None) is None
  monkeypatch.setenv('SPECULATIVE_T5X_API_KEY', 'other')
  assert serve._api_key(None) == 'other'
  file = tmp_path / 'key'
  file.write_text('mine\n')
  assert serve._api_key(str(file)) == 'mine'
  file.write_text(' \n')
  with pytest.raises(ValueError, match='api_key_file'):
    serve._api_key(str(file))
  with pytest.raises(OSError):
    serve._api_key(str(tmp_path / 'none'))
