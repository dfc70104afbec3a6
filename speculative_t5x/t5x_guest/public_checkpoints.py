# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes and steps of the public T5 checkpoints, for T5X's jobs.

T5X's gin files list the sizes. Flan-T5 and the LM-adapted T5 1.1 have the sizes
of T5 1.1.
"""

import dataclasses

from t5x.examples.t5 import network

from speculative_t5x.loading.files import public_t5
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published

_SIZES_1_0 = {
    'small': dict(emb_dim=512, num_heads=8, num_layers=6, mlp_dim=2048),
    'base': dict(emb_dim=768, num_heads=12, num_layers=12, mlp_dim=3072),
    'large': dict(emb_dim=1024, num_heads=16, num_layers=24, mlp_dim=4096),
    '3B': dict(
        emb_dim=1024, num_heads=32, num_layers=24, mlp_dim=16384, head_dim=128
    ),
    '11B': dict(
        emb_dim=1024, num_heads=128, num_layers=24, mlp_dim=65536, head_dim=128
    ),
}


def fill_in(config: network.T5Config, name: str) -> network.T5Config:
  """Replace sizes that are None by those of a public checkpoint.

  Sizes that another gin file or a flag sets stay as they are. The name is a key
  of `public_t5.STEPS`, e.g. 't5_1_1_xxl', 'flan_t5_xl' or 't5_11B'.
  """
  public = _config(name)
  return config.replace(
      **{
          field.name: getattr(public, field.name)
          for field in dataclasses.fields(config)
          if getattr(config, field.name) is None
      }
  )


def path(name: str) -> str:
  """Return the path of a public checkpoint; for `name` see `fill_in`."""
  _step(name)
  return public_t5.folder(name)


def total_steps(name: str, steps: int) -> int:
  """Return the last of a fine-tuning's steps, which follow the checkpoint's.

  T5X's setting of relative steps would train for as many again after each
  interruption.
  """
  return _step(name) + steps


def loss_normalizing_factor(given: float | None) -> float:
  """Return what T5X divides a sum of losses by: the factor given, if one is.

  By default it is that of T5's pre-training by Mesh TensorFlow, 2,048 sequences
  of 114 target tokens. T5X's default is a sum without a factor, too large a
  gradient for T5's rate.
  """
  return 2048 * 114 if given is None else given


def _config(name: str) -> t5.T5Config:
  _step(name)
  family, _, size = name.rpartition('_')
  if family != 't5':
    return t5_published.make_config(size)
  sizes = dict(_SIZES_1_0[size])
  num_layers = sizes.pop('num_layers')
  return t5.T5Config(
      vocab_size=t5_published.VOCAB_SIZE,
      num_encoder_layers=num_layers,
      num_decoder_layers=num_layers,
      mlp_activations=('relu',),
      logits_via_embedding=True,
      **sizes,
  )


def _step(name: str) -> int:
  if name not in public_t5.STEPS:
    raise ValueError(
        f'There is no public checkpoint {name!r}. Choose one of'
        f' {", ".join(public_t5.STEPS)}.'
    )
  return public_t5.STEPS[name]
