# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is trained: a network and its batches."""

import dataclasses

import numpy as np

from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.training import batches

DTYPES = ('float32', 'bfloat16')
LEARNING_RATE = 0.001
_FIRST_ID = 3  # those before are padding, end of sequence and unknown
_NUM_BATCHES = 4  # that are trained on in a circle


@dataclasses.dataclass(frozen=True)
class Case:
  """A network and its batches.

  Attributes:
    size: Name of a size of T5 1.1.
    layers: Number of layers of the encoder, and of the decoder; None for all.
    batch_size: Examples per step.
    inputs_length: Tokens of each input.
    targets_length: Tokens of each target.
    dtype: Type of activations; parameters are float32.
    dropout_rate: Rate of dropout, in [0, 1).
    steps: Steps that are timed together.
  """

  size: str
  layers: int | None
  batch_size: int
  inputs_length: int
  targets_length: int
  dtype: str
  dropout_rate: float
  steps: int

  @property
  def config(self) -> t5.T5Config:
    """The network."""
    config = t5_published.make_config(self.size, self.dtype)
    config = dataclasses.replace(config, dropout_rate=self.dropout_rate)
    if self.layers is None:
      return config
    return dataclasses.replace(
        config,
        num_encoder_layers=self.layers,
        num_decoder_layers=self.layers,
    )

  @property
  def num_target_tokens(self) -> int:
    """Of the steps that are timed together."""
    return self.steps * self.batch_size * self.targets_length

  def examples(self) -> batches.Examples:
    """Return some batches of random tokens, one example per row."""
    rng = np.random.default_rng(0)
    num_examples = _NUM_BATCHES * self.batch_size
    draw = lambda length: rng.integers(
        _FIRST_ID, self.config.vocab_size, (num_examples, length), np.int32
    )
    return batches.Examples(draw(self.inputs_length), draw(self.targets_length))

  def indices(self) -> np.ndarray:
    """Return the examples of each step, [steps, batch_size] int32."""
    numbers = np.arange(self.steps * self.batch_size, dtype=np.int32)
    numbers %= _NUM_BATCHES * self.batch_size
    return numbers.reshape(self.steps, self.batch_size)
