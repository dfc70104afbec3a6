# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own model, which decodes by its `temperature_sample`. Needs T5X."""

import dataclasses
import functools

import seqio
from t5x import decoding
from t5x import models
from t5x.examples.t5 import network

from speculative_t5x.networks import t5
from speculative_t5x.speculation import sampling as sampling_lib


def make_model(
    config: t5.T5Config, sampling: sampling_lib.Sampling
) -> models.EncoderDecoderModel:
  """Return T5X's model of a network, without parameters.

  Temperature, top-k and top-p are Python's numbers.
  """
  names = [field.name for field in dataclasses.fields(network.T5Config)]
  known = {n: getattr(config, n) for n in names if hasattr(config, n)}
  vocabulary = seqio.PassThroughVocabulary(
      config.vocab_size, eos_id=config.special_ids.end
  )
  return models.EncoderDecoderModel(
      module=network.Transformer(network.T5Config(**known)),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=functools.partial(
          decoding.temperature_sample,
          temperature=sampling.temperature,
          topk=sampling.top_k,
          topp=sampling.top_p,
      ),
  )
