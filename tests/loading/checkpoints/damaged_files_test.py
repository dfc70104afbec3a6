# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of damaged files: one error each, no hang, little memory."""

import random
import shutil
import struct

import jax.numpy as jnp
import msgpack
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import tiny
from tests.loading.checkpoints import steps

CONFIG = tiny.config(
    vocab_size=8, emb_dim=4, num_heads=1, head_dim=2, mlp_dim=6,
    num_encoder_layers=1, num_decoder_layers=1,
)  # fmt: skip
WO = 'decoder/layers_0/mlp/wo/kernel'
WO_FOLDER = 'target.decoder.layers_0.mlp.wo.kernel'
INDEX = 'model.safetensors.index.json'


@pytest.fixture(scope='module')
def params():
  return by_hand.cast(tiny.params(CONFIG), jnp.float32)


@pytest.fixture(scope='module')
def sources(params, tmp_path_factory):
  """Return the network in each layout, with separate files if possible."""
  folder = tmp_path_factory.mktemp('sources')
  for layout in checkpoints.Layout:
    steps.write(layout, folder / layout.name, params, CONFIG, shards=2)
  return folder


@pytest.fixture
def copied(sources, tmp_path):
  """Return a function that copies a layout, for a test to damage."""

  def copied(layout):
    path = tmp_path / 'model'
    return shutil.copytree(sources / layout.name, path, symlinks=True)

  return copied


@pytest.fixture(params=checkpoints.Layout, ids=lambda layout: layout.name)
def damaged(request, copied):
  """Return a copy of each layout."""
  return copied(request.param)


def restore(path):
  checkpoint = checkpoints.open(path)
  _ = checkpoint.step
  return checkpoint.restore_params(models.abstract_params(CONFIG))


def read_all(path):
  """Read what a job reads, but for the weights."""
  checkpoint = checkpoints.open(path)
  if checkpoint.layout is checkpoints.Layout.HUGGING_FACE:
    checkpoint.network()
  found = checkpoint.specs, checkpoint.step
  return *found, checkpoint.special_ids


def _array(shape, dtype='float32', data=b'', code=1):
  """Return an array as Flax packs it, or another value in its place."""
  return msgpack.ExtType(code, msgpack.packb([shape, dtype, data]))


def _target(wo, **others):
  return {'version': 3, 'optimizer': {'target': {'wo': wo} | others}}


class TestLegacy:

  @pytest.mark.parametrize(
      'content, named',
      [
          (b'', 'checkpoint'),
          ({'version': 3, 'optimizer': {}}, "'target'"),
          (_target('line\nbreak'), 'wo of'),
          (_target(_array([3], 'uint16', bytes(6))), 'wo uint16'),
      ],
  )
  def test_contents(self, tmp_path, content, named):
    (tmp_path / 'checkpoint_7').mkdir()
    if not isinstance(content, bytes):
      content = msgpack.packb(content)
    (tmp_path / 'checkpoint_7' / 'checkpoint').write_bytes(content)
    steps.refuse(read_all, tmp_path, named)

  @pytest.mark.parametrize(
      'damage',
      [
          lambda folder: (folder / '0.0').write_bytes(b'x' * 9),
          lambda folder: (folder / '0.0').unlink(),  # zeros would stand for it
      ],
  )
  def test_zarr_folder(self, copied, damage):
    folder = copied(checkpoints.Layout.LEGACY)
    damage(folder / 'checkpoint_7' / WO_FOLDER)
    steps.refuse(restore, folder, WO)


class TestHuggingFace:

  @pytest.mark.parametrize(
      'content',
      [
          b'',
          struct.pack('<Q', 5) + b'{"a":',
          struct.pack('<Q', 2**60) + b'{}',  # no room is made for it
      ],
  )
  def test_tensors(self, copied, content):
    folder = copied(checkpoints.Layout.HUGGING_FACE)
    name = 'model-00001-of-00002.safetensors'
    (folder / name).write_bytes(content)
    steps.refuse(read_all, folder, f'{name} cannot be read')

  @pytest.mark.parametrize(
      'file, change, named',
      [
          ('config.json', lambda text: text[:50], 'config.json'),
          ('config.json', lambda text: '[]', 'config.json'),
          ('generation_config.json', lambda text: '{', 'generation_config'),
          (INDEX, lambda text: '{}', 'index'),
          (INDEX, lambda text: text.replace('1-of', '2-of'), 'decoder.block.0'),
          (INDEX, lambda text: text.replace('1-of', '3-of'), 'model-00003-of'),
      ],
  )
  def test_json(self, copied, file, change, named):
    path = copied(checkpoints.Layout.HUGGING_FACE) / file
    text = path.read_text() if path.exists() else ''
    path.write_text(change(text), encoding='latin-1')
    steps.refuse(read_all, path.parent, named)


def _cut(files):
  for file in files:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


class TestOrbax:

  @pytest.mark.parametrize(
      'damage',
      [
          lambda state: (state / '_METADATA').write_text('{"tree'),
          lambda state: shutil.rmtree(state / 'd'),
          lambda state: _cut(state.glob('d/*')),
      ],
  )
  def test_file(self, copied, damage):
    folder = copied(checkpoints.Layout.ORBAX)
    damage(folder / 'checkpoint_7' / 'state')
    steps.refuse(restore, folder, 'checkpoint_7')


def test_changed_bytes(damaged):
  """Any change is read, or raises a checkpoint error."""
  rng = random.Random(0)
  files = ('checkpoint', '_METADATA', 'config.json', '.safetensors')
  files = [x for x in damaged.rglob('*') if x.name.endswith(files)]
  files = [x for x in files if x.stat().st_size]  # Orbax has an empty marker
  num_refused = 0
  for i in range(60):
    file = files[i % len(files)]
    content = file.read_bytes()
    file.write_bytes(_spoiled(content, rng))
    try:
      read_all(damaged)
    except checkpoints.CheckpointError as error:
      num_refused += 1
      assert str(error).isprintable()
    file.write_bytes(content)
  assert num_refused > 10
  restore(damaged)


def _spoiled(content: bytes, rng: random.Random) -> bytes:
  """Return data with some bytes changed, inserted or removed."""
  data = bytearray(content)
  start = rng.randrange(1 + rng.randrange(len(data)))
  if rng.random() < 0.1:
    return bytes(data[:start])
  for i in range(start, min(start + rng.choice([1, 1, 2, 5]), len(data))):
    data[i] = rng.randrange(256)
  if rng.random() < 0.3:
    data[start : start + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
  return bytes(data)


def test_links_to_files_and_folders_are_read(damaged, tmp_path):
  """Hugging Face's cache has such links."""
  moved = tmp_path / 'moved'
  moved.mkdir()
  for i, path in enumerate(sorted(damaged.rglob('*'), reverse=True)):
    path.rename(moved / str(i))
    path.symlink_to(moved / str(i))
  (damaged / 'loop').symlink_to(damaged)
  restore(damaged)
