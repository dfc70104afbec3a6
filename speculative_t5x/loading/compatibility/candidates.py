# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads what is known of the two models of a pair without their weights.

Reads vocabularies, and the names, shapes and dtypes of parameters.
"""

import dataclasses

import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import network

FROM_PARAMETERS = 'the parameters'  # as the source of a network


@dataclasses.dataclass(frozen=True)
class Given:
  """What a user gives of one model.

  Attributes:
    checkpoint_path: Folder of the checkpoint, of any layout.
    config: The network; None for the sizes that the checkpoint states.
    vocabulary: The vocabulary, or the path of one; None for the one in the
      folder of the checkpoint, if there is one.
  """

  checkpoint_path: str
  config: network.Network | None = None
  vocabulary: vocabularies.Vocabulary | str | None = None


@dataclasses.dataclass(frozen=True)
class Candidate:
  """What is known of one model of a pair without its weights.

  Attributes:
    path: Folder of the checkpoint.
    model: Checkpoint and network; None if they cannot be read.
    config_source: Source of the network; empty if it cannot be read.
    vocabulary: The vocabulary; None if none was given or it cannot be read.
    is_assumed: Whether the vocabulary is only assumed to be the model's.
    problems: Reasons why the model cannot be used in any pair.
  """

  path: str
  model: models.ModelSource | None = None
  config_source: str = ''
  vocabulary: vocabularies.Vocabulary | None = None
  is_assumed: bool = False
  problems: tuple[str, ...] = ()

  @property
  def config(self) -> network.Network | None:
    return self.model and self.model.config

  def with_problem(self, problem: object) -> 'Candidate':
    return dataclasses.replace(self, problems=(*self.problems, str(problem)))


def read_pair(
    target: Given,
    draft: Given,
    *,
    dtype: jnp.dtype = jnp.float32,
) -> tuple[Candidate, Candidate]:
  """Read a target and a draft model, without their weights.

  Whatever cannot be read or does not fit is among the problems of a candidate.
  A draft model without a vocabulary gets the target's, marked as assumed.
  Models are to be decoded in `dtype`, where no network is given.
  """
  names = pairing.TARGET_PATH, pairing.DRAFT_PATH
  given = target, draft
  found = [_read(*each, dtype) for each in zip(names, given, strict=True)]
  others = [each.model for each in reversed(found)]
  for i, (name, other) in enumerate(zip(names, others, strict=True)):
    if found[i].model is not None:
      try:
        pairing.check_network(name, found[i].model, other)
      except checkpoints.CheckpointError as error:
        found[i] = found[i].with_problem(error)
  read_target, read_draft = map(_add_vocabulary, found, given)
  if read_draft.vocabulary is None and not read_draft.problems:
    read_draft = dataclasses.replace(
        read_draft, vocabulary=read_target.vocabulary, is_assumed=True
    )
  return read_target, read_draft


def _read(path_name: str, given: Given, dtype: jnp.dtype) -> Candidate:
  """Open a checkpoint and read its network, if none is given."""
  path, config = given.checkpoint_path, given.config
  try:
    checkpoint = pairing.open_checkpoint(path_name, path)
    with pairing.naming(path_name):
      stated = checkpoint.network(dtype)
  except checkpoints.CheckpointError as error:
    return Candidate(path).with_problem(error)
  source = FROM_PARAMETERS
  if config is not None:
    source = pairing.CONFIGS[path_name]
  elif checkpoint.layout is checkpoints.Layout.HUGGING_FACE:
    source = 'config.json'
  return Candidate(
      path, models.ModelSource(checkpoint, config or stated), source
  )


def find_vocabulary(checkpoint_path: str) -> str | None:
  """Return the folder of a checkpoint if it holds a vocabulary, or None."""
  folder = user_paths.expand(checkpoint_path)
  files = (folder / name for name in vocabularies.NAMES)
  return checkpoint_path if any(file.is_file() for file in files) else None


def _add_vocabulary(candidate: Candidate, given: Given) -> Candidate:
  vocabulary = given.vocabulary or find_vocabulary(given.checkpoint_path)
  if isinstance(vocabulary, str):
    try:
      vocabulary = vocabularies.load(vocabulary)
    except vocabularies.VocabularyError as error:
      return candidate.with_problem(error)
  if vocabulary and candidate.config:
    vocabulary = vocabulary.within(candidate.config.vocab_size)
  return dataclasses.replace(candidate, vocabulary=vocabulary)
