# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains by T5X's trainer, as its train script does."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import seqio
from t5x import adafactor
from t5x import models
from t5x import partitioning
from t5x import trainer as trainer_lib
from t5x import utils

from benchmarks.side_by_side import t5x_ways
from benchmarks.training_throughput import case as case_lib
from speculative_t5x.training import losses


def make_train(case: case_lib.Case) -> Callable[[], None]:
  """Return a function that trains the steps of a case and waits for them."""
  model = _model(case)
  partitioner = partitioning.PjitPartitioner(
      num_partitions=1,
      logical_axis_rules=partitioning.standard_logical_axis_rules(),
  )
  initializer = utils.TrainStateInitializer(
      model.optimizer_def,
      model.get_initial_variables,
      {
          'encoder_input_tokens': (case.batch_size, case.inputs_length),
          'decoder_input_tokens': (case.batch_size, case.targets_length),
      },
      partitioner,
  )
  trainer = trainer_lib.Trainer(
      model=model,
      train_state=initializer.from_scratch(jax.random.PRNGKey(0)),
      partitioner=partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=initializer.train_state_axes,
      rng=jax.random.PRNGKey(1),
      learning_rate_fn=lambda step: jnp.float32(case_lib.LEARNING_RATE),
      num_microbatches=None,
  )
  features = list(_features(case))
  trainer.compile_train(features[0])

  def train() -> None:
    trainer.train(iter(features), case.steps).result()
    jax.block_until_ready(trainer.train_state)

  return train


def _model(case: case_lib.Case) -> models.EncoderDecoderModel:
  vocabulary = seqio.PassThroughVocabulary(case.config.vocab_size, eos_id=1)
  return models.EncoderDecoderModel(
      module=t5x_ways.make_module(case.config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=adafactor.Adafactor(
          decay_rate=0.8,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      z_loss=losses.LossConfig().z_loss,
  )


def _features(case: case_lib.Case) -> Iterator[dict[str, np.ndarray]]:
  """Yield the features of each step."""
  examples = case.examples()
  for indices in case.indices():
    batch = examples.take(indices)
    yield {
        'encoder_input_tokens': batch.inputs,
        'decoder_input_tokens': np.pad(
            batch.targets[:, :-1], ((0, 0), (1, 0))
        ),
        'decoder_target_tokens': batch.targets,
        'decoder_loss_weights': (batch.targets > 0).astype(np.int32),
    }
