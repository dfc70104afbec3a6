# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own `temperature_sample`, as a way to decode this package's requests.

It is what speculative decoding is compared with in T5X: T5X's network, cache
and loop, with the weights of a model that is loaded here.
"""

from collections.abc import Callable
import functools
import pathlib

import jax
import jax.numpy as jnp
from t5x import models as t5x_models
from t5x import version

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import t5x_sampler
from speculative_t5x.research.measurement import provenance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib


class TemperatureSampling:
  """T5X's sampler with the weights of a decoder's target.

  Attributes:
    name: Its name in run records.
    version: T5X's version with its commit, as all commits share a version.
  """

  name = 't5x.decoding.temperature_sample'

  def __init__(self, decoder: token_decoder.TokenDecoder):
    """Prepare; copies the kernels that are merged in the target.

    The target is a T5 with an encoder, on one device.
    """
    commit = provenance.commit_of(pathlib.Path(version.__file__).parent)
    self.version = f'{version.__version__} {commit or ""}'.strip()
    self._decoder = decoder
    self._ways = {}

  def way(
      self, sampling: sampling_lib.Sampling
  ) -> Callable[[requests_lib.Request], token_decoder.Decoded] | None:
    """Return a function that decodes requests; None if T5X cannot.

    One program per sampling, whose settings, Python's numbers, T5X has as
    constants.
    """
    # T5X has neither min-p nor typical sampling, and refuses top-k with top-p.
    has_both = sampling.top_k and sampling.top_p
    if sampling.min_p or sampling.typical_p or has_both:
      return None
    if sampling not in self._ways:
      self._ways[sampling] = self._make(sampling)
    return self._ways[sampling]

  @functools.cached_property
  def _params(self) -> contracts.Params:
    target = self._decoder.target
    return t5_preparation.separate(target.config, target.params)

  def _make(self, sampling: sampling_lib.Sampling) -> Callable:
    decoder = self._decoder
    ids = decoder.target_model.special_ids
    # A decoder whose outputs may not end decodes to the last position.
    end = -1 if ids.end in decoder.target_model.forbidden else ids.end
    model = t5x_sampler.make_model(decoder.target.config, sampling)
    length = decoder.options.max_tokens
    jitted = jax.jit(functools.partial(_decode, model, length, end))

    def decode(request: requests_lib.Request) -> token_decoder.Decoded:
      with decoder.scope():
        return jitted(self._params, request.replace(hints=None))

    return decode


def _decode(
    model: t5x_models.EncoderDecoderModel,
    length: int,
    end: int,
    params: contracts.Params,
    request: requests_lib.Request,
) -> token_decoder.Decoded:
  """Decode a request by T5X and count what it wrote."""
  tokens = request.inputs
  rows = tokens.shape[0]
  batch = {
      # T5X takes id 0 for no token.
      'encoder_input_tokens': jnp.where(
          tokens == contracts.NO_TOKEN, 0, tokens
      ),
      'decoder_input_tokens': jnp.zeros((rows, length), jnp.int32),
  }
  sequences, aux = model.predict_batch_with_aux(
      params,
      batch,
      jax.random.fold_in(
          jax.random.PRNGKey(request.seed), request.example_ids[0]
      ),
      {'eos_id': end, 'max_decode_steps': request.limits},
  )
  is_end = sequences == end
  num_tokens = jnp.where(
      jnp.any(is_end, axis=1), jnp.argmax(is_end, axis=1) + 1, request.limits
  )
  # A row without a limit, which only fills the batch, gets a token too.
  num_tokens = jnp.minimum(num_tokens, request.limits)
  num_steps = jnp.max(num_tokens)
  is_token = jnp.arange(length) < num_tokens[:, None]
  return token_decoder.Decoded(
      sequences=jnp.where(is_token, sequences, 0),
      num_tokens=num_tokens,
      log_probs=aux['scores'],
      num_calls=num_tokens,
      num_steps=num_steps,
      num_draft_steps=jnp.zeros((), jnp.int32),
      calls_by_width=num_steps[None],
      statistics=None,
  )
