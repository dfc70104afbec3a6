# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A trained pair that comes with the package: bulletins, English to German.

`MODEL_CARD.md` beside this file says how it was made and what it is worth.
"""

import pathlib

import jax.numpy as jnp

from speculative_t5x import loading
from speculative_t5x import text_decoder
from speculative_t5x import vocabularies
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins

_FOLDER = pathlib.Path(__file__).parent
MAX_LENGTH = 96  # tokens, of inputs and of outputs


def target_checkpoint() -> str:
  """Returns the folder of the target's checkpoint."""
  return str(_FOLDER / 'target')


def draft_checkpoint() -> str:
  """Returns the folder of the draft model's checkpoint."""
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


def load_decoder(gamma: int = 5, **options) -> text_decoder.TextDecoder:
  """Loads target and draft model, ready to decode bulletins.

  Args:
    gamma: draft tokens per block, at least 1.
    **options: of `text_decoder.TextDecoder`.
  """
  lengths = {'inputs_length': MAX_LENGTH, 'targets_length': MAX_LENGTH}
  draft = loading.load_model(draft_checkpoint(), draft_config())
  return text_decoder.TextDecoder(
      loading.load_model(target_checkpoint(), target_config()),
      draft_model.from_model(draft),
      vocabularies.load(bulletins.VOCABULARY_FILE),
      gamma=gamma,
      **(lengths | options),
  )
