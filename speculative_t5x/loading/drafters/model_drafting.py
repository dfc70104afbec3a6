# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft models as drafters, and the one check of what is given as a drafter."""

import dataclasses
import os
from typing import TypeVar

from speculative_t5x.drafters import block_head
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import feature_head
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

_Model = TypeVar('_Model', bound=models.Found)

# In a run record.
KIND, SHARED_ENCODER, FEATURE_HEAD = 'model', 'shared_encoder', 'feature_head'
BLOCK_HEAD = 'block_head'


@dataclasses.dataclass(frozen=True)
class DraftModel:
  """A draft model, loaded or by its path: a `drafting.Drafting`.

  Attributes:
    model: A loaded model, or a path. There is a checkpoint of any layout that
      `checkpoints` reads: an encoder-decoder, a decoder that reads the output
      of the target's encoder, or a head on the target's last features. Or there
      is a head that was trained for the target's first layers, or the output of
      the make-table job, whose bigrams then draft: what follows then has no
      meaning.
    config: Its network, or fields to change in the one that the checkpoint
      states; None for that one. It has the dtype of the target.
    vocabulary_file: Its own vocabulary, to be compared with the target's; None
      for the one in its folder, of which pieces alone are compared.
    model_parallel: Whether its parameters are partitioned along the model axis
      of the mesh, as the target's are; each device holds all of them otherwise.
    short_vocabulary: Output folder of the make-table job, from whose counts the
      most frequent tokens are taken; only these are drafted. None for all.
    short_vocabulary_size: How many, the end of sequence included.
  """

  model: models.Model | checkpoints.Path
  config: models.Config = None
  vocabulary_file: str | None = None
  model_parallel: bool = False
  short_vocabulary: checkpoints.Path | None = None
  short_vocabulary_size: int = 1024

  def __post_init__(self):
    ranges.check_settings(
        ranges.COUNT, short_vocabulary_size=self.short_vocabulary_size
    )

  def find(self, target: models.Found) -> drafting.Drafting:
    if isinstance(self.model, models.Model):
      if self.model.checkpoint is not None:
        self._check_vocabulary(target, self.model)
      return of_model(_prompted_as(target, self.model))
    if token_counts.exists(self.model):
      return ngram_drafting.NGrams(self.model).find(target)
    is_parallel = self.model_parallel
    rules = sharding.MODEL_PARALLEL if is_parallel else sharding.REPLICATED
    checkpoint = pairing.open_checkpoint('draft', self.model)
    if exit_drafting.is_head(checkpoint, target.config):
      return exit_drafting.of_head(checkpoint).find(target)
    draft = models.find_model(
        checkpoint,
        pairing.with_masks(self.config, checkpoint)
        or _head_on(target.config, checkpoint),
        dtype=target.config.dtype,
        mesh=target.mesh,
        rules=rules,
    )
    if checkpoint.special_ids is None:  # not stored
      # A T5's decoder on another family has its target's ids but for the start,
      # which is fed to it in training as T5's.
      start = draft.config.special_ids.start
      ids = dataclasses.replace(target.special_ids, start=start)
      draft = dataclasses.replace(draft, special_ids=ids)
    draft = _prompted_as(target, draft)
    self._check_vocabulary(target, draft)
    found = _of(draft)
    if self.short_vocabulary is None:
      load = lambda: of_model(draft.load(is_draft=True))
      return dataclasses.replace(found, read=load)
    table = str(user_paths.expand(self.short_vocabulary))
    counts = token_counts.load(table)
    counts.check_fits(
        table,
        draft.config.vocab_size,
        draft.special_ids.end,
        target.vocabulary,
        target.max_padded_ids,
    )
    ids = counts.most_frequent(self.short_vocabulary_size)
    description = dataclasses.replace(
        found.description, table=table, short_vocabulary=len(ids)
    )

    def read() -> drafting.Drafting:
      loaded = of_model(models.shorten_head(draft.load(is_draft=True), ids))
      return dataclasses.replace(loaded, description=description)

    # Its head is whole while it is read.
    return dataclasses.replace(found, description=description, read=read)

  def _check_vocabulary(
      self, target: models.Found, draft: models.Found
  ) -> None:
    """Compare the vocabularies; a head on its target has none of its own."""
    if draft.config.reads_features or network.is_feature_head(draft.config):
      return
    if self.vocabulary_file is None:
      pairing.check_vocabularies(
          target.checkpoint, draft.checkpoint, target.vocabulary
      )
    elif target.vocabulary is not None:
      own = vocabularies.load(self.vocabulary_file)
      vocabularies.check_same(target.vocabulary, own)


