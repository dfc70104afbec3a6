# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A T5 small enough for any test, with weights from a formula.

No random number generator is used, so the weights are the same under every
version of NumPy and JAX, and what T5X computes for them can be stored (see
`networks/golden`).
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import report
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import transformer
from speculative_t5x.networks import transformer_network
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling

# Spreads logits, so that near ties are rare.
_LOGITS_SCALE = 2.0


def config(**overrides) -> t5.T5Config:
  """Return sizes of the tiny network, with T5Config's fields to override."""
  sizes = dict(
      vocab_size=64,
      emb_dim=32,
      num_heads=2,
      num_encoder_layers=2,
      num_decoder_layers=2,
      head_dim=16,
      mlp_dim=48,
  )
  return t5.T5Config(**(sizes | overrides))


def params(config: t5.T5Config, *, noise: float = 0.0) -> Any:
  """Return T5X's parameter tree, float32, at an initializer's scale.

  The noise is the share of other weights: the acceptance rate of a draft model
  is high for values near 0, and low for 1. Norms are not all ones.
  """
  return jax.tree.map(lambda x: x, _params(config, noise))  # dicts of its own


@functools.cache
def _params(config: t5.T5Config, noise: float) -> Any:
  leaves, structure = jax.tree.flatten_with_path(
      models.abstract_params(config)
  )
  values, start = [], 1
  for path, leaf in leaves:
    names = [part.key for part in path]
    value = _noise_like(start, leaf.shape)
    if noise:
      other = _noise_like(start + 10_000_019, leaf.shape)
      value = (value + noise * other) / math.hypot(1.0, noise)
    mean, scale = _mean_and_scale(names, leaf.shape, config)
    values.append(jnp.asarray(mean + scale * value, jnp.float32))
    start += leaf.size
  return jax.tree.unflatten(structure, values)


def model(config: t5.T5Config, *, noise: float = 0.0) -> models.Model:
  """Return the tiny network ready to decode."""
  made = _model(config, noise)
  own = jax.tree.map(lambda x: x, made.params)
  return dataclasses.replace(made, params=own)


@functools.cache
def _model(config: t5.T5Config, noise: float) -> models.Model:
  return models.make_model(config, params(config, noise=noise))


def drafter(model: models.Model, gamma: int) -> draft_model.ModelDrafter:
  """Return a drafter with a tiny network, for a target of its vocabulary."""
  config = model.config
  return draft_model.ModelDrafter(
      network_lib.NetworkModel(config, t5.SPECIAL_IDS), gamma, config.vocab_size
  )


def decoder(
    config: t5.T5Config,
    *,
    gamma: int,
    length: int,
    noise: float = 0.15,
    **options: Any,
) -> token_decoder.TokenDecoder:
  """Return a decoder of the tiny network with a draft model of its sizes."""
  draft = model(config, noise=noise)
  return token_decoder.TokenDecoder(
      model(config), draft, gamma=gamma, max_tokens=length, **options
  )


def early_exit(config: t5.T5Config, exit_layer: int) -> drafting.Drafting:
  """Return the drafting by the first layers of a target."""
  target = models.Found(config)
  return exit_drafting.EarlyExit(exit_layer).find(target)


def encoder_tokens(rows: int, length: int, vocab_size: int = 64) -> jax.Array:
  """Return inputs [rows, length] int32 of several lengths, with an end."""
  row, index = np.ogrid[:rows, :length]
  tokens = 2 + (7 * index + 11 * row * (index + 1) + row) % (vocab_size - 2)
  num_real = length - (3 * row) % max(length - 1, 1)
  tokens = np.where(index == num_real - 1, 1, tokens)
  tokens = np.where(index < num_real, tokens, contracts.NO_TOKEN)
  return jnp.asarray(tokens, jnp.int32)


def t5x_tokens(rows: int, length: int) -> jax.Array:
  """Return `encoder_tokens` as T5X has them, with id 0 for no token."""
  return jnp.maximum(encoder_tokens(rows, length), 0)


def t5x_inputs(tokens: np.ndarray) -> jax.Array:
  """Return T5X's inputs, in which id 0 is no token, as a request has them."""
  return jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)


