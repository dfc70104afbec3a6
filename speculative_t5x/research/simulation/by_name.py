# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts for T5 1.1 by name, for pairs whose weights are not at hand.

small                    T5 1.1 small as a draft model; likewise other sizes
shared_encoder_2_small   a decoder of 2 layers with the widths of T5 1.1
                         small, on the output of the target's encoder
feature_head_2_small     the same as a head on the target's last features
early_exit_6             the first 6 decoder layers of the target
bigram, unigram          a table for the target's vocabulary, as large as one
                         of the make-table job

A draft of a network whose name ends in _short_1024 has a head of 1,024 tokens.
"""

from collections.abc import Callable
import dataclasses
import re

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import tables
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published

_NETWORK = re.compile(
    r'early_exit_(?P<exit>\d+)'
    r'|((?P<reads>shared_encoder|feature_head)_(?P<layers>[1-9]\d*)_)?'
    r'(?P<size>[a-z]+)'
    r'(_short_(?P<short>\d+))?'
)

# Makes a model of a config, with random weights or with none.
MakeModel = Callable[[t5.T5Config], models.Model]
# Makes a table of given shapes, with random values or with none.
MakeTable = Callable[[tables.Table], tables.Table]


@dataclasses.dataclass(frozen=True)
class NamedDraft:
  """A draft for one target: a network, or a table."""

  description: descriptions.DrafterDescription
  config: t5.T5Config | None = None  # of what makes a draft token
  table: tables.Table | None = None  # shapes of one of the make-table job

  @property
  def is_own(self) -> bool:
    """True for a network with parameters and a cache of its own."""
    is_shared = self.description.kind == exit_drafting.KIND
    return self.config is not None and not is_shared

  def num_bytes(self, workload: memory.Workload) -> memory.DeviceBytes:
    """Return the bytes that it needs per device."""
    if self.table is None:
      own = self.config if self.is_own else None
      return memory.draft_bytes(own, workload, self.config.vocab_size)
    found = memory.draft_bytes(None, workload, len(self.table.unigram))
    held = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(self.table))
    return dataclasses.replace(found, params=held)

  def load(
      self,
      target: models.Model,
      make_model: MakeModel,
      make_table: MakeTable,
  ) -> drafting.Drafting:
    """Return the drafter for a target of the config that it was found for."""
    if self.table is not None:
      return drafting.Drafting(
          tables.make_ngram,
          self.description,
          params=make_table(self.table),
          mesh=target.mesh,
      )
    if not self.is_own:
      num_layers = self.config.num_decoder_layers
      return exit_drafting.EarlyExit(num_layers).find(target)
    return model_drafting.of_model(make_model(self.config))


def network_name(name: str) -> str:
  """Return the name of a draft in records: T5 1.1's sizes have a prefix."""
  is_size = name.partition('_')[0] in t5_published.SIZES
  return f't5_1_1_{name}' if is_size else name


def find(name: str, target: t5.T5Config) -> NamedDraft:
  """Return the draft of a name, see above, in the target's dtype.

  Raises:
    ValueError: for an unknown name, or layers that a target or a decoder cannot
      have.
  """
  orders = {kind: order for order, kind in ngram_drafting.KINDS.items()}
  if name in orders:
    shapes = ngram_drafting.abstract_table(orders[name], target.vocab_size)
    count = sum(x.size for x in jax.tree.leaves(shapes))
    described = descriptions.DrafterDescription(name, name, num_params=count)
    return NamedDraft(described, table=shapes)
  kind, config = _network(name, target)
  described = descriptions.DrafterDescription(
      kind=kind,
      name=network_name(name),
      num_params=models.count_params(
          dataclasses.replace(config, head_size=None)
      ),
      dtype=jnp.dtype(config.dtype).name,
      model_parallel=None if kind == exit_drafting.KIND else False,
      short_vocabulary=config.head_size,
  )
  return NamedDraft(described, config)


def _network(name: str, target: t5.T5Config) -> tuple[str, t5.T5Config]:
  """Return the kind and the config of a draft that is a network."""
  found = _NETWORK.fullmatch(name)
  if found and found['exit']:
    config = target.first_layers(int(found['exit'])).decoder_alone()
    return exit_drafting.KIND, config
  short, most = found and found['short'], t5_published.VOCAB_SIZE
  if (
      found is None
      or found['size'] not in t5_published.SIZES
      or (short and not 2 <= int(short) <= most)
  ):
    raise ValueError(
        f'There is no draft {name!r}. Choose one of'
        f' {", ".join([*t5_published.SIZES, *ngram_drafting.KINDS.values()])},'
        ' early_exit_<layers>, or shared_encoder_<layers>_<size> or'
        ' feature_head_<layers>_<size>, e.g. shared_encoder_2_small; or add'
        f' _short_<tokens> to a size: a short head has 2 to {most} tokens.'
    )
  config = t5_published.make_config(found['size'], target.dtype)
  if short:
    config = dataclasses.replace(config, head_size=int(short))
  if found['layers'] is None:
    return model_drafting.KIND, config
  config = dataclasses.replace(
      config,
      num_encoder_layers=0,
      num_decoder_layers=int(found['layers']),
      encoder_dim=target.emb_dim,
  )
  if found['reads'] == model_drafting.FEATURE_HEAD:
    config = dataclasses.replace(config, feature_dim=target.last_width)
  return found['reads'], config
