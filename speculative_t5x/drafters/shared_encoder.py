# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft decoder of its own on the output of the target's encoder.

It has a few layers and no encoder, so that no input is encoded twice. Its
widths may differ from the target's; its cross-attention projects the target's
encoder output to heads of its own.
"""

import dataclasses

from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import contracts

KIND = "shared_encoder"  # in a run record


@dataclasses.dataclass(frozen=True)
class FromCheckpoint(draft_model.FromCheckpoint):
  """A draft decoder that is read from a checkpoint: see `source.Source`.

  The checkpoint has T5X's parameter tree without `encoder`. The attributes are
  those of `draft_model.FromCheckpoint`.
  """

  def find(
      self,
      target: models.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> source.FoundDrafter:
    """See `source.Source.find`."""
    found = self._find_model(target, vocabulary, is_decoder=True)
    pairing.check_width(target.config, found.config)
    return self._found(found, vocabulary, from_model)


def from_model(draft: models.Model) -> source.LoadedDrafter:
  """Returns the drafter that decodes with a loaded decoder."""
  loaded = draft_model.from_model(draft)

  def make(
      target: t5_model.T5Model, max_draft_tokens: int
  ) -> draft_model.DraftModel:
    pairing.check_width(target.config, draft.config)
    drafter = loaded.make(target, max_draft_tokens)
    decoder = t5_model.T5Decoder(**vars(drafter.model))
    return dataclasses.replace(drafter, model=decoder, read=_read_target)

  description = dataclasses.replace(loaded.description, kind=KIND)
  return dataclasses.replace(loaded, make=make, description=description)


def _read_target(context: contracts.Context) -> t5_model.Encoded:
  """Returns what the target's encoder made of the inputs."""
  return t5_model.Encoded(context.features, context.target.memory.is_input)
