# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds a checkpoint and tells in which layout it is."""

from collections.abc import Collection
import enum
import operator
import os
import pathlib
import re

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import regular_files
from speculative_t5x.loading.files import user_paths

Path = str | epath.Path

MAX_STEP = 2**31 - 1  # T5X counts in int32
_STEP_FOLDER = re.compile(r'checkpoint_([0-9]+)')
# Both of T5X's ways to save write under such a name and rename at the end.
_UNFINISHED = re.compile(r'.+\.(orbax-checkpoint-)?tmp-.+')
# Orbax writes the metadata last, so a save that was cut off lacks it.
_WRITTEN_LAST = 'state/_METADATA'
_CUT_OFF = {'state', '_CHECKPOINT_METADATA'}
_MESH_INDEX = re.compile(r'model\.ckpt-\d+\.index')
# Of Hugging Face; a large model is in several files, which an index names.
SAFETENSORS, PICKLE = 'model.safetensors', 'pytorch_model.bin'
INDEX = '.index.json'
_CONFIGS = 'config.json', 'generation_config.json'
WEIGHTS = tuple(x + y for x in (SAFETENSORS, PICKLE) for y in ('', INDEX))
# Files that saving or uploading a checkpoint of some layout writes anew.
WRITTEN_ANEW = (
    'checkpoint', '_CHECKPOINT_METADATA', _WRITTEN_LAST, *_CONFIGS,
    *WEIGHTS,
)  # fmt: skip
_OF_OPTIMIZER = 'state.param_states'  # begins names of what T5X writes beside


class Layout(enum.Enum):
  """The layout of a checkpoint on disk."""

  ORBAX = 'T5X by Orbax'
  LEGACY = 'T5X by msgpack and zarr'
  HUGGING_FACE = 'Hugging Face'


def files_read(names: Collection[str]) -> list[str]:
  """Return which files of a Hugging Face folder are read, by all their names.

  A safetensors file counts before one of PyTorch, and a whole file before
  shards, whose index names them as transformers does.
  """
  weights = next((x for x in WEIGHTS if x in names), '')
  stem, suffix = os.path.splitext(weights.removesuffix(INDEX))
  shards = []
  if weights.endswith(INDEX):
    shards = [x for x in names if re.fullmatch(rf'{stem}-.*\{suffix}', x)]
  return [*_CONFIGS, weights, *shards]


def resolve(path: Path) -> tuple[epath.Path, Layout]:
  """Return folder and layout of one checkpoint: see `checkpoints.open`."""
  folder = _absolute(path)
  layout = _layout_of(folder)
  if layout is None and (steps := step_folders(folder)):
    folder = steps[max(steps)]
    layout = _layout_of(folder)
  if layout is None:
    why = _why_not(folder)
    raise errors.CheckpointError(f'No checkpoint at {folder}: {why}')
  if layout is Layout.ORBAX:
    _check_path(folder, '\\')
    regular_files.check_tree(folder)
  return folder, layout


def files_in(folder: pathlib.Path) -> list[pathlib.Path]:
  """Return the local files of a checkpoint that are read, sorted.

  All files of another folder are; not those of an optimizer, nor, in a folder
  of Hugging Face, those for other programs.
  """
  names = _names(folder)
  if names.intersection(WEIGHTS):
    found = (folder / name for name in files_read(names))
  else:
    found = (
        x
        for x in folder.rglob('*')
        if not any(y.startswith(_OF_OPTIMIZER) for y in x.parts)
    )
  return sorted(x for x in found if x.is_file())


def step_folders(path: Path) -> dict[int, epath.Path]:
  """Return the `checkpoint_<step>` folders in a folder, by step."""
  folder = user_paths.expand(path)
  return {
      step: child
      for child in (folder.iterdir() if folder.is_dir() else ())
      if (step := step_in_name(child)) is not None
  }


def step_in_name(folder: epath.Path) -> int | None:
  """Return the step of a folder `checkpoint_<step>`; None for another name."""
  match = _STEP_FOLDER.fullmatch(folder.name)
  return int(match.group(1)) if match else None


