# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes as T5X's eval and infer jobs do. Needs T5X."""

import argparse
from collections.abc import Callable
import functools

import jax
import numpy as np
import seqio
from t5x import partitioning
from t5x import utils
import tensorflow as tf

from benchmarks import cases
from speculative_t5x import t5x_guest
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research import t5x_sampler
from speculative_t5x.tasks import examples

# Batches per call of T5X's function, which starts all before it reads one. On
# CPU JAX lets 32 be under way. Of 200, turns of 7 s were at random seen to wait
# in the start of one until 10.24 s were over, and turns of 19 s until 20.48.
_UNDER_WAY = 25


def decode_in_t5x(
    case: cases.Case,
    options: argparse.Namespace,
    batch: int,
    decode_fn: Callable,
    num_decodes: int = 1,
) -> Callable[[], list[cases.Tokens]]:
  """Return a decode function of T5X as T5X's jobs call it, on all inputs."""
  vocabulary = seqio.PassThroughVocabulary(
      case.target.config.vocab_size, eos_id=case.target.config.special_ids.end
  )
  model = t5x_guest.SpeculativeModel(
      module=t5x_sampler.make_module(case.target.config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=decode_fn,
      drafter=model_drafting.DraftModel(options.draft),
      gamma=options.gamma,
  )
  partitioner = partitioning.PjitPartitioner(
      num_partitions=1,
      logical_axis_rules=partitioning.standard_logical_axis_rules(),
  )
  shape = batch, cases.LENGTH
  initializer = utils.TrainStateInitializer(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes=dict.fromkeys(
          ('encoder_input_tokens', 'decoder_input_tokens'), shape
      ),
      partitioner=partitioner,
  )
  restorer = functools.partial(t5x_guest.PairRestorer, model=model)
  path = str(options.target)
  state, _ = utils.create_checkpoint_manager_and_restore(
      initializer,
      partitioner,
      utils.RestoreCheckpointConfig(path, checkpoint_manager_cls=restorer),
      path,
      None,
      use_orbax=True,
  )
  infer = utils.get_infer_fn(
      functools.partial(
          model.predict_batch_with_aux, num_decodes=num_decodes
      ),
      batch,
      initializer.train_state_axes,
      partitioner,
  )

  def decode() -> list[cases.Tokens]:
    size = batch * _UNDER_WAY
    parts = np.split(case.inputs, range(size, len(case.inputs), size))
    return [tokens for part in parts for tokens in decode_part(part)]

  def decode_part(inputs: np.ndarray) -> list[cases.Tokens]:
    features = {
        'encoder_input_tokens': inputs,
        'decoder_input_tokens': np.zeros_like(inputs),
        examples.EXAMPLE_ID: np.arange(len(inputs), dtype=np.int32),
    }
    dataset = tf.data.Dataset.from_tensor_slices(features).enumerate()
    found, _ = infer(dataset, state, jax.random.PRNGKey(0))
    return [cases.until_end(tokens) for _, tokens in found]

  return decode
