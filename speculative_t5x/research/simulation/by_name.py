# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts for T5 1.1 by name, for pairs whose weights are not at hand.

small                    T5 1.1 small as a draft model; likewise other sizes
shared_encoder_2_small   a decoder of 2 layers with the widths of T5 1.1
                         small, on the output of the target's encoder
early_exit_6             the first 6 decoder layers of the target
bigram, unigram          a table for the target's vocabulary, as large as one
                         of the make-table job

A draft of a network whose name ends in _short_1024 has a head of 1,024 tokens.
"""

from collections.abc import Callable
import dataclasses
import re
from typing import Protocol

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import tables
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.loading.drafters import shared_encoder_source
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.drafters import table_source
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published

_SHARED_ENCODER = re.compile(r'shared_encoder_(\d+)_([a-z]+)')
_EARLY_EXIT = re.compile(r'early_exit_(\d+)')
_SHORT = re.compile(r'(.+)_short_(\d+)')

# Makes a model of a config, with random weights or with none.
MakeModel = Callable[[t5.T5Config], models.Model]
# Makes a table of given shapes, with random values or with none.
MakeTable = Callable[[tables.Table], tables.Table]


class NamedDraft(Protocol):
  """A draft for one target."""

  def describe(self) -> descriptions.DrafterDescription:
    """Returns what a run record says of it."""

  def num_bytes(self, workload: memory.Workload) -> memory.DeviceBytes:
    """Returns the bytes that it needs per device."""

  def load(
      self,
      target: models.Model,
      make_model: MakeModel,
      make_table: MakeTable,
  ) -> source.Drafting:
    """Returns the drafter.

    Args:
      target: of the config that the draft was found for.
      make_model: called for a network of its own.
      make_table: called for a table.
    """


@dataclasses.dataclass(frozen=True)
class NamedNetwork:
  """A `NamedDraft` that is a network.

  Attributes:
    name: see above.
    config: of what makes a draft token; its parameters may be the target's.
    is_own: whether it has parameters and a cache of its own.
  """

  name: str
  config: t5.T5Config
  is_own: bool = True

  def describe(self) -> descriptions.DrafterDescription:
    """See `NamedDraft.describe`."""
    return descriptions.DrafterDescription(
        kind=self._kind,
        name=network_name(self.name),
        num_params=models.count_params(self.config),
        dtype=jnp.dtype(self.config.dtype).name,
        model_parallel=False if self.is_own else None,
        short_vocabulary=self.config.head_size,
    )

  def num_bytes(self, workload: memory.Workload) -> memory.DeviceBytes:
    """See `NamedDraft.num_bytes`."""
    own = self.config if self.is_own else None
    return memory.draft_bytes(own, workload, self.config.vocab_size)

  @property
  def _kind(self) -> str:
    if not self.is_own:
      return early_exit_source.KIND
    has_encoder = self.config.num_encoder_layers > 0
    return (
        draft_model_source.KIND if has_encoder else shared_encoder_source.KIND
    )

  def load(
      self,
      target: models.Model,
      make_model: MakeModel,
      make_table: MakeTable,
  ) -> source.Drafting:
    """See `NamedDraft.load`."""
    if not self.is_own:
      return early_exit_source.of_network(
          target.config, self.config.num_decoder_layers
      )
    is_whole = self._kind == draft_model_source.KIND
    module = draft_model_source if is_whole else shared_encoder_source
    return module.from_model(make_model(self.config))


@dataclasses.dataclass(frozen=True)
class NamedTable:
  """A `NamedDraft` that is a table, as large as one of the make-table job.

  Attributes:
    order: 1 for unigrams, 2 for bigrams.
    vocab_size: width of the target's logits.
  """

  order: int
  vocab_size: int

  def describe(self) -> descriptions.DrafterDescription:
    """See `NamedDraft.describe`."""
    kind = table_source.KINDS[self.order]
    num_params = sum(x.size for x in jax.tree.leaves(self._shapes))
    return descriptions.DrafterDescription(kind, kind, num_params=num_params)

  def num_bytes(self, workload: memory.Workload) -> memory.DeviceBytes:
    """See `NamedDraft.num_bytes`."""
    held = [x.size * x.dtype.itemsize for x in jax.tree.leaves(self._shapes)]
    others = memory.draft_bytes(None, workload, self.vocab_size)
    return dataclasses.replace(others, params=sum(held))

  def load(
      self,
      target: models.Model,
      make_model: MakeModel,
      make_table: MakeTable,
  ) -> source.Drafting:
    """See `NamedDraft.load`."""
    return source.Drafting(
        tables.make_ngram,
        self.describe(),
        params=make_table(self._shapes),
        mesh=target.mesh,
    )

  @property
  def _shapes(self) -> tables.Table:
    return table_source.abstract_table(self.order, self.vocab_size)


def network_name(name: str) -> str:
  """Returns the name of a draft in records: T5 1.1's sizes have a prefix."""
  is_size = name.partition('_')[0] in t5_published.SIZES
  return f't5_1_1_{name}' if is_size else name


def find(name: str, target: t5.T5Config) -> NamedDraft:
  """Returns the draft of a name for a target.

  Args:
    name: see above.
    target: of T5 1.1; the draft takes its dtype.
  Raises:
    ValueError: for an unknown name, or layers that a target or a decoder cannot
      have.
  """
  if found := _EARLY_EXIT.fullmatch(name):
    network = target.first_layers(int(found[1])).without_encoder()
    return NamedNetwork(name, network, is_own=False)
  if found := _SHORT.fullmatch(name):
    return _shorten(name, find(found[1], target), int(found[2]))
  if found := _SHARED_ENCODER.fullmatch(name):
    return NamedNetwork(name, _decoder(target, int(found[1]), found[2]))
  for order, kind in table_source.KINDS.items():
    if name == kind:
      return NamedTable(order, target.vocab_size)
  if name not in t5_published.SIZES:
    raise ValueError(
        f'There is no draft {name!r}. Choose one of'
        f' {", ".join([*t5_published.SIZES, *table_source.KINDS.values()])},'
        ' early_exit_<layers>, or shared_encoder_<layers>_<size>, e.g.'
        ' shared_encoder_2_small; or add _short_<tokens> to a size or to'
        ' shared_encoder.'
    )
  return NamedNetwork(name, t5_published.make_config(name, target.dtype))


def _decoder(target: t5.T5Config, num_layers: int, size: str) -> t5.T5Config:
  if num_layers < 1:
    raise ValueError(
        'A draft that shares the encoder needs at least 1 decoder layer. Choose'
        f' shared_encoder_1_{size}.'
    )
  config = t5_published.make_config(size, target.dtype)
  return dataclasses.replace(
      config,
      num_encoder_layers=0,
      num_decoder_layers=num_layers,
      encoder_dim=target.emb_dim,
  )


def _shorten(name: str, draft: NamedDraft, head_size: int) -> NamedDraft:
  """Returns a draft with a head of some tokens."""
  if not isinstance(draft, NamedNetwork) or not draft.is_own:
    raise ValueError(
        f'There is no draft {name!r}: a table has no head, and early exit has'
        ' that of the target. Leave out _short.'
    )
  vocab_size = draft.config.vocab_size
  if not 2 <= head_size <= vocab_size:
    raise ValueError(
        f'There is no draft {name!r}: a short head has 2 to {vocab_size}'
        ' tokens.'
    )
  config = dataclasses.replace(draft.config, head_size=head_size)
  return NamedNetwork(name, config)
