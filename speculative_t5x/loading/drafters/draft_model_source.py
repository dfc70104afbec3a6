# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft models, read from checkpoints."""

from collections.abc import Callable
import dataclasses
from typing import ClassVar

from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import errors
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

KIND = 'model'  # in a run record


@dataclasses.dataclass(frozen=True)
class FromCheckpoint:
  """A draft model that is read from a checkpoint: see `source.Source`.

  Attributes:
    checkpoint_path: A checkpoint of any layout that `checkpoints` reads.
    config: Its network; None for the one that the checkpoint states, in the
      dtype of the target.
    vocabulary_file: Its own vocabulary, to be compared with the target's; None
      if both are known to be the same.
    model_parallel: Whether its parameters are partitioned along the model axis
      of the mesh, as the target's are; each device holds all of them otherwise.
    short_vocabulary: Output folder of the make-table job, from whose counts the
      most frequent tokens are taken; only these are drafted. None for all.
    short_vocabulary_size: How many, the end of sequence included.
  """

  checkpoint_path: checkpoints.Path
  config: network.Network | None = None
  vocabulary_file: str | None = None
  model_parallel: bool = False
  short_vocabulary: checkpoints.Path | None = None
  short_vocabulary_size: int = 1024

  def __post_init__(self):
    ranges.check_settings(
        ranges.COUNT, short_vocabulary_size=self.short_vocabulary_size
    )

  is_decoder: ClassVar[bool] = False  # alone, on another network's encoder

  def find(
      self,
      target: models.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], source.Drafting]:
    if vocabulary is not None and self.vocabulary_file is not None:
      draft = vocabularies.load(self.vocabulary_file)
      said = f'The draft model has {self.vocabulary_file}'
      with errors.prefixed(said, vocabularies.VocabularyError):
        vocabularies.check_same(vocabulary, draft)
    is_partitioned = self.model_parallel
    found = models.find_model(
        pairing.open_checkpoint(pairing.DRAFT_PATH, self.checkpoint_path),
        self.config,
        dtype=target.config.dtype,
        mesh=target.mesh,
        rules=(
            sharding.MODEL_PARALLEL if is_partitioned else sharding.REPLICATED
        ),
        is_decoder=self.is_decoder,
    )
    if found.checkpoint.special_ids is None:  # not stored: of one family
      found = dataclasses.replace(found, special_ids=target.special_ids)
    if vocabulary is not None:
      models.fit_vocabulary(vocabulary, target, (found,))
    pairing.check_networks(target, found)
    if self.is_decoder:
      pairing.check_width(target.config, found.config)
    source.check_special_ids(found.special_ids, target.special_ids)
    if self.short_vocabulary is None:
      return source.Found(lambda: self._drafting(found.load()), (found,))
    counts = token_counts.load(self.short_vocabulary)
    counts.check_fits(
        self.short_vocabulary,
        found.config.vocab_size,
        found.special_ids.end,
        vocabulary,
    )
    ids = counts.most_frequent(self.short_vocabulary_size)

    def load() -> source.Drafting:
      loaded = self._drafting(models.shorten_head(found.load(), ids))
      description = dataclasses.replace(
          loaded.description, table=str(self.short_vocabulary)
      )
      return dataclasses.replace(loaded, description=description)

    return source.Found(load, (found,))  # its head is whole while it is read

  def _drafting(self, draft: models.Model) -> source.Drafting:
    return from_model(draft)


def from_model(draft: models.Model) -> source.Drafting:
  """Return the drafter that decodes with a loaded model."""
  # No parameters in the closure: it would keep them where they lie.
  config, special_ids, rules = draft.config, draft.special_ids, draft.rules

  def make(
      target: network.NetworkModel, max_draft_tokens: int
  ) -> draft_model.DraftModel:
    return draft_model.DraftModel(
        # Ids that the target forbids are not worth drafting.
        model=dataclasses.replace(
            target, network=config, special_ids=special_ids
        ),
        max_draft_tokens=max_draft_tokens,
        vocab_size=target.vocab_size,
        rules=rules,
    )

  on_mesh = draft.mesh is not None and rules != sharding.REPLICATED
  return source.Drafting(
      make,
      descriptions.DrafterDescription(
          kind=KIND,
          **dataclasses.asdict(draft.describe()),
          model_parallel=on_mesh,
          short_vocabulary=getattr(draft.config, 'head_size', None),
      ),
      params=draft.params,
      axes=config.axes() if on_mesh else None,
      models=(draft,),
      mesh=draft.mesh,
  )
