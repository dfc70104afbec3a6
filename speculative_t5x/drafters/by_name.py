# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts for T5 1.1 by name, for pairs whose weights are not at hand.

small                    T5 1.1 small as a draft model; likewise other sizes
shared_encoder_2_small   a decoder of 2 layers with the widths of T5 1.1
                         small, on the output of the target's encoder
early_exit_6             the first 6 decoder layers of the target
"""

from collections.abc import Callable
import dataclasses
import re

from speculative_t5x import loading
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import early_exit
from speculative_t5x.drafters import shared_encoder
from speculative_t5x.drafters import source
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_published

_SHARED_ENCODER = re.compile(r'shared_encoder_(\d+)_([a-z]+)')
_EARLY_EXIT = re.compile(r'early_exit_(\d+)')
_SHORT = re.compile(r'(.+)_short_(\d+)')

# Makes a model of a config, with random weights or with none.
MakeModel = Callable[[t5.T5Config], loading.Model]


@dataclasses.dataclass(frozen=True)
class NamedDraft:
  """A draft for one target.

  Attributes:
    name: see above.
    network: what makes a draft token; its parameters may be the target's.
    is_own: whether it has parameters and a cache of its own.
  """

  name: str
  network: t5.T5Config
  is_own: bool = True

  @property
  def kind(self) -> str:
    """Kind of drafter in a run record."""
    if not self.is_own:
      return early_exit.KIND
    has_encoder = self.network.num_encoder_layers > 0
    return draft_model.KIND if has_encoder else shared_encoder.KIND

  def load(
      self, target: loading.Model, make_model: MakeModel
  ) -> source.LoadedDrafter:
    """Returns the drafter.

    Args:
      target: of the config that the draft was found for.
      make_model: called for a network of its own.
    """
    if not self.is_own:
      return early_exit.of_config(
          target.config, self.network.num_decoder_layers
      )
    module = draft_model if self.kind == draft_model.KIND else shared_encoder
    return module.from_model(make_model(self.network))


def network_name(name: str) -> str:
  """Returns the name of a network: T5 1.1's sizes have a prefix."""
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
    network = early_exit.network_config(target, int(found[1]))
    return NamedDraft(name, network, is_own=False)
  if found := _SHORT.fullmatch(name):
    return _shorten(name, find(found[1], target), int(found[2]))
  if found := _SHARED_ENCODER.fullmatch(name):
    return NamedDraft(name, _decoder(target, int(found[1]), found[2]))
  if name not in t5_published.SIZES:
    raise ValueError(
        f'There is no draft {name!r}. Choose one of'
        f' {", ".join(t5_published.SIZES)}, early_exit_<layers>, or'
        ' shared_encoder_<layers>_<size>, e.g. shared_encoder_2_small; or'
        ' add _short_<tokens> to all but early_exit.'
    )
  return NamedDraft(name, t5_published.make_config(name, target.dtype))


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
  vocab_size = draft.network.vocab_size
  if not draft.is_own or not 2 <= head_size <= vocab_size:
    raise ValueError(
        f'There is no draft {name!r}: early exit has the head of the target,'
        f' and a short head has 2 to {vocab_size} tokens.'
    )
  network = dataclasses.replace(draft.network, head_size=head_size)
  return NamedDraft(name, network)
