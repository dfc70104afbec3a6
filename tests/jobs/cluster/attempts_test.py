# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What ended workers is not begun for ever."""

from speculative_t5x.jobs.cluster import attempts as attempts_lib


def test_what_ended_two_workers_is_not_begun():
  attempts = attempts_lib.Attempts(lambda: ['a', 'b'])
  assert attempts.begin(7, 'a') is None
  attempts.explain(7, 'out of memory')
  assert attempts.begin(7, 'b') is None
  assert 'out of memory' in attempts.begin(7, 'a')
  assert attempts.begin(8, 'a') is None


def test_what_was_done_counts_anew():
  attempts = attempts_lib.Attempts(lambda: ['a'])
  for _ in range(5):
    assert attempts.begin(7, 'a') is None
    attempts.end(7)


def test_a_node_that_is_gone_was_not_ended_by_what_it_did():
  living = ['a', 'b', 'c']
  attempts = attempts_lib.Attempts(lambda: living)
  for node in ('a', 'b'):
    assert attempts.begin(7, node) is None
    living.remove(node)
  assert attempts.begin(7, 'c') is None
  assert attempts.begin(7, 'c') is None
  assert attempts.begin(7, 'c')


def test_what_may_end_nodes_is_not_begun_for_ever():
  attempts = attempts_lib.Attempts(lambda: [])
  assert None not in [attempts.begin(7, str(i)) for i in range(9)][5:]


def test_nodes_that_are_left_out():
  attempts = attempts_lib.Attempts(lambda: [])
  attempts.leave_out('a', 'no memory')
  attempts.leave_out('a', 'no device')
  assert attempts.bad_nodes() == {'a': 'no memory'}
