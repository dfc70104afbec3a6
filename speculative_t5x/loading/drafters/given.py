# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The drafter that a program means by a model, a source, or nothing at all."""

from collections.abc import Callable

from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import lookup_source
from speculative_t5x.loading.drafters import source

# What a program may give as a drafter.
Given = source.Drafting | source.Source | models.Model | None


def load(drafter: Given) -> source.Drafting:
  """Return the `source.Drafting` that is meant, for a loaded target.

  Raises:
    ValueError: see `find`.
  """
  return find(drafter, None, None)()


def find(
    drafter: Given,
    target: models.ModelSource | None,
    vocabulary: vocabularies.Vocabulary | None,
) -> Callable[[], source.Drafting]:
  """Return what reads the `source.Drafting` that is meant.

  Args:
    drafter: A loaded model, which drafts; a source; a `source.Drafting`; None
      for lookup in the inputs, in what has been decoded, and in hints.
    target: The target before its weights are read, for the sources that need
      it; None if they are read already.
    vocabulary: Vocabulary of the target; None if there is none to compare with.
  Raises:
    ValueError: for anything else, such as the class of a drafter; if the
      drafter cannot draft for the target.
  """
  if drafter is None:
    drafter = lookup_source.FromContext()
  if isinstance(drafter, source.Drafting):
    return lambda: drafter
  if isinstance(drafter, models.Model):
    return lambda: draft_model_source.from_model(drafter)
  source.check_source(drafter)
  if target is not None:
    return drafter.find(target, vocabulary)
  if not hasattr(drafter, 'load'):
    raise ValueError(
        f'{type(drafter).__name__} looks at the checkpoint of its target, of'
        ' which only the weights are left. Give the path of the target.'
    )
  return drafter.load
