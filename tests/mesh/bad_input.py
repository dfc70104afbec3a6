# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the eval and infer commands do with bad input, one per row.

Each row starts in the folder of a finished job. They run on several devices
because of the batch that the data axis does not divide.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import gzip
import pathlib
import re
import shutil

import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.tasks import bulletins
from tests import tiny

_JOBS = 'infer', 'eval'
_CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
# The eval job reads Multi30k's files, and the infer job lines.
_GIN = """
from __gin__ import dynamic_registration

from speculative_t5x.networks import t5
from speculative_t5x.tasks import ende

include 'configs/drafters/draft_model.gin'
include 'configs/runs/{job}.gin'
{more}
TARGET_CONFIG = @t5.T5Config()
DRAFT_CONFIG = @t5.T5Config()
TASK_FEATURE_LENGTHS = {{'inputs': 24, 'targets': 12}}
BATCH_SIZE = 2
CHUNK_BATCHES = 1
GAMMA = 2

t5.T5Config:
  vocab_size = 2048
  emb_dim = 32
  num_heads = 2
  num_encoder_layers = 1
  num_decoder_layers = 1
  head_dim = 16
  mlp_dim = 48
"""
_MORE = {
    'infer': (
        f"INPUTS = 'in.txt'\nVOCABULARY_FILE = '{bulletins.VOCABULARY_FILE}'"
    ),
    'eval': (
        "include 'configs/tasks/multi30k_ende.gin'\nMULTI30K_DIR = 'multi30k'"
    ),
}
_LINES = [source for source, _ in bulletins.read_pairs('validation')[:5]]


def _write_input(job: str, lines: list[bytes]) -> None:
  """Writes what the job reads, in the current folder."""
  data = b''.join(line + b'\n' for line in lines)
  if job == 'infer':
    pathlib.Path('in.txt').write_bytes(data)
    return
  pathlib.Path('multi30k').mkdir(exist_ok=True)
  shutil.copy(bulletins.VOCABULARY_FILE, 'multi30k/ende4k.model')
  target = b''.join(b'Zug\n' for _ in lines)
  for name in ('train', 'val', 'test_2016_flickr'):
    for language, text in (('en', data), ('de', target)):
      path = pathlib.Path('multi30k', f'{name}.{language}.gz')
      path.write_bytes(gzip.compress(text))


def _with(line: bytes):
  """Returns a change of the input: its fourth line becomes another."""
  lines = [text.encode() for text in _LINES]
  return lambda job: _write_input(job, [*lines[:3], line, *lines[4:]])


@pytest.fixture(scope='module')
def pair(tmp_path_factory):
  """Returns a folder with two checkpoints."""
  folder = tmp_path_factory.mktemp('pair')
  checkpoints.save(folder / 'target', 1, tiny.params(_CONFIG))
  checkpoints.save(folder / 'draft', 1, tiny.params(_CONFIG, noise=0.1))
  return folder


@pytest.fixture(scope='module')
def run(pair):
  """Returns a function that runs a job in the current folder."""

  def run(job, *flags):
    pathlib.Path('own.gin').write_text(_GIN.format(job=job, more=_MORE[job]))
    return main.main(
        [
            job,
            '--gin_file=own.gin',
            *(flag for flag in flags if flag.startswith('--gin_file')),
            f'--gin.CHECKPOINT_PATH={pair / "target"}',
            f'--gin.DRAFT_CHECKPOINT_PATH={pair / "draft"}',
            f'--output_dir={job}',
            *(flag for flag in flags if not flag.startswith('--gin_file')),
        ]
    )

  return run


@pytest.fixture(scope='module')
def finished(run, tmp_path_factory):
  """Returns a folder in which both jobs have finished."""
  folder = tmp_path_factory.mktemp('finished')
  with contextlib.chdir(folder):
    for job in _JOBS:
      _write_input(job, [text.encode() for text in _LINES])
      assert run(job) == 0
  return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch, capsys):
  """Returns a copy of the finished folder, which is the current one."""
  shutil.copytree(finished, tmp_path / 'copy')
  monkeypatch.chdir(tmp_path / 'copy')
  capsys.readouterr()
  return tmp_path / 'copy'


@dataclasses.dataclass(frozen=True)
class _Row:
  """A row of the table.

  Attributes:
    infer: pattern of the line that the infer job prints.
    eval: of the line that the eval job prints.
    change: what is done to the current folder before the job runs.
    flags: of the command, by job.
    status: of the command.
  """

  infer: str
  eval: str
  change: Callable[[str], object] = lambda job: None
  flags: Callable[[str], Sequence[str]] = lambda job: ()
  status: int = 1


def _task_flags(*flags):
  """Returns flags with which the infer job decodes a task too."""
  return lambda job: [*flags, *['--gin.INPUTS=None'] * (job == 'infer')]


