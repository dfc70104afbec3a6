# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A trained pair that comes with the package: bulletins, English to German.

`MODEL_CARD.md` beside this file says how it was made and what it is worth.
"""

import pathlib

import jax.numpy as jnp

from speculative_t5x import loading
from speculative_t5x import pair as pair_lib
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins

_FOLDER = pathlib.Path(__file__).parent
MAX_LENGTH = 96  # tokens, of inputs and of outputs


def target_checkpoint() -> str:
  """Folder of the target's checkpoint."""
  return str(_FOLDER / 'target')


def draft_checkpoint() -> str:
  """Folder of the draft's checkpoint."""
  return str(_FOLDER / 'draft')


def target_config(dtype: jnp.dtype = jnp.float32) -> t5.T5Config:
  """Sizes of the target: a shallow encoder and a deep decoder."""
  return t5.T5Config(
      vocab_size=2048,
      emb_dim=384,
      num_heads=6,
      head_dim=64,
      num_encoder_layers=1,
      num_decoder_layers=4,
      mlp_dim=640,
      dtype=dtype,
  )


def draft_config(dtype: jnp.dtype = jnp.float32) -> t5.T5Config:
  """Sizes of the draft, at most a tenth of the target's."""
  return t5.T5Config(
      vocab_size=2048,
      emb_dim=128,
      num_heads=2,
      head_dim=64,
      num_encoder_layers=1,
      num_decoder_layers=1,
      mlp_dim=256,
      dtype=dtype,
  )


def load_pair(gamma: int = 5, **options) -> pair_lib.Pair:
  """Loads the pair, ready to decode bulletins.

  Args:
    gamma: guesses a block, at least 1.
    **options: of `pair.Pair`.
  """
  lengths = {'inputs_length': MAX_LENGTH, 'targets_length': MAX_LENGTH}
  return pair_lib.Pair(
      loading.load_model(target_config(), target_checkpoint()),
      loading.load_model(draft_config(), draft_checkpoint()),
      loading.load_vocabulary(bulletins.VOCABULARY_FILE),
      gamma=gamma,
      **(lengths | options),
  )
