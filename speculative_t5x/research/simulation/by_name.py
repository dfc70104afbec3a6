# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts for T5 1.1 by name, for pairs whose weights are not at hand.

small                    T5 1.1 small as a draft model; likewise other sizes
shared_encoder_2_small   a decoder of 2 layers with the widths of T5 1.1
                         small, on the output of the target's encoder
feature_head_2_small     the same as a head on the target's last features
block_head_2_small       the same as a head that drafts up to 16 tokens per
                         call, with a recurrence of width 64 over them
early_exit_6             the first 6 decoder layers of the target
"""

from collections.abc import Callable
import dataclasses
import re

from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published

_NAME = re.compile(
    r'early_exit_(?P<exit>\d+)'
    r'|((?P<reads>shared_encoder|feature_head|block_head)_(?P<layers>[1-9]\d*)_)?'
    r'(?P<size>[a-z]+)'
)


def network_name(name: str) -> str:
  """Return the name of a draft in records: T5 1.1's sizes have a prefix."""
  return f't5_1_1_{name}' if name in t5_published.SIZES else name


def make_config(name: str, target: t5.T5Config) -> t5.T5Config:
  """Return the network of a draft, see above, in the target's dtype.

  Raises:
    ValueError: for an unknown name, or layers that the target does not have.
  """
  match = _NAME.fullmatch(name)
  if match and match['exit']:
    return target.first_layers(int(match['exit'])).decoder_alone()
  if match is None or match['size'] not in t5_published.SIZES:
    raise ValueError(
        f'There is no draft {name!r}. Choose one of'
        f' {", ".join(t5_published.SIZES)}, early_exit_<layers>,'
        ' shared_encoder_<layers>_<size>, feature_head_<layers>_<size> or'
        ' block_head_<layers>_<size>, e.g. shared_encoder_2_small.'
    )
  config = t5_published.make_config(match['size'], target.dtype)
  if match['layers'] is None:
    return config
  is_head = match['reads'] == model_drafting.FEATURE_HEAD
  is_block = match['reads'] == model_drafting.BLOCK_HEAD
  return dataclasses.replace(
      config,
      num_encoder_layers=0,
      num_decoder_layers=int(match['layers']),
      encoder_dim=target.emb_dim,
      feature_dim=target.last_width if is_head else None,
      num_masks=15 if is_block else 0,
      recurrence_dim=64 if is_block else None,
  )


def load(
    name: str,
    target: models.Model,
    make_model: Callable[[t5.T5Config], models.Model],
) -> drafting.Drafting:
  """Return the drafter of a name, see above, for a target.

  The target may be without weights; `make_model` makes a model of a config,
  with random weights or with none.
  """
  config = make_config(name, target.config)
  if name.startswith(exit_drafting.KIND):
    return exit_drafting.EarlyExit(config.num_decoder_layers).find(target)
  drafter = model_drafting.of_model(make_model(config))
  description = dataclasses.replace(
      drafter.description, name=network_name(name)
  )
  return dataclasses.replace(drafter, description=description)
