# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one check of what a program or a gin file gives as a drafter."""

import os

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import network


def find(
    drafter: drafting.Choice | models.Model | checkpoints.Path,
    target: models.Model | models.ModelSource,
    vocabulary: vocabularies.Vocabulary | None = None,
) -> drafting.Drafting:
  """Return the drafting that is meant, which fits a target.

  Args:
    drafter: A choice of `loading.drafters`, or the draft model or its path.
    target: The target, loaded or not.
    vocabulary: Vocabulary of the target; None if there is none to compare with.
  """
  if isinstance(drafter, str | os.PathLike | models.Model):
    drafter = model_drafting.DraftModel(drafter)
  if isinstance(drafter, type) or not hasattr(drafter, 'find'):
    raise ValueError(
        'A drafter must be the path of a draft model, a loaded model or a'
        ' choice, with parentheses and in gin with @: drafters.Lookup(), or for'
        f" a class of your own drafters.Drafting(<class>, '<name>'). Got"
        f' {drafter!r}.'
    )
  if target.config.reads_features:
    raise checkpoints.CheckpointError(
        'The target has no encoder, so it can only draft for one whose encoder'
        ' it reads. Give an encoder-decoder.'
    )
  found = drafter.find(target, vocabulary)
  # What does not fit is said here, before any weights are read.
  found.drafter(network.NetworkModel(target.config, target.special_ids), 1)
  return found
