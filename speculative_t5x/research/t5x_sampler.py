# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own model and its `temperature_sample`, with weights loaded here.

It is what speculative decoding is compared with in T5X: T5X's network, cache
and loop. Needs T5X.
"""

from collections.abc import Callable
import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import seqio
from t5x import decoding
from t5x import models
from t5x import version as t5x_version
from t5x.examples.t5 import network

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import report
from speculative_t5x.decoder import token_decoder
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling as sampling_lib


def version() -> str:
  """Return T5X's version with its commit, as all commits share a version."""
  commit = provenance.commit_of(pathlib.Path(t5x_version.__file__).parent)
  return f'{t5x_version.__version__} {commit or ""}'.strip()


def make_module(config: t5.T5Config) -> network.Transformer:
  """Return T5X's network of the same sizes."""
  names = [field.name for field in dataclasses.fields(network.T5Config)]
  known = {n: getattr(config, n) for n in names if hasattr(config, n)}
  return network.Transformer(network.T5Config(**known))


def make_model(
    config: t5.T5Config, decode_fn: Callable
) -> models.EncoderDecoderModel:
  """Return T5X's model of a network, without parameters."""
  vocabulary = seqio.PassThroughVocabulary(
      config.vocab_size, eos_id=config.special_ids.end
  )
  return models.EncoderDecoderModel(
      module=make_module(config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=decode_fn,
  )


def temperature_sample(sampling: sampling_lib.Sampling) -> Callable:
  """Return T5X's function of this name with its settings."""
  return functools.partial(
      decoding.temperature_sample,
      temperature=sampling.temperature,
      topk=sampling.top_k,
      topp=sampling.top_p,
  )


def reference(decoder: token_decoder.TokenDecoder) -> walltimes.Reference:
  """Return T5X's sampler with the weights of a decoder's target.

  The target is a T5 with an encoder, on one device. There is one program per
  sampling, whose settings, Python's numbers, T5X has as constants.
  """
  target, ids = decoder.target, decoder.target_model.special_ids
  # A decoder whose outputs may not end decodes to the last position.
  end = -1 if ids.end in ids.forbidden else ids.end
  # Weights may be read or copied here: only once one is decoded with them.
  params = functools.cache(
      lambda: t5_preparation.separate(target.config, target.params)
  )

  @functools.cache
  def way(sampling: sampling_lib.Sampling) -> whole_batches.Way | None:
    # T5X has neither min-p nor typical sampling, and refuses top-k with top-p.
    has_both = sampling.top_k and sampling.top_p
    if sampling.min_p or sampling.typical_p or has_both:
      return None
    model = make_model(target.config, temperature_sample(sampling))
    length = decoder.options.max_tokens
    jitted = jax.jit(functools.partial(_decode, model, length, end))

    def decode(examples: input_batch.InputBatch) -> report.Report:
      with decoder.scope():
        return jitted(params(), examples.replace(hints=None))

    return decode

  return walltimes.Reference('t5x.decoding.temperature_sample', version(), way)


def _decode(
    model: models.EncoderDecoderModel,
    length: int,
    end: int,
    params: contracts.Params,
    examples: input_batch.InputBatch,
) -> report.Report:
  tokens = examples.inputs
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
          jax.random.PRNGKey(examples.seed), examples.example_ids[0]
      ),
      {'eos_id': end, 'max_decode_steps': examples.limits},
  )
  is_end = sequences == end
  num_tokens = jnp.where(
      jnp.any(is_end, axis=1), jnp.argmax(is_end, axis=1) + 1, examples.limits
  )
  # A row without a limit, which only fills the batch, gets a token too.
  num_tokens = jnp.minimum(num_tokens, examples.limits)
  num_steps = jnp.max(num_tokens)
  is_token = jnp.arange(length) < num_tokens[:, None]
  return report.Report(
      has_ended=jnp.ones(num_tokens.shape, bool),
      sequences=jnp.where(is_token, sequences, 0),
      num_tokens=num_tokens,
      log_probs=aux['scores'],
      num_calls=num_tokens,
      work=loop.Work(num_steps, jnp.zeros((), jnp.int32), num_steps[None]),
  )
