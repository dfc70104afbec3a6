# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tiny decoder alone with a draft model, as T5X's own model and as the guest.
"""

import dataclasses
import pathlib

from flax import core as flax_core
import jax
import numpy as np
import seqio
import t5x
from t5x import decoding
from t5x import models
from t5x.examples.decoder_only import network

from speculative_t5x import t5x_guest
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import decoder_only
from tests import tiny_decoders
from tests.t5x_guest import tiny_pair

# It is no package's, and gin finds it by its path alone.
BASE_GIN = str(
    pathlib.Path(t5x.__path__[0]) / 'examples/decoder_only/models/base.gin'
)
LENGTH = 24  # of prompt and output together
END = 31  # which the target often writes
VOCABULARY = seqio.PassThroughVocabulary(size=96, eos_id=END)
CAUSAL, PREFIX = tiny_decoders.CONFIGS['t5x'], tiny_decoders.PREFIX
PARAMS = tiny_decoders.params(CAUSAL)


def module(config: decoder_only.DecoderOnly) -> network.DecoderWrapper:
  """Return T5X's network of the same sizes."""
  names = [x.name for x in dataclasses.fields(network.TransformerConfig)]
  sizes = {x: getattr(config, x) for x in names if hasattr(config, x)}
  return network.DecoderWrapper(network.TransformerConfig(**sizes))


@dataclasses.dataclass(frozen=True)
class DraftOfParams:
  """The choice of a draft model that is often right, without a checkpoint."""

  config: decoder_only.DecoderOnly

  def find(self, target):
    other = tiny_decoders.params(self.config, seed=1)
    params = jax.tree.map(lambda x, y: x + 0.2 * y, PARAMS, other)
    draft = models_lib.make_model(
        self.config, params, special_ids=target.special_ids, merged=False
    )
    return model_drafting.of_model(draft)


def of_target(
    config: decoder_only.DecoderOnly,
    decode_fn=decoding.temperature_sample,
    vocabulary: seqio.Vocabulary = VOCABULARY,
) -> models.DecoderOnlyModel:
  """Return T5X's own model of the target alone."""
  return models.DecoderOnlyModel(
      module(config),
      vocabulary,
      tiny_pair.OPTIMIZER,
      decode_fn=decode_fn,
      inputs_bidirectional_attention=config.prefix_bidirectional,
  )


def model(
    config: decoder_only.DecoderOnly,
    decode_fn=t5x_guest.speculative_sample,
    vocabulary: seqio.Vocabulary = VOCABULARY,
    **kwargs,
) -> t5x_guest.SpeculativeDecoderOnlyModel:
  """Return the pair as a T5X model."""
  arguments = dict(drafter=DraftOfParams(config), gamma=3)
  return t5x_guest.SpeculativeDecoderOnlyModel(
      of_target(config, vocabulary=vocabulary),
      decode_fn=decode_fn,
      **(arguments | kwargs),
  )


def state(model: t5x_guest.SpeculativeDecoderOnlyModel) -> flax_core.FrozenDict:
  """Return T5X's parameters of a model: the target's and the drafter's."""
  params = {'target': PARAMS}
  if model.draft_params:
    params['draft'] = model.draft_params
  return flax_core.freeze(params)


def batch(rows: int, first: int = 0) -> dict[str, np.ndarray]:
  """Return features of `rows` examples from number `first` on.

  Prompts have 1 to LENGTH - 1 tokens, most with an end of sequence within or at
  the end; the targets behind them are not to be read.
  """
  found = {
      name: np.zeros((rows, LENGTH), np.int32)
      for name in (
          'decoder_target_tokens', 'decoder_input_tokens',
          'decoder_causal_attention', 'decoder_loss_weights',
      )
  }  # fmt: skip
  numbers = np.arange(first, first + rows, dtype=np.int32)
  for row, number in enumerate(numbers):
    generator = np.random.default_rng(number)
    size = 1 + (7 * number) % (LENGTH - 1)
    tokens = generator.integers(2, 96, LENGTH)
    if number % 3:
      tokens[size - 1] = END
    if number % 2:
      tokens[size // 2] = END
    found['decoder_target_tokens'][row] = tokens
    found['decoder_input_tokens'][row, 1:] = tokens[:-1]
    found['decoder_causal_attention'][row, : size + 1] = 1
    found['decoder_loss_weights'][row, size:] = 1
  return {**found, 'example_id': numbers}
