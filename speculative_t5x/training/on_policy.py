# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples of the draft in training, as texts to train on.

In these texts the draft reads its own errors, as it does when it drafts.

Reference: Agarwal et al. (2024), "On-policy distillation", arXiv:2306.13649.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.drafters import nothing
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.training import distillation
from speculative_t5x.training import steps


@dataclasses.dataclass(frozen=True)
class Settings:
  """Share and period of the draft's own samples."""

  share: float = 0.0  # share of the examples of each batch, in [0, 1]
  # Steps between two draws; it must divide the checkpoint period.
  period: int = 50
  temperature: float = 1.0  # temperature of the samples; 0 for argmax

  def __post_init__(self):
    ranges.check_settings(ranges.RATE, share=self.share)
    ranges.check_settings(ranges.COUNT, period=self.period)
    ranges.check_settings(ranges.COEFFICIENT, temperature=self.temperature)

  def num_per_batch(self, batch_size: int) -> int:
    """Return how many targets of a batch are samples; one at least."""
    return max(round(self.share * batch_size), 1)


class Samples:
  """Draws samples of the draft, which replace targets of examples."""

  def __init__(
      self,
      objective: distillation.Distillation,
      settings: Settings,
      special_ids: contracts.SpecialIds,
      batch_size: int,
      seed: int,
  ):
    """Compile nothing yet.

    As many examples as a step of the training has are decoded at once. The
    share of the settings is above 0.
    """
    self.period = settings.period
    self.num_per_batch = settings.num_per_batch(batch_size)
    self._objective = objective
    self._sampling = sampling_lib.Sampling(settings.temperature)
    self._special_ids = special_ids
    self._batch_size = batch_size
    self._seed = seed
    self._decode = jax.jit(self._decode_batch, static_argnames='length')

  def draw(
      self,
      params: steps.Params,
      inputs: np.ndarray,
      sample_ids: np.ndarray,
      length: int,
  ) -> np.ndarray:
    """Draw a sample for each input, as targets [num_samples, length] int32.

    Inputs are [num_samples, inputs_length] int32, and ids [num_samples] int32.
    A sample depends on its id, its input and the parameters alone.
    """
    # Examples of limit 0 fill the last batch: a batch of another size would
    # compile the loop again.
    limits = np.full(len(inputs), length, np.int32)
    missing = -len(inputs) % self._batch_size
    batched = [
        np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1)).reshape(
            -1, self._batch_size, *x.shape[1:]
        )
        for x in (inputs, sample_ids, limits)
    ]
    decoded = [
        self._decode(self._objective, params, *batch, length=length)
        for batch in zip(*batched, strict=True)
    ]
    return np.concatenate(jax.device_get(decoded))[: len(inputs)]

  def _decode_batch(
      self, objective, params, inputs, sample_ids, limits, *, length
  ) -> jax.Array:
    network = objective.draft
    features = None
    if network.reads_features:
      features = objective.target.features(objective.target_params, inputs)
    # What T5 does not read in a text to train on. Padding of another network
    # may be the end of the task.
    padding, ids = network.special_ids.padding, self._special_ids
    if padding not in ids.ends:
      ids = dataclasses.replace(ids, forbidden=(*ids.forbidden, padding))
    setup = state_lib.Setup(
        network_lib.NetworkModel(network, ids),
        objective.joined(params),
        nothing.NoDrafter(),
        None,
    )
    keys = state_lib.row_keys(self._seed, sample_ids)
    begun = state_lib.begin(
        setup,
        inputs,
        keys,
        limits,
        self._sampling,
        length=length,
        features=features,
    )
    state, _, _ = loop.decode(setup, begun)
    is_token = jnp.arange(length) < state.num_tokens[:, None]
    return jnp.where(is_token, state.sequences, contracts.NO_TOKEN)
