# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks that other processes decode, here in the place of these."""

import contextlib
import dataclasses
import itertools
import json

import pytest

from speculative_t5x.jobs.cluster import infer_chunks
from speculative_t5x.jobs.cluster import ray_worker
from tests.cluster import stub_infer


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
    self._job = job
    _, self.description = job.describe()
    yield self

  def decode(self, chunks):
    with self._job.open() as decode:
      for chunk in itertools.islice(reversed(chunks), self.num_left):
        if chunk.number in self.lost:
          yield ray_worker.Decoded(chunk.number, (), {}, 'It ended 2 workers')
          continue
        self.numbers.append(chunk.number)
        content = decode(chunk)
        values = json.loads(json.dumps(content.values))  # as Ray passes it on
        yield ray_worker.Decoded(chunk.number, content.rows, values, None)
    if self.num_left is not None:
      raise RuntimeError('Ray gives up.')


@pytest.fixture
def make(tmp_path):
  """Return a function that returns the setup of some texts."""

  def make(texts, **changes):
    (tmp_path / 'in.txt').write_text(''.join(f'{x}\n' for x in texts))
    return stub_infer.Setup([str(tmp_path / 'in.txt')], **changes)

  return make


_TEXTS = [f'text {i}' for i in range(19)]


def _rows(folder):
  return list(map(json.loads, stub_infer.predictions(folder).splitlines()))


class TestWrite:

  def test_is_that_of_one_process(self, make, tmp_path, capsys):
    setup, cluster = make(_TEXTS), _Cluster()
    stub_infer.write_alone(setup, tmp_path / 'alone')
    capsys.readouterr()
    stub_infer.write_on(cluster, setup, tmp_path / 'out')
    assert cluster.numbers == [4, 3, 2, 1, 0]
    alone = stub_infer.predictions(tmp_path / 'alone')
    assert stub_infer.predictions(tmp_path / 'out') == alone
    assert 'finished chunks' not in capsys.readouterr().err
    for name in ('alone', 'out'):
      (record,) = (tmp_path / name / 'results.jsonl').read_text().splitlines()
      record = json.loads(record)
      assert record['num_examples'] == record['baseline']['tokens'] == 19

  def test_only_so_many(self, make, tmp_path):
    setup = make(_TEXTS, num_examples=6)
    stub_infer.write_on(_Cluster(), setup, tmp_path / 'out')
    assert [x['input'] for x in _rows(tmp_path / 'out')] == _TEXTS[:6]

  def test_either_resumes_the_other(self, make, tmp_path, capsys):
    setup = make(_TEXTS)
    gone, cluster = _Cluster(num_left=2), _Cluster()
    with pytest.raises(RuntimeError, match='gives up'):
      stub_infer.write_on(gone, setup, tmp_path / 'out')
    stub_infer.write_on(cluster, setup, tmp_path / 'out')
    assert cluster.numbers == [2, 1, 0]
    assert 'finished chunks are taken from' in capsys.readouterr().err
    expected = stub_infer.predictions(tmp_path / 'out')
    stub_infer.write_alone(setup, tmp_path / 'out')
    assert 'finished chunks are taken from' in capsys.readouterr().err
    assert stub_infer.predictions(tmp_path / 'out') == expected

  def test_a_row_that_cannot_be_decoded(self, make, tmp_path, capsys):
    texts = [*_TEXTS[:5], stub_infer.POISON, *_TEXTS[6:]]
    setup = make(texts)
    with pytest.raises(ValueError, match='1 of 19 inputs have no prediction'):
      stub_infer.write_on(_Cluster(), setup, tmp_path / 'out')
    assert 'input 5 is not decoded: its logits' in capsys.readouterr().err
    rows = _rows(tmp_path / 'out')
    assert rows[5]['prediction'] is None and 'finite' in rows[5]['error']
    assert [x['prediction'] for x in rows if 'error' not in x] == [
        x for x in texts if x != stub_infer.POISON
    ]
    # A later run decodes its chunk again, and no other.
    cluster = _Cluster()
    with pytest.raises(ValueError, match='1 of 19'):
      stub_infer.write_on(cluster, setup, tmp_path / 'out')
    assert cluster.numbers == [1]
    with pytest.raises(ValueError, match='not finite'):
      stub_infer.write_alone(setup, tmp_path / 'out')

  def test_a_chunk_that_ends_workers(self, make, tmp_path, capsys):
    setup = make(_TEXTS)
    with pytest.raises(ValueError, match='4 of 19 inputs have no prediction'):
      stub_infer.write_on(_Cluster(lost=[2]), setup, tmp_path / 'out')
    assert '4 inputs from number 8 on are not' in capsys.readouterr().err
    rows = _rows(tmp_path / 'out')
    assert [x['example_id'] for x in rows] == list(range(19))
    errors = [x['example_id'] for x in rows if 'error' in x]
    assert errors == [8, 9, 10, 11]
    stub_infer.write_on(_Cluster(), setup, tmp_path / 'out')
    assert all('error' not in x for x in _rows(tmp_path / 'out'))

  def test_nothing_can_be_decoded(self, make, tmp_path):
    setup = make([stub_infer.POISON] * 3)
    with pytest.raises(ValueError, match='No input could be decoded'):
      stub_infer.write_on(_Cluster(), setup, tmp_path / 'out')


def test_a_node_with_other_files(make):
  job = infer_chunks.InferChunks(make(_TEXTS))
  chunk = ray_worker.Chunk(0, first=2, count=4, digest='of others')
  with job.open() as decode, pytest.raises(ValueError, match='2 on are not'):
    decode(chunk)


def test_what_must_be_equal_on_all_nodes(make):
  setup = make(_TEXTS)
  values, _ = infer_chunks.InferChunks(setup).describe()
  others, _ = infer_chunks.InferChunks(
      dataclasses.replace(setup, batch_size=3)
  ).describe()
  assert values['device'] is None
  assert {k for k in values if values[k] != others[k]} == {'batch_size'}
