# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tiny target and draft model as T5X's own networks, with formula weights."""

import dataclasses

from flax import core as flax_core
import jax.numpy as jnp
import seqio
from t5x import adafactor
from t5x import decoding
from t5x import models
from t5x import optimizers
from t5x import partitioning
from t5x import utils
from t5x.examples.t5 import network

from speculative_t5x import t5x_guest
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from tests import tiny

LENGTH = 12
T5_1_0 = {'mlp_activations': ('relu',), 'logits_via_embedding': True}
VOCABULARY = seqio.PassThroughVocabulary(size=64, eos_id=1)
OPTIMIZER = optimizers.sgd(0.1)
SHAPES = {
    'encoder_input_tokens': (2, 9),
    'decoder_input_tokens': (2, LENGTH),
}


def transformer(config: t5.T5Config) -> network.Transformer:
  """Return T5X's network of the same sizes."""
  names = {field.name for field in dataclasses.fields(network.T5Config)}
  sizes = {k: v for k, v in vars(config).items() if k in names}
  return network.Transformer(network.T5Config(**sizes))


def configs(**overrides) -> tuple[t5.T5Config, t5.T5Config]:
  """Return sizes of the target and of a smaller draft model."""
  target = tiny.config(**overrides)
  draft = tiny.config(num_heads=3, num_decoder_layers=1, **overrides)
  return target, draft


def params(noise: float = 0.5, **overrides) -> flax_core.FrozenDict:
  """Return parameters of both models, nested as in T5X."""
  target, draft = configs(**overrides)
  return flax_core.freeze(
      {
          'target': tiny.params(target),
          'draft': tiny.params(draft, noise=noise),
      }
  )


def modules(**overrides) -> tuple[network.Transformer, network.Transformer]:
  """Return the target and the draft model."""
  return tuple(map(transformer, configs(**overrides)))


class DraftOfParams:
  """The choice of the draft model of `params`, without a checkpoint."""

  def find(self, target):
    draft = tiny.model(configs()[1], noise=0.5)
    draft = dataclasses.replace(draft, special_ids=target.special_ids)
    return model_drafting.of_model(draft)


def state(model: t5x_guest.SpeculativeModel) -> flax_core.FrozenDict:
  """Return T5X's parameters of a model: the target's and the drafter's."""
  target = tiny.params(configs()[0])
  return flax_core.freeze({'target': target, 'draft': model.draft_params})


def of_target(decode_fn=decoding.temperature_sample):
  """Return T5X's own model of the target alone."""
  return models.EncoderDecoderModel(
      modules()[0], VOCABULARY, VOCABULARY, OPTIMIZER, decode_fn=decode_fn
  )


def model(decode_fn=t5x_guest.speculative_sample, **kwargs):
  """Return the pair as a T5X model."""
  arguments = dict(
      module=modules()[0],
      drafter=DraftOfParams(),
      input_vocabulary=VOCABULARY,
      output_vocabulary=VOCABULARY,
      optimizer_def=OPTIMIZER,
      decode_fn=decode_fn,
      gamma=3,
  )
  return t5x_guest.SpeculativeModel(**(arguments | kwargs))


def distillation(
    *, pair=None, optimizer_def=None, is_model_parallel=False, **kwargs
) -> t5x_guest.DistillationModel:
  """Return the pair as a T5X model that distils the draft."""
  target, draft = pair or modules()
  arguments = dict(
      module=target,
      input_vocabulary=VOCABULARY,
      output_vocabulary=VOCABULARY,
      optimizer_def=optimizer_def or factored_adafactor(),
      drafter=t5x_guest.DraftModule(draft, is_model_parallel=is_model_parallel),
      gamma=3,
  )
  return t5x_guest.DistillationModel(**(arguments | kwargs))


def factored_adafactor() -> adafactor.Adafactor:
  """Return T5X's optimizer, which factors as small parameters as these."""
  return adafactor.Adafactor(
      decay_rate=0.8,
      min_dim_size_to_factor=8,
      logical_factor_rules=adafactor.standard_logical_factor_rules(),
  )


def partitioner() -> partitioning.PjitPartitioner:
  """Return T5X's partitioner of one device."""
  return partitioning.PjitPartitioner(
      num_partitions=1,
      logical_axis_rules=partitioning.standard_logical_axis_rules(),
  )


def initializer(
    model, kind=utils.TrainStateInitializer, optimizer_def=None, **kwargs
) -> utils.TrainStateInitializer:
  """Return what makes or shapes the state of a model in T5X's jobs."""
  return kind(
      optimizer_def=optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes=SHAPES,
      partitioner=partitioner(),
      **kwargs,
  )


def restore(model, config: utils.RestoreCheckpointConfig, use_orbax=True):
  """Return the state that T5X's eval and infer jobs restore."""
  state, _ = utils.create_checkpoint_manager_and_restore(
      initializer(model),
      partitioner(),
      config,
      config.path,
      None,
      use_orbax=use_orbax,
  )
  return state


def batch(rows: int, first: int = 0) -> dict[str, jnp.ndarray]:
  """Return features of `rows` examples from number `first` on."""
  tokens = tiny.t5x_tokens(first + rows, 9)[first:]
  targets = tiny.t5x_tokens(first + rows, LENGTH)[first:]
  return {
      'encoder_input_tokens': tokens,
      'decoder_input_tokens': jnp.pad(targets[:, :-1], ((0, 0), (1, 0))),
      'decoder_target_tokens': targets,
      'decoder_loss_weights': (targets > 0).astype(jnp.int32),
      'example_id': jnp.arange(first, first + rows, dtype=jnp.int32),
  }
