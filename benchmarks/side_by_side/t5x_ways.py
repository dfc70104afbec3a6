# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes with T5X's own sampler, and with this package's samplers in T5X."""

from collections.abc import Callable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import seqio
from t5x import models
from t5x.examples.t5 import network

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import ours
from speculative_t5x import t5x_guest
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import t5x_sampler
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib

GREEDY = {'temperature': 0.0, 'topk': 0}


class Encoded(network.Transformer):
  """T5X's network with given outputs of the encoder.

  Attributes:
    encoded: Outputs of the encoder, [batch, inputs_length, embed].
  """

  encoded: Any = None

  def encode(self, *args, **kwargs):
    return self.encoded


def versions() -> dict[str, str]:
  """Return the version of T5X."""
  return {'t5x': t5x_sampler.version()}


def make_ways(case: cases.Case) -> dict[str, measuring.Way]:
  """Return `temperature_sample` and the decode functions of `t5x_guest`."""
  guest = functools.partial(_guest_way, case)
  ways = {
      't5x': measuring.Way(
          _whole(_t5x_model(case.target), case.target.params),
          _t5x_from_encoded(case.target),
      ),
      'plain_in_t5x': guest(None, t5x_guest.plain_sample),
  }
  if case.assistant:
    ways['speculative_in_t5x'] = guest(
        case.assistant, t5x_guest.speculative_sample
    )
  return ways


def _t5x_model(
    target: cases.Network, kind: Callable = network.Transformer
) -> models.EncoderDecoderModel:
  return t5x_sampler.make_model(target.config, sampling_lib.GREEDY, kind)


def _features(tokens: np.ndarray) -> dict[str, jax.Array]:
  """Return the features that T5X passes to a model for one input."""
  return {
      'encoder_input_tokens': jnp.asarray(tokens)[None],
      'decoder_input_tokens': jnp.zeros((1, cases.LENGTH), jnp.int32),
      'example_id': jnp.zeros((1,), jnp.int32),
  }


def _whole(
    model: models.EncoderDecoderModel, params: contracts.Params
) -> measuring.Start:
  predict = jax.jit(model.predict_batch)

  def start(tokens: np.ndarray) -> measuring.Decode:
    batch = _features(tokens)
    return lambda: np.asarray(predict(params, batch)[0])

  return start


def _t5x_from_encoded(target: cases.Network) -> measuring.Start:
  encode = jax.jit(target.config.encode)

  def decode(params, batch, encoded):
    kind = functools.partial(Encoded, encoded=encoded)
    return _t5x_model(target, kind).predict_batch(params, batch)

  compiled = jax.jit(decode)

  def start(tokens: np.ndarray) -> measuring.Decode:
    batch = _features(tokens)
    tokens = batch['encoder_input_tokens']
    inputs = jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)
    encoded = encode(target.params, inputs)
    return lambda: np.asarray(compiled(target.params, batch, encoded)[0])

  return start


def _guest_way(
    case: cases.Case,
    draft: cases.Network | None,
    decode_fn: Callable,
) -> measuring.Way:
  params = {'target': case.target.params}
  if draft:
    params['draft'] = draft.params
  make_module = t5x_sampler.make_module
  vocabulary = seqio.PassThroughVocabulary(
      case.target.config.vocab_size, eos_id=1
  )
  model = t5x_guest.SpeculativeModel(
      module=make_module(case.target.config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=functools.partial(decode_fn, **GREEDY),
      drafter=t5x_guest.DraftModule(make_module((draft or case.target).config)),
      gamma=case.gamma,
  )
  prepared = [_prepare(network) for network in (case.target, draft)]
  return measuring.Way(
      _whole(model, params), ours.from_encoded(case, *prepared)
  )


def _prepare(network: cases.Network | None) -> cases.Network | None:
  if network is None:
    return None
  return cases.Network(*t5_preparation.prepare(network.config, network.params))
