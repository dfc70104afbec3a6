# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small decoders alone, one per set of parts, with random weights."""

import dataclasses
import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import models
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network
from speculative_t5x.networks import rope
from speculative_t5x.networks import t5gemma
from speculative_t5x.speculation import contracts

WINDOW = 8
# Of prompts: around a chunk of 8 tokens and the window, and several windows.
LENGTHS = 1, 2, 7, 8, 9, 27
LENGTH = 20  # of outputs
# All sizes differ, so that none can take the place of another.
_SIZES = dict(
    vocab_size=96,
    emb_dim=24,
    num_layers=3,
    num_heads=4,
    head_dim=10,
    mlp_dim=40,
)
_GLOBAL = decoder_only.LayerKind(None, 1e6, rope.Scaling(8.0))
_LOCAL = decoder_only.LayerKind(WINDOW, 1e4)
CONFIGS = {
    'gpt2': decoder_only.DecoderOnly(
        **_SIZES,
        mlp_activations=('gelu',),
        positions='learned',
        max_positions=128,
        norm='layer',
        norm_eps=1e-5,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        logits_via_embedding=True,
    ),
    'llama': decoder_only.DecoderOnly(
        **_SIZES,
        num_kv_heads=2,
        kinds=[
            decoder_only.LayerKind(None, 5e5, rope.Scaling(8.0, 32, 1.0, 4.0))
        ],
    ),
    'qwen3': decoder_only.DecoderOnly(
        **_SIZES,
        num_kv_heads=2,
        qk_norm=True,
        logits_via_embedding=True,
        kinds=[decoder_only.LayerKind(None, 1e6)],
    ),
    'gemma3': decoder_only.DecoderOnly(
        **_SIZES,
        num_kv_heads=1,
        mlp_activations=('gelu', 'linear'),
        kinds=[_LOCAL, _LOCAL, _GLOBAL],
        norm='rms_plus_one',
        post_norms=True,
        qk_norm=True,
        query_scale=14**-0.5,
        attention_cap=5.0,
        logits_cap=12.0,
        embedding_scale=24**0.5,
        logits_via_embedding=True,
    ),
    't5x': decoder_only.DecoderOnly.of_t5x(
        **_SIZES,
        mlp_activations=('gelu', 'linear'),
        logits_via_embedding=True,
    ),
}
PREFIX = dataclasses.replace(CONFIGS['t5x'], prefix_bidirectional=True)

_GEMMA = dict(
    mlp_activations=('gelu', 'linear'),
    norm='rms_plus_one',
    post_norms=True,
    query_scale=14**-0.5,
    logits_cap=12.0,
    logits_via_embedding=True,
)
_GEMMA_2 = dict(**_GEMMA, attention_cap=5.0)
_WHOLE = decoder_only.LayerKind(None, 1e4)
# Its encoder has other sizes.
T5GEMMA = t5gemma.T5Gemma(
    **_SIZES,
    **_GEMMA_2,
    kinds=[_LOCAL, _WHOLE],
    num_kv_heads=2,
    embedding_scale=24**0.5,
    encoder=config_lib.Stack(
        **_GEMMA_2,
        kinds=[dataclasses.replace(_LOCAL, ahead=WINDOW - 1), _WHOLE],
        vocab_size=96,
        emb_dim=32,
        num_layers=4,
        num_heads=3,
        num_kv_heads=1,
        head_dim=8,
        mlp_dim=28,
        embedding_scale=32**0.5,
    ),
)
_GEMMA_3 = dict(
    **_SIZES,
    **_GEMMA,
    num_kv_heads=2,
    qk_norm=True,
    embedding_scale=24**0.5,
    unscaled_id=90,
)
# Its encoder has one width with its decoder, and may have other layers.
T5GEMMA_2 = t5gemma.T5Gemma(
    **_GEMMA_3,
    kinds=[_LOCAL, _LOCAL, _GLOBAL],
    merged_attention=True,
    shares_embedding=True,
    encoder=config_lib.Stack(
        **_GEMMA_3 | {'num_layers': 4, 'num_heads': 2, 'mlp_dim': 28},
        kinds=[
            dataclasses.replace(_LOCAL, window=WINDOW // 2, ahead=WINDOW // 2),
            _GLOBAL,
        ]
        * 2,
    ),
)
CONFIGS_OF_T5GEMMA = {'t5gemma': T5GEMMA, 't5gemma2': T5GEMMA_2}


def params(config: network.Network, seed: int = 0):
  """Return random parameters, none of them at an initial 0 or 1."""
  leaves, structure = jax.tree.flatten_with_path(
      models.abstract_params(config)
  )
  found = []
  for path, leaf in leaves:
    name = f'{seed}{jax.tree_util.keystr(path)}'
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    kind = path[-1].key
    scale = leaf.shape[0] ** -0.5 if kind == 'kernel' else 0.4
    is_plus_one = getattr(config, 'norm', None) == 'rms_plus_one'
    mean = float(kind == 'scale' and not is_plus_one)
    value = mean + scale * generator.normal(size=leaf.shape)
    found.append(jnp.asarray(value, jnp.float32))
  return jax.tree.unflatten(structure, found)


@functools.cache
def model(name: str, **changes) -> models.Model:
  """Return one ready to decode."""
  config = dataclasses.replace(CONFIGS[name], **changes)
  return models.make_model(config, params(config))


def prompts(lengths=LENGTHS) -> np.ndarray:
  """Return prompts [examples, longest], in which id 0 is a token."""
  rows = np.full((len(lengths), max(lengths)), contracts.NO_TOKEN, np.int32)
  generator = np.random.default_rng(0)
  for row, length in zip(rows, lengths):
    row[:length] = generator.integers(0, 96, length)
    row[length // 2] = 0
  return rows


def outputs() -> np.ndarray:
  """Return an output of each prompt, [examples, LENGTH]."""
  shape = len(LENGTHS), LENGTH
  return np.random.default_rng(1).integers(0, 96, shape, np.int32)


def decode(model, inputs, outputs, block):
  """Return logits of outputs [rows, length], decoded in blocks after inputs."""
  decoder = network.NetworkModel(model.config, model.special_ids)
  params = model.params
  rows, length = outputs.shape
  with jax.default_matmul_precision('highest'):
    started = jax.jit(decoder.start, static_argnums=(2, 3))(
        params, jnp.asarray(inputs), rows, length + block
    )
    step = jax.jit(decoder.decode)
    fed = np.concatenate([started.first_tokens[:, None], outputs], axis=1)
    cache, found = started.cache, []
    for i in range(0, length, block):
      logits, cache = step(
          params,
          started.memory,
          cache,
          jnp.asarray(fed[:, i : i + block]),
          started.offsets + i,
          None,
      )
      found.append(logits)
  return np.concatenate(found, axis=1)
