# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/processes`: this module is also what they run."""

import os
import sys

import pytest

from benchmarks import processes

_MODULE = 'tests.processes_benchmark_test'


def _respond(*request):
  print('printed by the system')
  os.system('echo printed by a program')
  if request == ('fail',):
    sys.exit('asked to fail')
  return [os.getpid(), *request]


class TestProcess:

  def test_answers_are_not_what_the_system_prints(self, capfd):
    with processes.Process('echo', _MODULE) as process:
      pid, *rest = process.ask('one', 2)
      assert rest == ['one', 2]
      assert pid != os.getpid()
      assert process.ask() == [pid]
    assert 'printed by the system' in capfd.readouterr().err

  def test_processes_are_apart(self):
    with (
        processes.Process('a', _MODULE) as one,
        processes.Process('b', _MODULE) as other,
    ):
      assert one.ask() != other.ask()

  def test_end_is_reported(self, capfd):
    with processes.Process('echo', _MODULE) as process:
      for _ in range(2):
        with pytest.raises(RuntimeError, match='process of echo has ended'):
          process.ask('fail')
    assert 'asked to fail' in capfd.readouterr().err


if __name__ == '__main__':
  processes.answer(_respond)
