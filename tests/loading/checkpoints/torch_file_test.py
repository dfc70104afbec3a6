# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Hugging Face folders whose weights are PyTorch's files."""

import sys
import types

from etils import epath
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.checkpoints import torch_file
from tests import checkpoints_by_hand as by_hand
from tests import tiny
from tests.loading.checkpoints import steps

CONFIG = tiny.config(num_decoder_layers=1)
SINGLE = 'pytorch_model.bin'


@pytest.fixture
def torch():
  return pytest.importorskip('torch', reason='PyTorch is not installed')


@pytest.fixture(params=[jnp.float32, jnp.bfloat16], ids=['float32', 'bfloat16'])
def by_safetensors(request, tmp_path):
  """Return a folder of safetensors."""
  params = by_hand.cast(tiny.params(CONFIG), request.param)
  tensors = by_hand.hugging_face_tensors(CONFIG, params)
  fields = by_hand.hugging_face_config(CONFIG)
  return by_hand.write_hugging_face(tmp_path / 'safetensors', fields, tensors)


def convert(torch, folder, other):
  """Save the tensors of a folder by PyTorch; return the new folder.

  A copy of the embedding shares its storage, as transformers saved it.
  """
  found = checkpoints.open(folder)._tensors
  tensors = {}
  for name, tensor in found.items():
    bits = np.array(tensor.read()).view(f'i{tensor.dtype.itemsize}')
    tensors[name] = torch.from_numpy(bits).view(
        getattr(torch, tensor.dtype.name)
    )
  tensors['encoder.embed_tokens.weight'] = tensors['shared.weight']
  other.mkdir()
  (other / 'config.json').write_bytes((folder / 'config.json').read_bytes())
  torch.save(tensors, other / SINGLE)
  return other


def read(folder):
  return dict(checkpoints.open(folder).read_params())


class TestRead:

  def test_as_safetensors(self, torch, by_safetensors, tmp_path):
    folder = convert(torch, by_safetensors, tmp_path / 'torch')
    one, other = map(checkpoints.open, (by_safetensors, folder))
    assert one.network() == other.network()
    assert one.specs == other.specs
    expected, found = read(by_safetensors), read(folder)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
      assert np.asarray(found[name]).tobytes() == np.asarray(array).tobytes()

  def test_safetensors_count_first(self, by_safetensors):
    (by_safetensors / SINGLE).write_bytes(b'is not opened')
    assert read(by_safetensors)

  def test_what_is_read_does_not_depend_on_the_file(self, torch, tmp_path):
    """What stayed mapped would change with the file."""
    path = epath.Path(tmp_path / SINGLE)
    torch.save({'a': torch.arange(10**5, dtype=torch.float32)}, path)
    array = torch_file.read_header(path)['a'].read()
    path.write_bytes(bytes(path.stat().length))
    assert array.sum() == np.arange(10**5, dtype=np.float32).sum()


class _Touch:
  """Makes a file when it is unpickled."""

  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return open, (str(self.path), 'w')


class TestRefused:

  def refuse(self, path, *named):
    steps.refuse(torch_file.read_header, epath.Path(path), *named)

  @pytest.mark.parametrize('version', [None, '2.5.1+cpu'])
  def test_without_torch(self, monkeypatch, tmp_path, version):
    """None stands for a package that cannot be imported."""
    old = version and types.SimpleNamespace(__version__=version)
    monkeypatch.setitem(sys.modules, 'torch', old)
    self.refuse(tmp_path / SINGLE, "'.[torch]'")

  def test_code_is_not_run(self, torch, tmp_path):
    torch.save({'a': _Touch(tmp_path / 'touched')}, tmp_path / SINGLE)
    self.refuse(tmp_path / SINGLE, 'other objects')
    assert not (tmp_path / 'touched').exists()

  @pytest.mark.parametrize(
      'value, named',
      [
          ([1], SINGLE),
          ({'model': {}}, 'model as Python dict'),
      ],
  )
  def test_contents(self, torch, tmp_path, value, named):
    torch.save(value, tmp_path / SINGLE)
    self.refuse(tmp_path / SINGLE, named)

  def test_truncated(self, torch, tmp_path):
    path = tmp_path / SINGLE
    torch.save({'a': torch.zeros(100)}, path)
    path.write_bytes(path.read_bytes()[:-30])
    self.refuse(path, 'download it again')
