# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of models by their names, with huggingface_hub's two calls replaced."""

import fnmatch
import pathlib
import shutil
import sys
import types

import pytest

from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.files import hub
from tests import decoders_by_hand

_TARGET, _DRAFT = 'some-owner/target', 'some-owner/draft.v2'
_FIRST, _OTHER, _SECOND = ('a' * 40, 'b' * 40, 'c' * 40)  # commits
_SHARDS = [f'model-0000{i}-of-00002.safetensors' for i in (1, 2)]


class _Hub(types.ModuleType):
  """Commits in folders, whose files are copied to a cache.

  Attributes:
    cache: Folder of a folder per commit.
    commits: Folders by name and commit, and commits by name and branch.
  """

  def __init__(self, cache: pathlib.Path):
    super().__init__('huggingface_hub')
    self.cache, self.commits = cache, {}

  def add(self, repo, folder, commit, branch=None):
    self.commits |= {(repo, commit): folder, (repo, branch): commit}

  def hf_hub_download(self, repo, name, revision=None):
    if (repo, revision) not in self.commits:
      raise FileNotFoundError('Repository Not Found')
    found = self.commits[repo, revision]
    commit = found if isinstance(found, str) else revision
    return self.snapshot_download(repo, commit, [name]) + f'/{name}'

  def snapshot_download(self, repo, revision, allow_patterns):
    folder = self.cache / repo / revision
    folder.mkdir(parents=True, exist_ok=True)
    for file in self.commits[repo, revision].iterdir():
      if any(fnmatch.fnmatch(file.name, x) for x in allow_patterns):
        shutil.copy(file, folder)
    return str(folder)

  def downloaded(self):
    return sorted(x.name for x in self.cache.rglob('*') if x.is_file())


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
  """Folders of a target and of a draft, as the hub has them."""
  root = tmp_path_factory.mktemp('hub')
  for i, name in enumerate(('target', 'draft')):
    decoders_by_hand.write(root / name, 'llama', seed=i)
    for other in ('flax_model.msgpack', 'tf_model.h5'):
      (root / name / other).write_bytes(b'none of these is read')
  return root


def forget():
  """As another process, which knows no commit."""
  hub._find.cache_clear()
  hub.fetch.cache_clear()


@pytest.fixture
def served(folders, tmp_path, monkeypatch):
  """Offer both models, with an empty cache, for one test."""
  monkeypatch.chdir(tmp_path)
  forget()
  module = _Hub(tmp_path / 'cache')
  module.add(_TARGET, folders / 'target', _FIRST)
  module.add(_DRAFT, folders / 'draft', _OTHER)
  monkeypatch.setitem(sys.modules, 'huggingface_hub', module)
  yield module
  forget()


def test_what_is_read_is_fetched(served, folders):
  opened = checkpoints.open(_TARGET)
  assert opened.specs == checkpoints.open(folders / 'target').specs
  files = ['config.json', 'model.safetensors.index.json', *_SHARDS]
  assert served.downloaded() == sorted(files)
  vocabularies.load(_TARGET)
  assert served.downloaded() == sorted([*files, 'tokenizer.json'])


def test_what_resumes_knows_a_model_by_its_files(served, folders):
  names = _TARGET, folders / 'target', _DRAFT
  one, same, other = (resumption.digest_of(str(x)) for x in names)
  assert one == same != other


@pytest.mark.parametrize(
    ('names', 'read'),
    [
        (['model.safetensors', 'pytorch_model.bin'], ['model.safetensors']),
        (
            ['pytorch_model-1-of-1.bin', 'pytorch_model.bin.index.json',
             'model.fp16-1-of-1.safetensors'],
            ['pytorch_model-1-of-1.bin', 'pytorch_model.bin.index.json'],
        ),
    ],
)  # fmt: skip
def test_files_of_a_checkpoint(served, tmp_path, names, read):
  (tmp_path / 'other').mkdir()
  for name in ('config.json', *names):
    (tmp_path / 'other' / name).write_text(name)
  served.add(_TARGET, tmp_path / 'other', _FIRST)
  checkpoints.fetch(_TARGET)
  assert served.downloaded() == sorted(['config.json', *read])


def test_the_commit_is_recorded(served, folders):
  """It finds the same files again when the branch has moved on."""
  described = models.find_model(checkpoints.open(_TARGET)).describe()
  assert described.name == _TARGET
  assert described.checkpoint == f'{_TARGET}@{_FIRST}'
  served.add(_TARGET, folders / 'draft', _SECOND)
  # The vocabulary that is read later in this process is of the same commit.
  assert _FIRST in vocabularies.load(_TARGET).name
  forget()
  for name, commit in {
      _TARGET: _SECOND,
      f'hf://{_TARGET}@{_FIRST}': _FIRST,
      described.checkpoint: _FIRST,
  }.items():
    opened = checkpoints.open(name)
    assert opened.source == f'{_TARGET}@{commit}'
    assert opened.folder.name == commit


def refuse(name, *named):
  """Check that a name is refused in one line that has all that is named."""
  with pytest.raises(checkpoints.CheckpointError) as error:
    checkpoints.open(name)
  (line,) = str(error.value).splitlines()
  assert all(each in line for each in (name, *named)), line


def test_refused(served, monkeypatch):
  """A name may be a local path with a typo, and the line says so."""
  refuse('some-owner/traget', 'no such path', 'Repository Not Found')
  for name in ('gpt2', 'a/b/c'):
    refuse(f'hf://{name}', '<owner>/<name>')
    with pytest.raises(checkpoints.CheckpointError, match='no such folder'):
      checkpoints.open(name)
  monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
  refuse(_TARGET, 'no such path', "'.[hub]'")


def test_a_local_path_counts_first(served, folders, tmp_path):
  shutil.copytree(folders / 'target', tmp_path / _DRAFT)
  opened = checkpoints.open(_DRAFT)
  assert opened.source == str(opened.folder) == str(tmp_path / _DRAFT)
  assert not served.downloaded()


def _raise_path(path):
  raise FileNotFoundError(path)


def test_names_of_t5xs_bucket(monkeypatch):
  bucket = 'gs://t5-data/pretrained_models/t5x'
  monkeypatch.setattr(layouts, '_absolute', _raise_path)
  for name, path in {
      't5_1_1_xxl': f'{bucket}/t5_1_1_xxl/checkpoint_1000000',
      'flan_t5_small': f'{bucket}/flan_t5_small/checkpoint_1198000',
      't5_1_1_xxxl': 't5_1_1_xxxl',
  }.items():
    with pytest.raises(FileNotFoundError, match=f'^{path}$'):
      checkpoints.open(name)
