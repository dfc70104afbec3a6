# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds a checkpoint and tells in which layout it is."""

import enum
import operator
import os
import re

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.files import regular_files

Path = str | epath.Path

MAX_STEP = 2**31 - 1  # T5X counts in int32
_STEP_FOLDER = re.compile(r'checkpoint_([0-9]+)')
# Both of T5X's ways to save write under such a name and rename at the end.
_UNFINISHED = re.compile(r'.+\.(orbax-checkpoint-)?tmp-.+')
# Orbax writes the metadata last, so a save that was cut off lacks it.
_WRITTEN_LAST = 'state/_METADATA'
_CUT_OFF = {'state', '_CHECKPOINT_METADATA'}
# In a path TensorStore takes a backslash for a slash. When Orbax saves, it also
# takes a bracket for a pattern, and what it writes is not whole.
_MISREAD = re.compile(r'\\')
_MISWRITTEN = re.compile(r'[\\[]')
_MESH_INDEX = re.compile(r'model\.ckpt-\d+\.index')
_PICKLE = re.compile(r'pytorch_model.*\.bin(\.index\.json)?')
_SAFETENSORS = ('model.safetensors', 'model.safetensors.index.json')


class Layout(enum.Enum):
  """How a checkpoint lies on disk."""

  ORBAX = 'T5X by Orbax'
  LEGACY = 'T5X by msgpack and zarr'
  HUGGING_FACE = 'Hugging Face safetensors'


def resolve(path: Path) -> tuple[epath.Path, Layout]:
  """Finds one checkpoint: at the path itself, or the newest step in it.

  Args:
    path: a `checkpoint_<step>` folder of T5X, a folder that holds several, or
      a Hugging Face folder (config.json and safetensors).
  Returns:
    Its folder and its layout.
  Raises:
    CheckpointError: if there is no finished checkpoint of a known layout.
  """
  folder = _absolute(path)
  if not folder.is_dir():
    if epath.Path(f'{folder}.index').exists():
      raise _mesh_tensorflow(folder)
    raise errors.CheckpointError(
        f'No checkpoint at {folder}: there is no such folder. Pass a'
        ' checkpoint_<step> folder, the folder that holds them, or a Hugging'
        ' Face folder.'
    )
  layout = _layout_of(folder)
  if layout is None and (steps := step_folders(folder)):
    folder = steps[max(steps)]
    if not folder.is_dir():
      raise errors.CheckpointError(
          f'{folder} has the name of a training step and is no folder. Remove'
          ' it, or pass an earlier step.'
      )
    layout = _layout_of(folder)
  if layout is None:
    raise _unknown(folder)
  return folder, layout


def step_folders(path: Path) -> dict[int, epath.Path]:
  """Returns the `checkpoint_<step>` folders in a folder, by step."""
  return {
      int(match.group(1)): child
      for child in epath.Path(path).iterdir()
      if (match := _STEP_FOLDER.fullmatch(child.name))
  }


def step_in_name(folder: epath.Path) -> int | None:
  """Returns the step of a folder `checkpoint_<step>`; None for another name."""
  match = _STEP_FOLDER.fullmatch(folder.name)
  return int(match.group(1)) if match else None


def is_cut_off(folder: epath.Path) -> bool:
  """Returns whether a folder holds only what a killed save has left.

  In a bucket, where nothing can be renamed, Orbax writes under the final name.
  """
  if not folder.is_dir():
    return False
  names = {child.name for child in folder.iterdir()}
  return set() < names <= _CUT_OFF and not (folder / _WRITTEN_LAST).exists()


