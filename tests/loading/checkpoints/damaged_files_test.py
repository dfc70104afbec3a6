# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of damaged files: one error each, no hang, little memory."""

import json
import os
import random
import re
import shutil
import signal
import struct

from etils import epath
import jax.numpy as jnp
import msgpack
import orbax.checkpoint as ocp
import pytest
import safetensors.numpy

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.checkpoints import legacy
from speculative_t5x.loading.checkpoints import safetensors_file
from tests import checkpoints_by_hand as by_hand
from tests import tiny

CONFIG = tiny.config(
    vocab_size=8, emb_dim=4, num_heads=1, head_dim=2, mlp_dim=6,
    num_encoder_layers=1, num_decoder_layers=1,
)  # fmt: skip
WO = 'decoder/layers_0/mlp/wo/kernel'
ZARR = {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': 'target.wo'}}


@pytest.fixture(scope='module')
def params():
  return by_hand.cast(tiny.params(CONFIG), jnp.float32)


@pytest.fixture(scope='module', params=checkpoints.Layout)
def source(request, params, tmp_path_factory):
  """Returns the network in each layout, with separate files if possible."""
  path = tmp_path_factory.mktemp(request.param.name)
  match request.param:
    case checkpoints.Layout.ORBAX:
      checkpoints.save(path, 7, params)
    case checkpoints.Layout.LEGACY:
      by_hand.write_legacy(path, params, inline=set(_names(params)) - {WO})
    case checkpoints.Layout.HUGGING_FACE:
      fields = by_hand.hugging_face_config(CONFIG)
      tensors = by_hand.hugging_face_tensors(CONFIG, params)
      by_hand.write_hugging_face(path, fields, tensors, shards=2)
  return path


@pytest.fixture
def damaged(source, tmp_path):
  """Returns a copy that a test may damage."""
  return shutil.copytree(source, tmp_path / 'model', symlinks=True)


def _names(params):
  return checkpoints.flatten(params)


def restore(path):
  return checkpoints.open(path).restore_params(models.abstract_params(CONFIG))


def read_specs(path):
  return checkpoints.open(path).specs


def refuse(read, path, match):
  with pytest.raises(checkpoints.CheckpointError, match=match) as error:
    read(path)
  message = str(error.value)
  assert message.isprintable() and len(message) < 1000
  assert str(path) in message


def _array(shape, dtype='float32', data=b'', code=1):
  """Returns an array as Flax packs it, or another value in its place."""
  return msgpack.ExtType(code, msgpack.packb([shape, dtype, data]))


def _target(wo, **others):
  return {'version': 3, 'optimizer': {'target': {'wo': wo} | others}}


def _chunked(**parts):
  return _target({'__msgpack_chunked_array__': True} | parts)


def _nested(depth):
  return {} if depth == 0 else {'a': _nested(depth - 1)}


class TestMsgpack:

  def write(self, folder, content):
    (folder / 'checkpoint_7').mkdir()
    if not isinstance(content, bytes):
      content = msgpack.packb(content)
    (folder / 'checkpoint_7' / 'checkpoint').write_bytes(content)

  @pytest.mark.parametrize(
      'content, match',
      [
          ({'optimizer': {'target': {1: 2}}}, 'key 1 is no text'),
          ({'optimizer': {'target': {b'a': 2}}}, 'key .* is no text'),
          ({'optimizer': {'target': {None: 2}}}, 'key None is no text'),
          (b'\x82\xa1a\x01\xa1a\x02', "key 'a' is there twice"),
          (_target(_array([2.0], data=bytes(8))), r'\(2.0,\) is no shape'),
          (_target(_array([True], data=bytes(4))), r'\(True,\) is no shape'),
          (_target(_array([-2, -1], data=bytes(8))), 'is no shape'),
          (_target(_array(['2'], data=bytes(8))), 'is no shape'),
          (_target(_array(2, data=bytes(8))), 'no shape, dtype and bytes'),
          (_target(_array([2], 4, bytes(8))), 'no shape, dtype and bytes'),
          (_target(_array([2], data='text')), 'no shape, dtype and bytes'),
          (_target(_array([3], data=bytes(8))), r'8 bytes are stored for'),
          (_target(_array([2**40], data=bytes(8))), r'8 bytes are stored for'),
          (_target(_array([1], 'object', bytes(8))), "dtype 'object' is not"),
          (_target(_array([1], '(9,9)f4', bytes(4))), r"dtype '\(9,9\)f4' is"),
          (_target(msgpack.ExtType(1, b'\x05')), 'no shape, dtype and bytes'),
          (_target(msgpack.ExtType(1, b'\x93')), 'no shape|ends too early'),
          (_chunked(), 'in parts has shape None'),
          (_chunked(shape={'0': 2}, chunks=[1]), 'in parts has chunks'),
          (_chunked(shape={'1': 2}, chunks={}), 'in parts has shape'),
          (_chunked(shape={'0': 2}, chunks={'0': 1}), 'no arrays of one dtype'),
          (_chunked(shape={'0': 2}, chunks={}), 'no arrays of one dtype'),
          (_nested(200), 'nested more than'),
          (b'\xdd\xff\xff\xff\xff' + bytes(99), 'ends too early'),
          (b'\xdd\xff\xff\xff\xff' + bytes(2**20), 'holds more than'),
          (b'\x81\xdb\x00\x20\x00\x00' + bytes(2**21), 'a text of'),
          (b'\x81\xa1\xff\x01', 'damaged: .utf-8. codec'),
          ([1, 2], 'no tree of parameters'),
          ({'version': 'new', 'target': {}}, "version 'new'"),
          ({'version': None, 'target': {}}, 'version None'),
          ({'optimizer': [1]}, 'no target'),
          ({'optimizer': {'target': ['wo']}}, 'no target'),
          (_target(3), 'wo of .* it is 3, which is no array'),
          (_target('line\nbreak'), 'wo of .*, which is no array'),
          (_target(ZARR | {'driver': 'n5'}), 'wo of .* no array'),
          (_target(ZARR | {'kvstore': 'wo'}), 'wo of .* no array'),
          (_target(ZARR | {'kvstore': {'driver': []}}), 'wo of .* no array'),
          (
              _target(ZARR | {'kvstore': {'driver': 'file', 'path': 5}}),
              'wo of .* no array',
          ),
          (
              _target(ZARR | {'kvstore': {'driver': 'file', 'path': '.'}}),
              'wo of .* no array',
          ),
          (
              _target(ZARR | {'kvstore': {'driver': 'file', 'path': 'a\0'}}),
              'wo of .* no array',
          ),
          (
              _target({'x': _array([], data=bytes(4))}) | {'version': True},
              'version True',
          ),
          (
              _target(
                  {'x': _array([], data=bytes(4))},
                  **{'wo/x': _array([], data=bytes(4))},
              ),
              'wo/x of .* there twice',
          ),
          (
              _target(_array([0, 2**62])),
              r'sizes that no network has: wo \(0, 4611686018427387904\)',
          ),
      ],
  )
  def test_parameters(self, tmp_path, content, match):
    self.write(tmp_path, content)
    refuse(read_specs, tmp_path, match)

  @pytest.mark.parametrize(
      'step',
      [
          2**63, 2**31, -1, 1.5, True, 'seven', b'7', [7], {'a': 7},
          _array([], 'float32', bytes(4), code=3),
          _array([3], 'int32', bytes(12)),
          _array([], 'uint64', b'\xff' * 8, code=3),
          _array([], 'int64', b'\xff' * 8, code=3),
      ],
  )  # fmt: skip
  def test_step(self, tmp_path, step):
    self.write(tmp_path, {'target': {}, 'state': {'step': step}})
    read_step = lambda path: checkpoints.open(path).step
    refuse(read_step, tmp_path, 'no whole number from 0 to 2147')

  def test_changed_bytes(self, tmp_path, params):
    """Any change is read or raises a checkpoint error."""
    names = _names(params)
    folder = by_hand.write_legacy(tmp_path, params, inline=names)
    folder = epath.Path(folder)
    file = folder / 'checkpoint'
    content = file.read_bytes()
    rng = random.Random(0)
    num_refused = 0
    for _ in range(400):
      file.write_bytes(_spoiled(content, rng))
      try:
        reader = legacy.Reader(folder)
        legacy._parameters(folder, reader._training_state)
        _ = reader.step
      except checkpoints.CheckpointError as error:
        num_refused += 1
        assert str(error).isprintable()
    assert 100 < num_refused < 400


def _spoiled(content: bytes, rng: random.Random) -> bytes:
  """Returns data with some bytes changed, inserted or removed."""
  data = bytearray(content)
  start = rng.randrange(1 + rng.randrange(len(data)))
  if rng.random() < 0.1:
    return bytes(data[:start])
  for i in range(start, min(start + rng.choice([1, 1, 2, 5]), len(data))):
    data[i] = rng.randrange(256)
  if rng.random() < 0.3:
    data[start : start + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
  return bytes(data)


def _entry(begin, end, shape=(2,), dtype='F32'):
  return {'dtype': dtype, 'shape': shape, 'data_offsets': [begin, end]}


class TestSafetensors:

  def write(self, folder, header, num_bytes=16):
    if not isinstance(header, bytes):
      header = json.dumps(header).encode()
    path = epath.Path(folder / 'model.safetensors')
    path.write_bytes(struct.pack('<Q', len(header)) + header + bytes(num_bytes))
    return path

  @pytest.mark.parametrize(
      'header, match',
      [
          ({'a': _entry(0, 8, [2.0]), 'b': _entry(8, 16)}, 'is no shape'),
          ({'a': _entry(0, 8, [True, 2]), 'b': _entry(8, 16)}, 'is no shape'),
          ({'a': _entry(0, 8, [-2, -1]), 'b': _entry(8, 16)}, 'is no shape'),
          ({'a': _entry(0, 8, '2'), 'b': _entry(8, 16)}, 'a is .* no dtype'),
          ({'a': _entry(0, 8, 2), 'b': _entry(8, 16)}, 'a is .* no dtype'),
          ({'a': _entry(0, 8), 'b': _entry(0, 16, [4])}, 'b starts at byte'),
          ({'a': _entry(0, 8), 'b': _entry(4, 12)}, 'b starts at byte'),
          ({'a': _entry(0, 8), 'b': _entry(12, 16, [1])}, 'b starts at byte'),
          ({'a': _entry(8, 16)}, 'a starts at byte'),
          ({'a': _entry(0, 8)}, '8 bytes at its end'),
          ({'a': _entry(8, 0), 'b': _entry(8, 16)}, '-8 bytes are stored'),
          ({'a': _entry(0.0, 8), 'b': _entry(8, 16)}, 'a is .* no dtype'),
          ({'a': _entry(False, 8), 'b': _entry(8, 16)}, 'a is .* no dtype'),
          ({'a': _entry(0, 8, dtype=4), 'b': _entry(8, 16)}, 'no dtype'),
          ({'a': _entry(0, 16, dtype='F64'), 'b': []}, 'b is .* no dtype'),
          ({'a\n': 7}, 'is 7, which is no dtype'),
          ({'a': _entry(0, 24, [2**61, 3])}, '24 bytes are stored'),
          (b'{"a": 1, "a": 2}', 'name twice'),
          (b'[' * 10**5, 'nested too deeply'),
      ],
  )
  def test_header(self, tmp_path, header, match):
    path = self.write(tmp_path, header)
    refuse(safetensors_file.read_header, path, f'is damaged .*{match}')

  def test_empty_tensors_have_no_bytes(self, tmp_path):
    header = {'b': _entry(0, 16, [4]), 'c': _entry(0, 0, [0, 3])}
    path = self.write(tmp_path, header | {'__metadata__': {'format': 'pt'}})
    found = safetensors_file.read_header(path)
    assert {n: x.shape for n, x in found.items()} == {'b': (4,), 'c': (0, 3)}

  def test_changed_bytes(self, tmp_path, params):
    """Files are read if and only if the safetensors library reads them."""
    tensors = by_hand.hugging_face_tensors(CONFIG, params)
    path = epath.Path(tmp_path / 'model.safetensors')
    safetensors.numpy.save_file(tensors, path)
    content = path.read_bytes()[: 8 + 700]
    rest = path.read_bytes()[len(content) :]
    rng = random.Random(0)
    outcomes = set()
    for _ in range(400):
      path.write_bytes(_spoiled(content, rng) + rest)
      ours, theirs = _ours(path), _theirs(path)
      assert ours == theirs
      outcomes.add(ours is None)
    assert outcomes == {True, False}


def _ours(path):
  try:
    found = safetensors_file.read_header(path)
    return {n: x.read().tobytes() for n, x in found.items()}
  except checkpoints.CheckpointError:
    return None


def _theirs(path):
  try:
    found = safetensors.numpy.load_file(path)
  except Exception:  # it raises errors of several kinds
    return None
  return {n: x.tobytes() for n, x in found.items()}


class TestChunks:
  """A reader allocates a chunk before it checks the size of its data."""

  @pytest.mark.parametrize(
      'field, value, match',
      [
          ('chunks', [65536, 65536], r'chunks of shape \(65536, 65536\)'),
          ('chunks', [6, 5], r'chunks of shape \(6, 5\) are larger'),
          ('shape', [2**40, 4], 'sizes that no network has'),
          ('shape', [6, 0], 'larger than the array'),
          ('chunks', [0, 4], 'cannot be read'),
          ('chunks', [2.5, 4], 'cannot be read'),
          ('dtype', '<U3', 'cannot be read|no floating'),
      ],
  )
  def test_zarr(self, tmp_path, params, field, value, match):
    names = set(_names(params)) - {WO}
    folder = by_hand.write_legacy(tmp_path, params, inline=names)
    file = folder / f'target.{WO.replace("/", ".")}' / '.zarray'
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    refuse(restore, tmp_path, match)

  def test_orbax(self, tmp_path):
    state = {'target': {'wo': jnp.ones((6, 4))}}
    folder = epath.Path(tmp_path / 'checkpoint_7')
    handler = ocp.PyTreeCheckpointHandler(use_ocdbt=False)
    with ocp.Checkpointer(handler) as checkpointer:
      checkpointer.save(folder / 'state', args=ocp.args.PyTreeSave(state))
    assert checkpoints.open(folder).specs['wo'].shape == (6, 4)
    file = folder / 'state' / 'target.wo' / '.zarray'
    metadata = json.loads(file.read_text()) | {'chunks': [65536, 65536]}
    file.write_text(json.dumps(metadata))
    refuse(read_specs, folder, 'wo: .*larger than the array')


@pytest.fixture
def no_hang(damaged):
  """Ends a test that waits for a pipe, which would otherwise hang."""

  def hang(*_):
    for path in damaged.rglob('*'):
      if path.is_fifo():  # readers of the pipe, also in threads, see its end
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    raise AssertionError('it waits for a pipe')

  previous = signal.signal(signal.SIGALRM, hang)
  signal.alarm(120)
  yield
  signal.alarm(0)
  signal.signal(signal.SIGALRM, previous)


KINDS = {
    'pipe': (os.mkfifo, 'is a named pipe'),
    'dangling link': (lambda path: os.symlink('gone', path), 'is a link to'),
    'link to itself': (lambda path: os.symlink(path, path), 'is a link to'),
    'device': (lambda path: os.symlink('/dev/zero', path), 'is a device'),
    'folder': (os.mkdir, 'is a folder|cannot be read|is damaged'),
}


class TestNoRegularFile:

  @pytest.mark.parametrize('kind', KINDS)
  def test_pipe_or_folder_in_place_of_each_file(self, damaged, kind, no_hang):
    make, match = KINDS[kind]
    # Orbax writes more files than it reads.
    if (state := damaged / 'checkpoint_7' / 'state').exists():
      files = [state / name for name in ('_METADATA', 'manifest.ocdbt')]
    else:
      files = [path for path in sorted(damaged.rglob('*')) if path.is_file()]
    assert len(files) > 1
    for file in files:
      file.rename(damaged / 'kept')
      make(file)
      with pytest.raises(checkpoints.CheckpointError) as error:
        restore(damaged)
      message = str(error.value)
      assert re.search(f'{match}|is unfinished|No checkpoint', message), file
      assert message.isprintable() and str(damaged) in message
      file.rmdir() if kind == 'folder' else file.unlink()
      (damaged / 'kept').rename(file)
    restore(damaged)

  def test_links_to_files_and_folders_are_read(self, damaged, tmp_path):
    """Hugging Face's cache has such links."""
    moved = tmp_path / 'moved'
    moved.mkdir()
    for i, path in enumerate(sorted(damaged.rglob('*'), reverse=True)):
      path.rename(moved / str(i))
      path.symlink_to(moved / str(i))
    (damaged / 'loop').symlink_to(damaged)
    restore(damaged)