def _prompted_as(target: models.Found, draft: _Model) -> _Model:
  """Return a draft whose decoder begins with what the target's begins with.

  It may be a language that is chosen for the target alone.
  """
  both = target.config, draft.config
  if not all(network.offers(x, *network.PROMPTS_DECODER) for x in both):
    return draft
  config = draft.config.with_decoder_prompt(target.config.decoder_prompt)
  return dataclasses.replace(draft, config=config)


def _head_on(
    target: network.Network, checkpoint: checkpoints.Checkpoint
) -> network.Network | None:
  """Return the network of a head that has the parts of its target.

  None for a checkpoint that states its network, or is of no such head.

  Raises:
    checkpoints.CheckpointError: if it lacks what each head has.
  """
  is_head = t5_preparation.FEATURES in checkpoint.specs
  if not is_head or not network.offers(target, *network.SHOWS_FEATURES):
    return None
  shapes = {name: spec.shape for name, spec in checkpoint.specs.items()}
  try:
    return target.head_of_shapes(shapes)
  except (KeyError, IndexError, ValueError) as error:
    raise checkpoints.CheckpointError(
        f'{checkpoint.source} holds a head on the last features of a target'
        f' ({t5_preparation.FEATURES}), and not all of one ({error}). Copy it'
        ' again, or give its network.'
    ) from error


def of_model(draft: models.Model) -> drafting.Drafting:
  """Return the drafting by a loaded model.

  A model without an encoder reads the output of the target's, and a head the
  last features of its decoder.
  """
  return dataclasses.replace(_of(draft), params=draft.params)


def _of(draft: models.Found) -> drafting.Drafting:
  """Return the drafting by a model, without its parameters."""
  # No parameters in the closure: it would keep them where they lie.
  config, special_ids, rules = draft.config, draft.special_ids, draft.rules
  kind, name = draft_model.ModelDrafter, KIND
  if network.is_block_head(config):
    kind, name = block_head.BlockHead, BLOCK_HEAD
  elif network.is_feature_head(config):
    kind, name = feature_head.HeadDrafter, FEATURE_HEAD
  elif config.reads_features:
    name = SHARED_ENCODER

  def make(target: network.NetworkModel, gamma: int) -> contracts.Drafter:
    pairing.check_features(target.network, config)
    pairing.check_gamma(config, gamma)
    # Without an encoder only ends are special: where a chat's target has more
    # of them than its draft, they are drafted as any token.
    own = special_ids if config.ends_inputs else target.special_ids
    # Ids that the target forbids are not worth drafting.
    own = dataclasses.replace(own, forbidden=target.special_ids.forbidden)
    return kind(
        model=dataclasses.replace(target, network=config, special_ids=own),
        gamma=gamma,
        vocab_size=target.vocab_size,
        rules=rules,
        reads_features=config.reads_features,
        decodes_trees=network.offers(config, *network.DECODES_TREES),
    )

  is_partitioned = draft.mesh is not None and rules != sharding.REPLICATED
  return drafting.Drafting(
      make,
      descriptions.DrafterDescription(
          kind=name,
          **dataclasses.asdict(draft.describe()),
          model_parallel=is_partitioned,
          short_vocabulary=getattr(config, 'head_size', None),
      ),
      models=(draft,),
      axes=config.axes() if is_partitioned else None,
      mesh=draft.mesh,
  )


def find(
    drafter: drafting.Drafting | models.Model | checkpoints.Path,
    target: models.Found,
) -> drafting.Drafting:
  """Return the drafting that is meant, which fits a target.

  A draft model or its path may stand for a drafting. The target, loaded or not,
  has no vocabulary where there is none to compare with.
  """
  if isinstance(drafter, str | os.PathLike | models.Model):
    drafter = DraftModel(drafter)
  if isinstance(drafter, type) or not hasattr(drafter, 'find'):
    raise ValueError(
        'A drafter must be the path of a draft model, a loaded model or a'
        ' drafting, with parentheses and in gin with @: drafters.Lookup(), or'
        f" for a class of your own drafters.Drafting(<class>, '<name>'). Got"
        f' {drafter!r}.'
    )
  if target.config.reads_features:
    raise checkpoints.CheckpointError(
        'The target has no encoder, so it can only draft for one whose encoder'
        ' it reads. Give an encoder-decoder.'
    )
  found = drafter.find(target)
  # What does not fit is said here, before any weights are read.
  if target.vocabulary is not None:
    models.fit_vocabulary(target.vocabulary, target, found.models)
  found.drafter(network.NetworkModel(target.config, target.special_ids), 1)
  return found
