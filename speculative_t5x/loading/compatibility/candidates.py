# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads what is known of the two models of a pair without their weights.

Reads vocabularies, and the names, shapes and dtypes of parameters.
"""

import dataclasses

from etils import epath
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import facts
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import t5


@dataclasses.dataclass(frozen=True)
class Given:
  """What a user gives of one model.

  Attributes:
    checkpoint_path: folder of the checkpoint, of any layout.
    config: the network; None for the sizes that the checkpoint states.
    vocabulary: the vocabulary, or the path of one; None for the one in the
      folder of the checkpoint, if there is one.
  """

  checkpoint_path: str
  config: t5.T5Config | None = None
  vocabulary: vocabularies.Vocabulary | str | None = None


def read_pair(
    target: Given,
    draft: Given,
    *,
    dtype: jnp.dtype = jnp.float32,
) -> tuple[facts.Candidate, facts.Candidate]:
  """Reads a target and a draft model, without their weights.

  Whatever cannot be read or does not fit is among the problems of a candidate.
  A draft model without a vocabulary gets the target's, marked as assumed.

  Args:
    target: the target model.
    draft: the draft model.
    dtype: to decode in, where no config is given.
  Returns:
    The candidates of the target and of the draft model.
  """
  given = target, draft
  roles = pairing.make_roles(
      _open_or_none(target.checkpoint_path, 'target'),
      _open_or_none(draft.checkpoint_path, 'draft'),
      target.config,
      draft.config,
  )
  candidates = [
      _read_model(each.checkpoint_path, role, other, dtype)
      for each, role, other in zip(given, roles, reversed(roles), strict=True)
  ]
  read_target, read_draft = (
      _add_vocabulary(candidate, each)
      for candidate, each in zip(candidates, given, strict=True)
  )
  if read_draft.vocabulary is None and not read_draft.problems:
    read_draft = dataclasses.replace(
        read_draft, vocabulary=read_target.vocabulary, is_assumed=True
    )
  return read_target, read_draft


def _read_model(
    path: str, role: pairing.Role, other: pairing.Role, dtype: jnp.dtype
) -> facts.Candidate:
  """Reads a checkpoint's shapes and sizes, and checks them against its role.

  Problems name the setting of the checkpoint, and whether it and that of the
  other role look swapped.
  """
  try:
    checkpoint = role.checkpoint or checkpoints.open(path)
    specs = checkpoint.specs
    config = checkpoint.network(dtype)
  except checkpoints.CheckpointError as error:
    return facts.Candidate(path).with_problem(f'{role.path_name}: {error}')
  source = facts.FROM_PARAMETERS
  if checkpoint.layout is checkpoints.Layout.HUGGING_FACE:
    source = 'config.json'
  candidate = facts.Candidate(
      path, checkpoint.layout.value, specs, config, source
  )
  try:
    pairing.check_network(role, role.config or config, other)
  except checkpoints.CheckpointError as error:
    return candidate.with_problem(str(error))
  if role.config is None:
    return candidate
  return dataclasses.replace(
      candidate, config=role.config, config_source=role.config_name
  )


def find_vocabulary(checkpoint_path: str) -> str | None:
  """Returns the folder of a checkpoint if it holds a vocabulary, or None."""
  files = (epath.Path(checkpoint_path) / name for name in vocabularies.NAMES)
  return checkpoint_path if any(file.is_file() for file in files) else None


def _open_or_none(path: str, role: str) -> checkpoints.Checkpoint | None:
  try:
    return checkpoints.open(path).of(role)
  except checkpoints.CheckpointError:
    return None  # `_read_model` says why


def _add_vocabulary(
    candidate: facts.Candidate, given: Given
) -> facts.Candidate:
  vocabulary = given.vocabulary or find_vocabulary(given.checkpoint_path)
  if isinstance(vocabulary, str):
    try:
      vocabulary = vocabularies.load(vocabulary)
    except vocabularies.VocabularyError as error:
      return candidate.with_problem(str(error))
  if vocabulary and candidate.config:
    vocabulary = vocabulary.within(candidate.config.vocab_size)
  return dataclasses.replace(candidate, vocabulary=vocabulary)