def new_step_folder(path: Path, step: int) -> epath.Path:
  """Returns where the checkpoint of a step is to be saved in a folder.

  Raises:
    CheckpointError: as `check_folder`, and for a step that would not be found
      again, or that is there already.
  """
  try:
    number = operator.index(step)  # not of 7.0, whose name would be another
  except TypeError:
    number = -1
  if not 0 <= number <= MAX_STEP:
    raise errors.CheckpointError(
        f'No checkpoint can be saved in {path} at step {errors.shown(step)}.'
        f' Pass a whole number from 0 to {MAX_STEP}.'
    )
  check_folder(path)
  folder = _absolute(path) / f'checkpoint_{number}'
  if folder.exists() and not is_cut_off(folder):
    raise errors.CheckpointError(
        f'There is a checkpoint at {folder} already. Remove it, or write to'
        ' another folder.'
    )
  return folder


def check_folder(path: Path) -> None:
  """Checks that checkpoints can be saved in a folder of this path.

  Raises:
    CheckpointError: if Orbax would write elsewhere, or what is not whole.
  """
  _check_path(_absolute(path), _MISWRITTEN)


def _check_path(folder: epath.Path, misread: re.Pattern) -> None:
  if found := misread.search(os.fspath(folder)):
    raise errors.CheckpointError(
        f'The path {folder} has a {found[0]}, which Orbax does not take for a'
        ' part of a name. Rename or choose another folder.'
    )


def _absolute(path: Path) -> epath.Path:
  """Returns an absolute path, as Orbax needs it; keeps `gs://` paths."""
  path = epath.Path(path)
  return path if regular_files.is_remote(path) else path.absolute()


def _layout_of(folder: epath.Path) -> Layout | None:
  """Returns the layout of the content of a folder; None if it is unknown."""
  names = {child.name for child in folder.iterdir()}
  if any(map(_MESH_INDEX.fullmatch, names)):
    raise _mesh_tensorflow(folder)
  if 'state' in names:
    _check_finished(folder)
    return Layout.ORBAX
  if _UNFINISHED.fullmatch(folder.name):
    raise _unfinished(folder, 'its name says so')
  if 'checkpoint' in names and not (folder / 'checkpoint').is_dir():
    return Layout.LEGACY
  if names & set(_SAFETENSORS):
    if 'config.json' not in names:
      raise errors.CheckpointError(
          f'{folder} holds safetensors without a config.json, which says what'
          ' network they are of. Download it too.'
      )
    return Layout.HUGGING_FACE
  if pickles := sorted(filter(_PICKLE.fullmatch, names)):
    raise errors.CheckpointError(
        f'{folder} holds its weights as {errors.listing(pickles)} alone, a'
        ' Python pickle, which could run any code and is never loaded. Save'
        ' the model as safetensors: model.save_pretrained(folder,'
        ' safe_serialization=True).'
    )
  return None


def _check_finished(folder: epath.Path) -> None:
  _check_path(folder, _MISREAD)
  if _UNFINISHED.fullmatch(folder.name):
    raise _unfinished(folder, 'its name says so')
  if not (folder / _WRITTEN_LAST).exists():
    raise _unfinished(folder, f'it has no {_WRITTEN_LAST}')
  regular_files.check_tree(folder)


def _unfinished(folder: epath.Path, why: str) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'The checkpoint {folder} is unfinished or of another layout: {why}.'
      ' Pass an earlier step, or save it again.'
  )


def _mesh_tensorflow(path: epath.Path) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'{path} is a Mesh TensorFlow checkpoint (model.ckpt-*.index), which is'
      " not read here. Convert it by T5X's scripts/convert_tf_checkpoint.py."
  )


def _unknown(folder: epath.Path) -> errors.CheckpointError:
  names = sorted(child.name for child in folder.iterdir())
  if unfinished := sorted(filter(_UNFINISHED.fullmatch, names)):
    return _unfinished(folder, f'it holds {errors.listing(unfinished)} alone')
  holds = f'It holds {errors.listing(names)}.' if names else 'It is empty.'
  return errors.CheckpointError(
      f'No checkpoint in {folder}: neither a folder named state, nor a file'
      ' named checkpoint, nor any checkpoint_<step> folder, nor a Hugging Face'
      f' model.safetensors. {holds}'
  )
