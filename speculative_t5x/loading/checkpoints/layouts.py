# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds a checkpoint and tells in which layout it is."""

import enum
import fnmatch
import operator
import os
import pathlib
import re

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import hub
from speculative_t5x.loading.files import public_t5
from speculative_t5x.loading.files import user_paths

Path = str | epath.Path

_STEP_FOLDER = re.compile(r'checkpoint_([0-9]+)')
# Both of T5X's ways to save write under such a name and rename at the end.
_UNFINISHED = re.compile(r'.+\.(orbax-checkpoint-)?tmp-.+')
# Orbax writes the metadata last, so a save that was cut off lacks it.
_WRITTEN_LAST = 'state/_METADATA'
_CUT_OFF = {'state', '_CHECKPOINT_METADATA'}
_MESH_TENSORFLOW = 'model.ckpt-*'
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


def fetch(path: Path) -> tuple[str | None, Path]:
  """Return the name of a model of the hub with its commit, and its folder.

  The files that are read are downloaded. Of any other path the name is None;
  that of a public T5 becomes its path.
  """
  if (name := hub.find(path)) is None:
    return None, public_t5.checkpoint(path)
  folder = hub.fetch(name, (*_CONFIGS, *_patterns(SAFETENSORS)))
  if not _names(folder).intersection(WEIGHTS):
    folder = hub.fetch(name, _patterns(PICKLE))
  return name, folder


def _patterns(weights: str) -> tuple[str, ...]:
  """Return the names of weights of one kind: a file, or shards by an index."""
  stem, suffix = os.path.splitext(weights)
  return weights, weights + INDEX, f'{stem}-*{suffix}'


def resolve(path: Path) -> tuple[epath.Path, Layout]:
  """Return folder and layout of one checkpoint: see `checkpoints.open`."""
  folder = _absolute(path)
  layout = _layout_of(folder)
  if layout is None and (steps := step_folders(folder)):
    folder = steps[max(steps)]
    layout = _layout_of(folder)
  if layout is None:
    names = sorted(_names(folder))
    holds = 'there is no such folder'
    if folder.is_dir():
      holds = f'it holds {errors.listing(names) or "nothing"}'
    raise errors.CheckpointError(
        f'No checkpoint at {folder}: {holds}. Pass a finished'
        f' checkpoint_<step> of T5X ({_WRITTEN_LAST}, or a file named'
        ' checkpoint), a folder of these, a Hugging Face folder (config.json'
        f' and {SAFETENSORS} or {PICKLE}) or <owner>/<name> of its hub.'
        f" T5X's scripts/convert_tf_checkpoint.py converts {_MESH_TENSORFLOW}."
    )
  return folder, layout


def files_in(folder: pathlib.Path) -> list[pathlib.Path]:
  """Return the local files of a checkpoint that are read, sorted.

  All files of another folder are; not those of an optimizer, nor, in a folder
  of Hugging Face, those for other programs.
  """
  names = _names(folder)
  if held := [x for x in WEIGHTS if x in names]:
    read = *_CONFIGS, *_patterns(held[0].removesuffix(INDEX))
    found = [
        folder / x for x in names if any(fnmatch.fnmatch(x, y) for y in read)
    ]
  else:
    found = [
        x
        for x in folder.rglob('*')
        if not any(y.startswith(_OF_OPTIMIZER) for y in x.parts)
    ]
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
  # Not of 7.0, whose name would be another.
  folder = _absolute(path) / f'checkpoint_{operator.index(step)}'
  if folder.exists() and not is_cut_off(folder):
    raise errors.CheckpointError(
        f'There is a checkpoint at {folder} already. Remove it, or write to'
        ' another folder.'
    )
  return folder


def _absolute(path: Path) -> epath.Path:
  """Return an absolute path, as Orbax needs it; keep `gs://` paths."""
  path = user_paths.expand(path)
  return path if user_paths.is_remote(path) else path.absolute()


def _names(folder: epath.Path) -> set[str]:
  return {x.name for x in folder.iterdir()} if folder.is_dir() else set()


def _layout_of(folder: epath.Path) -> Layout | None:
  """Return the layout of a finished checkpoint; None if there is none."""
  names = _names(folder)
  if _UNFINISHED.fullmatch(folder.name) or fnmatch.filter(
      names, _MESH_TENSORFLOW
  ):
    return None
  if 'state' in names:
    is_finished = (folder / _WRITTEN_LAST).exists()
    return Layout.ORBAX if is_finished else None
  if 'checkpoint' in names and not (folder / 'checkpoint').is_dir():
    return Layout.LEGACY
  if names.intersection(WEIGHTS) and 'config.json' in names:
    return Layout.HUGGING_FACE
  return None