_NO_TASK = 'There is no task named wmt; .* Choose one of them, or import the'
_NO_SPLIT = 'Task bulletins_ende has no split dev. Choose one of .*validation'
_NOT_PREPARED = (
    'has not prepared cnn_dailymail:3.4.0 in empty. Prepare it with `tfds build'
    ' cnn_dailymail:3.4.0 --data_dir=empty` .see docs/jobs.md., or set TFDS_'
)
_IN_USE = r'The folder {} is in use by another job \(process .*\). Wait until'
_TRUNCATED = '^3 of 5 inputs were truncated to 24 tokens. A larger TASK_FEATURE'
_PADDED = 'Batches of 3 examples become batches of 4, because the mesh is .*4'
_ROWS = {
    'invalid UTF-8': _Row(
        'in.txt, line 4 is not UTF-8 text. Save the file as UTF-8',
        'multi30k/val.en.gz is not gzipped UTF-8 text .*. Download it again',
        _with(b'The \xff train'),
    ),
    'empty file': _Row(
        'in.txt is empty. Give at least one line',
        'multi30k/val.en.gz is empty. Download it again',
        lambda job: _write_input(job, []),
    ),
    'line of spaces': _Row(
        'in.txt, line 4 has no text. Remove the line, or give it some text',
        'multi30k/val.en.gz, line 4 is empty. Remove that line',
        _with(b' \t  '),
    ),
    'line of a megabyte': _Row(
        _TRUNCATED,
        _TRUNCATED,
        _with(b'The train is late. ' * 55_000),
        status=0,
    ),
    'unknown task': _Row(
        _NO_TASK,
        _NO_TASK,
        flags=_task_flags('--gin.MIXTURE_OR_TASK_NAME=wmt'),
    ),
    'unknown split': _Row(
        _NO_SPLIT,
        _NO_SPLIT,
        flags=_task_flags(
            '--gin.MIXTURE_OR_TASK_NAME=bulletins_ende', '--gin.SPLIT=dev'
        ),
    ),
    'missing TFDS data set': _Row(
        _NOT_PREPARED,
        _NOT_PREPARED,
        flags=_task_flags(
            '--gin_file=configs/tasks/cnn_dailymail.gin',
            f'--gin.VOCABULARY_FILE={bulletins.VOCABULARY_FILE}',
            '--gin.TFDS_DATA_DIR=empty',
            '--output_dir=new',
        ),
    ),
    'folder of another configuration': _Row(
        'infer holds results with another seed. Give another output folder, or',
        'eval holds results with another seed. Give another output folder, or',
        flags=lambda job: ['--gin.SEED=8', f'--output_dir={job}'],
    ),
    'folder of another job': _Row(
        'eval has results of another job, eval. Give another output folder',
        'infer has results of another job, infer. Give another output folder',
        flags=lambda job: [
            '--output_dir=' + {'infer': 'eval', 'eval': 'infer'}[job]
        ],
    ),
    'two jobs on one folder': _Row(
        _IN_USE.format('infer'),
        _IN_USE.format('eval'),
        lambda job: folder_lock.hold(job),
    ),
    'batch that the data axis does not divide': _Row(
        _PADDED,
        _PADDED,
        flags=lambda job: [
            '--gin.MESH_SHAPE=(4, 1)', '--gin.BATCH_SIZE=3', '--output_dir=new'
        ],
        status=0,
    ),
}  # fmt: skip


@pytest.mark.parametrize('job', _JOBS)
@pytest.mark.parametrize('name', _ROWS)
def test_one_line_names_the_fault_and_nothing_is_lost(
    run, folder, capsys, name, job
):
  row = _ROWS[name]
  chunks = _read_all(folder)
  with row.change(job) or contextlib.nullcontext():
    assert run(job, *row.flags(job)) == row.status
  shown = capsys.readouterr()
  lines = [
      line
      for line in (shown.out + shown.err).splitlines()
      if re.search(getattr(row, job), line)
  ]
  assert len(lines) == 1, shown
  if row.status:
    assert shown.out == ''
    assert [x for x in shown.err.splitlines() if 'error' in x] == lines
    assert lines[0].startswith('error: ') and lines[0].endswith('.')
    assert _read_all(folder) == chunks
  if '--output_dir=new' in row.flags(job) and not row.status:
    expected = (folder / job / 'predictions.jsonl').read_bytes()
    assert (folder / 'new' / 'predictions.jsonl').read_bytes() == expected


def _read_all(folder: pathlib.Path) -> dict[str, bytes]:
  """Returns the finished chunks in a folder, and the files of records."""
  return {
      str(path.relative_to(folder)): path.read_bytes()
      for pattern in ('*/chunks/*/*', '*/records/*')
      for path in folder.glob(pattern)
  }
