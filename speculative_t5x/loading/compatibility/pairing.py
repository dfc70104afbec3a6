# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of a target and a draft: vocabularies and features."""

import contextlib
from typing import Literal

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import errors
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import network

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

  That of the target may be given. T5X's checkpoints have none; where one of the
  two has none, nothing is compared.

  Raises:
    vocabularies.VocabularyError: if an id means two pieces.
  """
  if (own := vocabularies.load_any(draft)) is None:
    return
  if vocabulary is None and target is not None:
    vocabulary = vocabularies.load_any(target)
  if vocabulary is not None:
    with errors.prefixed(
        f'{target} and {draft} cannot be a pair', vocabularies.VocabularyError
    ):
      vocabularies.check_pieces(vocabulary, own)


def check_features(target: network.Network, draft: network.Network) -> None:
  """Check that a target has the features that a draft reads, if it reads any.

  Raises:
    ValueError: naming what is missing, or both widths.
  """
  if network.is_feature_head(draft):
    _check_last_features(target, draft)
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


def _check_last_features(
    target: network.Network, draft: network.Network
) -> None:
  asks = 'A head on the last features of a target'
  network.check_offers(target, asks, *network.SHOWS_FEATURES)
  if draft.feature_dim != target.last_width:
    raise ValueError(
        f'The head reads last features of width {draft.feature_dim}, and'
        f" the target's have width {target.last_width}. Pass a head that was"
        ' trained on this target.'
    )
