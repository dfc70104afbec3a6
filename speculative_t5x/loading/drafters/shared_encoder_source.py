# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft decoders on the target's encoder, read from checkpoints."""

import dataclasses

from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network

KIND = 'shared_encoder'  # in a run record


@dataclasses.dataclass(frozen=True)
class FromCheckpoint(draft_model_source.FromCheckpoint):
  """A draft decoder that is read from a checkpoint: see `source.Source`.

  The checkpoint has the parameter tree without `encoder`. The attributes are
  those of `draft_model_source.FromCheckpoint`.
  """

  is_decoder = True

  def _drafting(self, draft: models.Model) -> source.Drafting:
    return from_model(draft)


def from_model(draft: models.Model) -> source.Drafting:
  """Return the drafter that decodes with a loaded decoder."""
  loaded = draft_model_source.from_model(draft)
  make_drafter, config = loaded.make, draft.config

  def make(
      target: network.NetworkModel, max_draft_tokens: int
  ) -> draft_model.DraftModel:
    pairing.check_width(target.network, config)
    drafter = make_drafter(target, max_draft_tokens)
    return dataclasses.replace(drafter, reads_features=True)

  description = dataclasses.replace(loaded.description, kind=KIND)
  return dataclasses.replace(loaded, make=make, description=description)
