# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of models by their names on the Hugging Face hub, before a small one.
"""

import shutil
import sys

import pytest

import speculative_t5x as st
from speculative_t5x.jobs.outputs import contents
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.files import hub
from tests import decoders_by_hand
from tests import hub_server

constants = pytest.importorskip('huggingface_hub.constants')
file_download = pytest.importorskip('huggingface_hub.file_download')

_OWNER = 'some-owner'
_TARGET, _DRAFT = f'{_OWNER}/target', f'{_OWNER}/draft.v2'
_SHARDS = [f'model-0000{i}-of-00002.safetensors' for i in (1, 2)]
_TEXT = 'w4 w5 w6'


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
  """Folders of a target and of a draft, as the hub has them."""
  root = tmp_path_factory.mktemp('hub')
  for i, name in enumerate(('target', 'draft')):
    decoders_by_hand.write(root / name, 'llama', seed=i)
    for other in ('onnx/model.onnx', 'flax_model.msgpack', 'tf_model.h5'):
      (root / name / other).parent.mkdir(exist_ok=True)
      (root / name / other).write_bytes(b'none of these is read')
  return root


def forget():
  """As another process, which knows no commit."""
  hub._find.cache_clear()
  hub.fetch.cache_clear()


@pytest.fixture
def served(folders, tmp_path, monkeypatch):
  """Serve both models, with an empty cache, for one test."""
  monkeypatch.chdir(tmp_path)
  forget()
  with hub_server.HubServer() as server:
    server.add(_TARGET, folders / 'target', 'main')
    server.add(_DRAFT, folders / 'draft', 'main')
    template = server.url + '/{repo_id}/resolve/{revision}/{filename}'
    monkeypatch.setattr(constants, 'ENDPOINT', server.url)
    monkeypatch.setattr(constants, 'HUGGINGFACE_CO_URL_TEMPLATE', template)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    yield server
  forget()


def go_offline(monkeypatch):
  forget()
  monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)


def test_a_pair_decodes_as_from_its_folders(served, folders):
  load = lambda *pair: st.load(*pair, max_tokens=6, inputs_length=8, gamma=2)
  decoder = load(_TARGET, f'hf://{_DRAFT}')
  expected = load(str(folders / 'target'), str(folders / 'draft'))
  assert decoder.decode(_TEXT).tokens == expected.decode(_TEXT).tokens
  commit = served.revisions[_TARGET, 'main']
  assert decoder.tokens.target.checkpoint == f'{_TARGET}@{commit}'
  assert decoder.vocabulary.num_ids == expected.vocabulary.num_ids


def test_what_resumes_knows_a_model_by_its_files(served, folders):
  names = _TARGET, folders / 'target', _DRAFT
  one, same, other = (contents.digest(str(x)) for x in names)
  assert one == same != other


class TestFiles:

  def test_what_is_read_is_fetched(self, served):
    checkpoints.open(_TARGET)
    files = ['config.json', 'model.safetensors.index.json', *_SHARDS]
    assert served.downloaded() == sorted(files)
    vocabularies.load(_TARGET)
    assert served.downloaded() == sorted([*files, 'tokenizer.json'])

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
  def test_of_a_checkpoint(self, served, tmp_path, names, read):
    folder = tmp_path / 'other'
    folder.mkdir()
    for name in ('config.json', *names):
      (folder / name).write_text(name)
    served.add(f'{_OWNER}/other', folder, 'main')
    checkpoints.fetch(f'{_OWNER}/other')
    assert served.downloaded() == sorted(['config.json', *read])


class TestRevision:

  def test_the_commit_is_recorded(self, served, folders):
    """It finds the same files again when the branch has moved on."""
    first = served.revisions[_TARGET, 'main']
    found = models.find_model(checkpoints.open(_TARGET)).describe()
    assert found.name == _TARGET
    assert found.checkpoint == f'{_TARGET}@{first}'
    second = served.add(_TARGET, folders / 'draft', 'main', 'v1')
    # The vocabulary that is read later in this process is of the same commit.
    assert first in vocabularies.load(_TARGET).name
    forget()
    for name, commit in {
        _TARGET: second,
        f'{_TARGET}@v1': second,
        f'hf://{_TARGET}@{first}': first,
        found.checkpoint: first,
    }.items():
      opened = checkpoints.open(name)
      assert opened.source == f'{_TARGET}@{commit}'
      assert opened.folder.name == commit


class TestOffline:

  @pytest.mark.parametrize('way', ['asked for', 'no network'])
  def test_from_the_cache(self, served, way, monkeypatch):
    online = checkpoints.open(_TARGET)
    pieces = vocabularies.load(_TARGET).num_ids
    served.requests.clear()
    go_offline(monkeypatch)
    if way == 'no network':
      served.shutdown()
      served.server_close()
      monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    again = checkpoints.open(_TARGET)
    assert (again.folder, again.source) == (online.folder, online.source)
    assert again.specs == online.specs
    assert vocabularies.load(_TARGET).num_ids == pieces
    assert not served.requests

  def test_not_in_the_cache(self, served, monkeypatch):
    go_offline(monkeypatch)
    refuse(_TARGET, 'path of a folder')


def refuse(name, *named):
  """Check that a name is refused in one line that has all that is named."""
  with pytest.raises(checkpoints.CheckpointError) as error:
    checkpoints.open(name)
  (line,) = str(error.value).splitlines()
  assert all(each in line for each in (name, *named)), line


class TestRefused:

  def test_no_such_model(self, served):
    """It may be a local path with a typo, and the line says so."""
    refuse(f'{_OWNER}/traget', 'no such path', 'hf auth login')

  def test_no_network(self, served):
    served.shutdown()
    served.server_close()
    refuse(_TARGET, 'path of a folder')

  @pytest.mark.parametrize('name', ['gpt2', 'a/b/c'])
  def test_not_a_name(self, served, name):
    refuse(f'hf://{name}', '<owner>/<name>')
    with pytest.raises(checkpoints.CheckpointError, match='no such folder'):
      checkpoints.open(name)
    assert not served.requests

  def test_without_the_package(self, served, monkeypatch):
    monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
    refuse(_TARGET, 'no such path', "'.[hub]'")


def test_a_local_path_counts_first(served, folders, tmp_path):
  shutil.copytree(folders / 'target', tmp_path / _DRAFT)
  opened = checkpoints.open(_DRAFT)
  assert opened.source == str(opened.folder) == str(tmp_path / _DRAFT)
  assert not served.requests


def _raise_path(path):
  raise FileNotFoundError(path)


class TestPublicT5:
  """Names of T5X's bucket, as its jobs take them."""

  def test_checkpoint(self, monkeypatch):
    bucket = 'gs://t5-data/pretrained_models/t5x'
    monkeypatch.setattr(layouts, '_absolute', _raise_path)
    for name, path in {
        't5_1_1_xxl': f'{bucket}/t5_1_1_xxl/checkpoint_1000000',
        'flan_t5_small': f'{bucket}/flan_t5_small/checkpoint_1198000',
        't5_11B': f'{bucket}/t5_11B/checkpoint_1000000',
        't5_1_1_xxxl': 't5_1_1_xxxl',
    }.items():
      with pytest.raises(FileNotFoundError, match=f'^{path}$'):
        checkpoints.open(name)
