# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of a target and a draft: vocabularies, features and heads."""

import contextlib
import dataclasses
import functools
import sys
from typing import Any, Literal

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import errors
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import hub
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import network
from speculative_t5x.networks import t5_preparation

Role = Literal['target', 'draft']


def naming(role: Role) -> contextlib.AbstractContextManager[None]:
  """Name the model of a pair in errors of its checkpoint within."""
  return errors.prefixed(f'The {role}', checkpoints.CheckpointError)


def open_checkpoint(
    role: Role, path: checkpoints.Path | None
) -> checkpoints.Checkpoint:
  """Open the checkpoint of a model of a pair, which errors name.

  Of a checkpoint that holds both, it is the one of the role.
  """
  with naming(role):
    if path is None:
      raise checkpoints.CheckpointError('the path of a checkpoint is needed.')
    return checkpoints.open(path).of(role)


def check_vocabularies(
    target: checkpoints.Path | None,
    draft: checkpoints.Path,
    vocabulary: vocabularies.Vocabulary | None = None,
) -> None:
  """Compare the pieces of the vocabularies of a pair, by paths or names.

  That of the target may be given. T5X's checkpoints have none; where only one
  of the two could have one, or it cannot be read, a line on stderr says that
  nothing was compared.

  Raises:
    vocabularies.VocabularyError: if an id means two pieces.
  """
  problem = own = theirs = None
  try:
    own, theirs = vocabularies.load_any(draft), vocabulary
    if own is not None and theirs is None and target is not None:
      theirs = vocabularies.load_any(target)
  except (vocabularies.VocabularyError, ImportError) as error:
    problem = errors.first_line(error)
  if problem is None and (own is None or theirs is None):
    if not any(map(_keeps_vocabulary, filter(None, (target, draft)))):
      return
    lacks = draft if own is None else target or 'the target in memory'
    problem = f'{lacks} has no vocabulary in its folder'
  if problem is not None:
    _say_once(
        f'The vocabularies of target and draft are not compared: {problem}.'
    )
    return
  with errors.prefixed(
      f'{target} and {draft} cannot be a pair', vocabularies.VocabularyError
  ):
    vocabularies.check_pieces(theirs, own)


def _keeps_vocabulary(path: checkpoints.Path) -> bool:
  """Return whether a model is of Hugging Face, which has a vocabulary."""
  return hub.is_name(path) or (
      user_paths.expand(path) / 'config.json'
  ).is_file()


@functools.cache  # a pair is found for several meshes
def _say_once(line: str) -> None:
  print(line, file=sys.stderr)


def with_masks(config: Any, checkpoint: checkpoints.Checkpoint) -> Any:
  """Return a configured network with the masks of a checkpoint.

  The sizes that a head was trained with have none: see `origins.BlockHead`.
  Anything else that a network may be given as is returned as it is.
  """
  if not isinstance(config, config_lib.Form) or network.is_block_head(config):
    return config
  shapes = {name: spec.shape for name, spec in checkpoint.specs.items()}
  return dataclasses.replace(config, **t5_preparation.block_sizes(shapes))


def check_gamma(draft: network.Network, gamma: int) -> None:
  """Say once if a head drafts fewer tokens per block than it is asked for."""
  if network.is_block_head(draft) and gamma > draft.num_masks + 1:
    _say_once(
        f'note: the head was trained for {draft.num_masks + 1} draft tokens per'
        f' block, and gamma is {gamma}: it drafts no more than those.'
    )


def check_features(target: network.Network, draft: network.Network) -> None:
  """Check that a target has the features that a draft reads, if it reads any.

  Raises:
    ValueError: naming what is missing, or both widths.
  """
  if network.is_feature_head(draft):
    asks = (
        'A head on the last features of a target, unlike one of'
        ' configs/origins/block_head.gin that reads none,'
    )
    network.check_offers(target, asks, *network.SHOWS_FEATURES)
    if draft.feature_dim != target.last_width:
      raise ValueError(
          f'The head reads last features of width {draft.feature_dim}, and the'
          f" target's have width {target.last_width}. Pass a head that was"
          ' trained on this target.'
      )
  # What a head on a decoder alone reads beside them is of no encoder.
  read = getattr(draft, 'width_of_inputs', None)
  if not draft.reads_features or read is None:
    return
  width = network.features_width(target)
  if read != width:
    raise ValueError(
        f'The draft decoder reads an encoder of width {read},'
        f" and the target's encoder has width {width}. Pass a decoder that was"
        " trained on this target's encoder."
    )
