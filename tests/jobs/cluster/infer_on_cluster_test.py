# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job with a cluster, in the place of which this process decodes."""

import contextlib
import dataclasses
import itertools
import json
import types

import pytest

from speculative_t5x.jobs import infer
from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.jobs.inference import infer_on_cluster
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.tasks import bulletins
from tests import repeating_decoder
from tests import workloads


class _Cluster:
  """Decodes in this process, the last chunk first.

  Attributes:
    numbers: Of the chunks that were decoded.
    lost: Of chunks that end their workers.
    num_left: Chunks that are decoded before the cluster is gone.
  """

  def __init__(self, lost=(), num_left=None):
    self.numbers, self.lost, self.num_left = [], lost, num_left

  @contextlib.contextmanager
  def connect(self, job):
    self._decoding = job()
    self.asked = types.SimpleNamespace(for_driver=self._decoding.for_driver)
    yield self

  def decode(self, chunks):
    for chunk in itertools.islice(reversed(chunks), self.num_left):
      if chunk.number in self.lost:
        yield ray_worker.Decoded(chunk.number, None, 'It ended 4 workers')
        continue
      self.numbers.append(chunk.number)
      try:
        content = self._decoding.decode(chunk)
      except ValueError as error:
        yield ray_worker.Decoded(chunk.number, None, str(error))
        continue
      found = json.loads(json.dumps([*dataclasses.astuple(content)]))
      content = chunks_lib.Content(*found)  # as Ray passes it on
      yield ray_worker.Decoded(chunk.number, content, None)
    if self.num_left is not None:
      raise RuntimeError('Ray gives up.')


@pytest.fixture(scope='module')
def target(tmp_path_factory):
  return workloads.save_pair(tmp_path_factory.mktemp('pair')).target


@pytest.fixture
def make(target, tmp_path, monkeypatch):
  """Return a function that returns the setup of some texts."""
  repeating_decoder.install(monkeypatch.setattr)

  def make(texts, **changes):
    (tmp_path / 'in.txt').write_text(''.join(f'{x}\n' for x in texts))
    settings = {
        'mixture_or_task_name': None,
        'checkpoint_path': target,
        'vocabulary_file': bulletins.VOCABULARY_FILE,
        'inputs': str(tmp_path / 'in.txt'),
        'output_dir': tmp_path / 'out',
        'batch_size': 2,
        'chunk_batches': 2,
    }
    return workloads.infer_setup(**settings | changes)

  return make


_TEXTS = [f'text {i}' for i in range(19)]
_on = lambda setup, cluster: dataclasses.replace(setup, cluster=cluster)


def _rows(folder):
  return workloads.read(folder / 'predictions.jsonl')


class TestWrite:

  @pytest.mark.parametrize('num_examples', [None, 6])
  def test_is_that_of_one_process(self, make, tmp_path, num_examples):
    for name in ('alone', 'out'):
      cluster = _Cluster() if name == 'out' else None
      infer.infer(
          make(
              _TEXTS,
              num_examples=num_examples,
              output_dir=tmp_path / name,
              cluster=cluster,
          )
      )
      (record,) = workloads.read(tmp_path / name / 'results.jsonl')
      assert record['num_examples'] == (num_examples or 19)
      assert record['baseline']['tokens'] > 19
    assert cluster.numbers == ([1, 0] if num_examples else [4, 3, 2, 1, 0])
    assert _rows(tmp_path / 'out') == _rows(tmp_path / 'alone')

  def test_either_resumes_the_other(self, make, tmp_path, capsys):
    setup = make(_TEXTS)
    gone, cluster = _Cluster(num_left=2), _Cluster()
    with pytest.raises(RuntimeError, match='gives up'):
      infer.infer(_on(setup, gone))
    infer.infer(_on(setup, cluster))
    assert cluster.numbers == [2, 1, 0]
    assert 'finished chunks are taken from' in capsys.readouterr().err
    expected = _rows(tmp_path / 'out')
    infer.infer(setup)
    assert 'finished chunks are taken from' in capsys.readouterr().err
    assert _rows(tmp_path / 'out') == expected

  def test_a_row_that_cannot_be_decoded(self, make, tmp_path):
    """It has its own error, and the others of its batch are decoded."""
    texts = [*_TEXTS[:5], repeating_decoder.POISON, *_TEXTS[6:]]
    setup = make(texts)
    with pytest.raises(ValueError, match='1 of 19 inputs'):
      infer.infer(_on(setup, _Cluster()))
    rows = _rows(tmp_path / 'out')
    assert rows[5]['prediction'] is None and 'finite' in rows[5]['error']
    assert [x['prediction'] for x in rows if 'error' not in x] == [
        x for x in texts if x != repeating_decoder.POISON
    ]
    # A later run decodes its chunk again, and no other.
    cluster = _Cluster()
    with pytest.raises(ValueError, match='1 of 19'):
      infer.infer(_on(setup, cluster))
    assert cluster.numbers == [1]
    with pytest.raises(ValueError, match='not finite'):
      infer.infer(setup)

  def test_a_chunk_that_ends_workers(self, make, tmp_path):
    """All others are kept, and a later run decodes it alone."""
    cluster = _Cluster(lost=[1])
    with pytest.raises(ValueError, match='number 1: It ended 4 workers'):
      infer.infer(_on(make(_TEXTS), cluster))
    assert not (tmp_path / 'out' / 'results.jsonl').exists()
    infer.infer(_on(make(_TEXTS), cluster := _Cluster()))
    assert cluster.numbers == [1]
    assert len(_rows(tmp_path / 'out')) == 19


def test_a_node_with_other_files(make):
  decoding = infer_on_cluster.Decoding(make(_TEXTS))
  chunk = ray_worker.Chunk(0, first=2, count=4, digest='of others')
  with pytest.raises(ValueError, match='2 on are not'):
    decoding.decode(chunk)


def test_values_that_must_be_equal_on_all_nodes(make):
  setup = make(_TEXTS)
  values = infer_on_cluster.Decoding(setup).values
  larger = dataclasses.replace(setup, batch_size=3)
  others = infer_on_cluster.Decoding(larger).values
  assert values['device'] is None
  assert {k for k in values if values[k] != others[k]} == {'batch_size'}