def encode(
    config: t5.T5Config, params: contracts.Params, tokens: jax.Array
) -> tuple[jax.Array, transformer_network.Memory]:
  """Return the features of inputs and the memory of the decoder."""
  started = _start(config, params, tokens)
  return started.features, started.memory


@functools.partial(jax.jit, static_argnums=0)
def _start(config, params, tokens):
  return config.start(params, tokens, tokens.shape[0], 1)


def teacher_forced(
    config: t5.T5Config, params: Any, inputs: jax.Array, sequences: jax.Array
) -> jax.Array:
  """Return logits of every token of sequences, [rows, length, vocab]."""
  with jax.default_matmul_precision('highest'):
    return _forward(config, params, inputs, sequences)


@functools.partial(jax.jit, static_argnums=0)
def _forward(config, params, inputs, sequences):
  fed = jnp.pad(sequences, ((0, 0), (1, 0)))[:, :-1]
  return Transformer(config).apply(
      {'params': params},
      inputs,
      fed,
      jnp.ones_like(fed),
      enable_dropout=False,
  )


class Transformer(transformer.Transformer):
  """The network's modules, called with T5X's arguments."""

  def __call__(self, inputs, fed, targets, *, enable_dropout=True):
    """Return teacher-forced logits [batch, length, vocab]; id 0 is no token."""
    return self.score(
        None,
        inputs,
        fed,
        is_input=inputs > 0,
        is_target=targets > 0,
        enable_dropout=enable_dropout,
    )[0]


def truncate(model: models.Model, num_layers: int) -> models.Model:
  """Return a model cut after some decoder layers."""
  config = model.config.first_layers(num_layers)
  kept = models.abstract_params(config)['decoder']
  decoder = {name: model.params['decoder'][name] for name in kept}
  return dataclasses.replace(
      model, config=config, params={**model.params, 'decoder': decoder}
  )


def decoded(pair, batch: input_batch.InputBatch) -> report.Report:
  """Return what a pair decodes of a batch, as NumPy arrays."""
  return jax.device_get(whole_batches.decode(pair, batch))


def batch(
    tokens: jax.Array | np.ndarray,
    length: int,
    temperature: float = 0.0,
    seed: int = 0,
) -> input_batch.InputBatch:
  """Return a batch for outputs of a length, with example ids from 0 on."""
  setting = sampling.Sampling(temperature)
  count = len(tokens)
  return input_batch.InputBatch(
      t5x_inputs(jnp.asarray(tokens)),
      jnp.arange(count, dtype=jnp.int32),
      jnp.full((count,), length, jnp.int32),
      jnp.int32(seed),
      setting,
      setting,
  )


def _noise_like(start: int, shape: tuple[int, ...]) -> np.ndarray:
  """Return numbers without visible order, with mean 0 and variance 1."""
  index = np.arange(start, start + math.prod(shape), dtype=np.float64)
  fraction = np.modf(np.sin(12.9898 * index) * 43758.5453)[0] % 1.0
  return (math.sqrt(12.0) * (fraction - 0.5)).reshape(shape)


def _mean_and_scale(
    names: list[str], shape: tuple[int, ...], config: t5.T5Config
) -> tuple[float, float]:
  if names[-1] == 'scale':
    return 1.0, 0.2
  if names[-1] in ('embedding', 'rel_embedding'):
    return 0.0, 1.0
  scale = 1.0 / math.sqrt(shape[0])
  if names[-2] == 'query':
    scale /= math.sqrt(config.head_dim)
  if names[-2] == 'logits_dense':
    scale *= _LOGITS_SCALE
  return 0.0, scale


def batches(
    rows: Any,
    batch_size: int | None = None,
    *,
    length: int,
    example_ids: Any = None,
    hints: Any = None,
    **options: Any,
) -> list[input_batch.InputBatch]:
  """Return the batches of rows of token ids, of which -1 is none.

  Each has `batch_size` of them, or all; ids are by default 0, 1, and so on.
  """
  count = len(rows)
  settings = request_lib.Settings(max_tokens=length, **options)
  ids = range(count) if example_ids is None else example_ids
  hints = [()] * count if hints is None else hints
  return list(
      input_batch.whole_batches(
          [
              settings.request(row, example_id, hints=own)
              for row, example_id, own in zip(rows, ids, hints, strict=True)
          ],
          settings,
          size=batch_size or count,
          inputs_length=max(len(row) for row in rows),
      )
  )