def is_cut_off(folder: epath.Path) -> bool:
  """Return whether a folder holds only what a killed save has left.

  In a bucket, where nothing can be renamed, Orbax writes under the final name.
  """
  is_part = set() < _names(folder) <= _CUT_OFF
  return is_part and not (folder / _WRITTEN_LAST).exists()


def new_step_folder(path: Path, step: int) -> epath.Path:
  """Return where the checkpoint of a new step is to be saved in a folder."""
  check_folder(path)
  # Not of 7.0, whose name would be another.
  folder = _absolute(path) / f'checkpoint_{operator.index(step)}'
  if folder.exists() and not is_cut_off(folder):
    raise errors.CheckpointError(
        f'There is a checkpoint at {folder} already. Remove it, or write to'
        ' another folder.'
    )
  return folder


def check_folder(path: Path) -> None:
  """Check that checkpoints can be saved in a folder of this path."""
  _check_path(_absolute(path), '\\[')


def _check_path(folder: epath.Path, misread: str) -> None:
  """Check for what Orbax misreads in a path.

  TensorStore takes a backslash for a slash. When Orbax saves, it also takes a
  bracket for a pattern, and what it writes is not whole.
  """
  if found := set(misread) & set(os.fspath(folder)):
    raise errors.CheckpointError(
        f'The path {folder} has a {min(found)}, which Orbax does not take for a'
        ' part of a name. Rename or choose another folder.'
    )


def _absolute(path: Path) -> epath.Path:
  """Return an absolute path, as Orbax needs it; keep `gs://` paths."""
  path = user_paths.expand(path)
  if user_paths.is_remote(path):
    return path
  user_paths.check_utf8(path.absolute())  # the current folder too
  return path.absolute()


def _names(folder: epath.Path) -> set[str]:
  return {x.name for x in folder.iterdir()} if folder.is_dir() else set()


def _layout_of(folder: epath.Path) -> Layout | None:
  """Return the layout of a finished checkpoint; None if there is none."""
  names = _names(folder)
  is_unfinished = _UNFINISHED.fullmatch(folder.name)
  if is_unfinished or any(map(_MESH_INDEX.fullmatch, names)):
    return None
  if 'state' in names:
    is_finished = (folder / _WRITTEN_LAST).exists()
    return Layout.ORBAX if is_finished else None
  if 'checkpoint' in names and not (folder / 'checkpoint').is_dir():
    return Layout.LEGACY
  if names.intersection(WEIGHTS) and 'config.json' in names:
    return Layout.HUGGING_FACE
  return None


def _why_not(folder: epath.Path) -> str:
  """Return why a folder is not a checkpoint, and what to pass instead."""
  names = _names(folder)
  if any(map(_MESH_INDEX.fullmatch, [*names, f'{folder.name}.index'])):
    return (
        'it is of Mesh TensorFlow (model.ckpt-*.index), which is not read here.'
        " Convert it by T5X's scripts/convert_tf_checkpoint.py."
    )
  if not folder.is_dir():
    found = 'it is not a' if folder.exists() else 'there is no such'
    return (
        f'{found} folder. Pass a checkpoint_<step> folder, the folder that'
        ' holds them, a Hugging Face folder, or the name of a model of its hub'
        ' with the owner, <owner>/<name>.'
    )
  unfinished = sorted(filter(_UNFINISHED.fullmatch, {folder.name, *names}))
  if unfinished or 'state' in names:
    why = errors.listing(unfinished) or f'there is no {_WRITTEN_LAST}'
    return (
        f'it is unfinished ({why}). Pass an earlier step, or save it again.'
    )
  if weights := sorted(names.intersection(WEIGHTS)):
    return (
        f'it holds {errors.listing(weights)} without a config.json, which says'
        ' of what network they are. Download it too.'
    )
  holds = f'holds {errors.listing(sorted(names))}' if names else 'is empty'
  return (
      f'it {holds}. A checkpoint is a folder with a folder named state, a file'
      ' named checkpoint, folders checkpoint_<step>, or a model.safetensors or'
      ' pytorch_model.bin of Hugging Face. Correct the path.'
  )
