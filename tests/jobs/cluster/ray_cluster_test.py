# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs on a Ray cluster of several nodes on this machine."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from speculative_t5x import embedded
from speculative_t5x.jobs.cluster import ray_cluster
from tests import workloads
from tests.cluster import stub_job

_CHECKOUT = pathlib.Path(__file__).parents[3]
_SECONDS = 600  # a cluster that hangs must not hang the tests
needs_ray = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ['ray', 'pandas', 'pyarrow']),
    reason='the extra ray is not installed',
)
pytestmark = pytest.mark.long
_OWN_POLICY = """
from speculative_t5x.speculation import draft_length

class Own(draft_length.Fixed):
  name = 'own'
"""


def _run(module, *arguments):
  """Run a module of `tests.cluster`, and leave no process behind."""
  process = subprocess.Popen(
      [sys.executable, '-m', f'tests.cluster.{module}', *map(str, arguments)],
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      start_new_session=True,
  )
  try:
    output, _ = process.communicate(timeout=_SECONDS)
  finally:
    try:
      os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
  assert process.returncode == 0, output
  return output


def _decoded(folder):
  """Return what became of each chunk of `stub_job`, and what was said."""
  found = json.loads((folder / 'found').read_text())
  return found, (folder / 'said').read_text()


@pytest.fixture(scope='module')
def stub(tmp_path_factory):
  """Return what became of `stub_job` while a node was killed."""
  folder = tmp_path_factory.mktemp('stub')
  _run('ray_jobs', 'killed', folder)
  return _decoded(folder)


@needs_ray
@pytest.mark.exhaustive
class TestStub:

  def test_a_node_that_is_killed_loses_nothing(self, stub):
    found, _ = stub
    numbers = sorted(number for number, *_ in found)
    assert numbers == [i for i in range(12) if i != stub_job.KILL]
    for number, content, error in found:
      assert (content is None) == (error is not None)
      if content is not None:
        assert content[0] == [f'{number} {i}' for i in range(number % 3)]
    assert not {number: error for number, _, error in found}[stub_job.WAIT]

  def test_what_cannot_be_decoded_does_not_stop_the_rest(self, stub):
    found, _ = stub
    errors = {number: error for number, _, error in found if error}
    assert errors == {
        stub_job.WRONG: 'The inputs are others',
        stub_job.BROKEN: 'The device is lost',
    }

  def test_all_nodes_decode(self, stub):
    found, said = stub
    assert 'Ray: 2 workers on 2 nodes, with 1 CPU each' in said
    contents = [content for _, content, _ in found if content]
    assert len({values['node'] for _, values in contents}) == 2


@needs_ray
@pytest.mark.exhaustive
def test_chunks_and_nodes_that_are_given_up(tmp_path):
  """A chunk that ends each worker, and a node that cannot do the job."""
  _run('ray_jobs', 'ended', tmp_path)
  found, _ = _decoded(tmp_path)
  errors = {number: error for number, _, error in found if error}
  assert len(found) == 12 and len(errors) == 3
  assert errors[stub_job.KILL].startswith('It ended 4 workers')
  refused = (tmp_path / 'refused').read_text()
  assert 'cannot do this job: There is no checkpoint' in refused
  assert refused.startswith('Node ') and '\n' not in refused


@needs_ray
@pytest.mark.exhaustive
def test_command(tmp_path):
  """It writes what it writes alone, with a policy of the user's own."""
  pair = workloads.save_pair(tmp_path / 'pair')
  (tmp_path / 'own_policy.py').write_text(_OWN_POLICY)
  (tmp_path / 'own.gin').write_text(
      'from __gin__ import dynamic_registration\n'
      'import own_policy\n'
      'POLICY = @own_policy.Own()\n'
  )
  (tmp_path / 'flags').write_text('\n'.join([
      'infer',
      '--gin_file=configs/drafters/draft_model.gin',
      f'--gin_file={tmp_path / "own.gin"}',
      f'--gin.INPUTS={tmp_path / "in.txt"}',
      f'--gin.CHECKPOINT_PATH={pair.target}',
      f'--gin.DRAFT_CHECKPOINT_PATH={pair.draft}',
      f'--gin.VOCABULARY_FILE={embedded.VOCABULARY_FILE}',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 24, 'targets': 16}",
      '--gin.TEMPERATURE=1.0',
      '--gin.GAMMA=2',
      '--gin.BATCH_SIZE=2',
      '--gin.CHUNK_BATCHES=1',
  ]))  # fmt: skip
  texts = [f'The train number {i} is {i + 3} minutes late.' for i in range(9)]
  (tmp_path / 'in.txt').write_text(''.join(f'{text}\n' for text in texts))
  _run('ray_jobs', 'command', tmp_path)
  out, alone = (
      (tmp_path / name / 'predictions.jsonl').read_bytes()
      for name in ('out', 'alone')
  )
  assert len(out.splitlines()) == 9 and out == alone
  (record,) = workloads.read(tmp_path / 'out' / 'results.jsonl')
  assert record['gamma_policy'] == 'own' and record['num_examples'] == 9


@pytest.mark.parametrize(
    ('nodes', 'expected'),
    [
        ([{'CPU': 0}, {'CPU': 8}, {'CPU': 4}], {'CPU': 4}),
        ([{'CPU': 8}, {'CPU': 8, 'GPU': 4}], {'GPU': 1}),
        ([{'CPU': 2}, {'CPU': 96, 'TPU': 4, 'TPU-v4-8-head': 1}], {'TPU': 4}),
    ],
)
def test_what_a_worker_gets(nodes, expected):
  assert ray_cluster._suited(nodes) == expected


def test_a_host_is_a_complete_tpu():
  variables = ray_cluster._variables('tpu,cpu', {'TPU': 4})
  assert variables['JAX_PLATFORMS'] == 'tpu,cpu'
  assert variables['TPU_PROCESS_BOUNDS'] == '1,1,1'
  assert variables['TPU_CHIPS_PER_PROCESS_BOUNDS'] == '2,2,1'
  assert variables['TPU_VISIBLE_CHIPS'] == '0,1,2,3'
  assert 'TPU_PROCESS_BOUNDS' not in ray_cluster._variables('cpu', {'CPU': 4})
