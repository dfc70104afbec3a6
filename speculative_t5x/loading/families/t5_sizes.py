# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Infers a network's sizes from the names and shapes of its parameters."""

from collections.abc import Mapping
from typing import Any

import jax

from speculative_t5x.networks import t5

# Activations of T5 1.0 and T5 1.1 by the number of input projections.
USUAL_ACTIVATIONS = {1: ('relu',), 2: ('gelu', 'linear')}


class SizesError(ValueError):
  """The parameters are not T5's, or their layers are scanned."""


def read_config(
    specs: Mapping[str, jax.ShapeDtypeStruct], *, dtype: Any
) -> t5.T5Config:
  """Returns the config of the network that the parameters belong to.

  The activations are those of the T5 version with the same number of input
  projections, because shapes do not determine them. Not all shapes are checked;
  `checkpoints.check_shapes` does that.

  Args:
    specs: shapes by T5X's names, e.g. `decoder/layers_0/mlp/wo/kernel`.
    dtype: dtype of decoding.
  Raises:
    SizesError: if a needed parameter is missing or has unexpected sizes, or if
      the layers are scanned.
  """
  _check_unrolled(specs)
  shape = lambda name: _shape(specs, name)
  vocab_size, emb_dim = shape('token_embedder/embedding')
  layer = 'decoder/layers_0'
  inputs = [n for n in specs if n.startswith(f'{layer}/mlp/wi')]
  if len(inputs) not in USUAL_ACTIVATIONS:
    raise SizesError(
        f'{layer}/mlp has {len(inputs)} input projections; T5 has 1 or 2. Pass'
        ' another checkpoint.'
    )
  num_heads = shape('decoder/relpos_bias/rel_embedding')[0]
  joined = shape(f'{layer}/self_attention/query/kernel')[1]
  if joined % num_heads:
    raise SizesError(
        f'{layer}/self_attention/query/kernel has {joined} columns, which is'
        f' not a multiple of the {num_heads} heads of'
        ' decoder/relpos_bias/rel_embedding. Pass another checkpoint.'
    )
  num_encoder_layers = _num_layers(specs, 'encoder')
  read = shape(f'{layer}/encoder_decoder_attention/key/kernel')[0]
  is_own_width = num_encoder_layers > 0 or read == emb_dim
  return t5.T5Config(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      num_encoder_layers=num_encoder_layers,
      num_decoder_layers=_num_layers(specs, 'decoder'),
      head_dim=joined // num_heads,
      mlp_dim=shape(inputs[0])[1],
      mlp_activations=USUAL_ACTIVATIONS[len(inputs)],
      encoder_dim=None if is_own_width else read,
      logits_via_embedding='decoder/logits_dense/kernel' not in specs,
      dtype=dtype,
  )


def _check_unrolled(specs: Mapping[str, jax.ShapeDtypeStruct]) -> None:
  scanned = [
      n for n in specs if n.startswith(('encoder/encoder/', 'decoder/decoder/'))
  ]
  if scanned:
    raise SizesError(
        f'The layers are scanned: {scanned[0]} holds all of them in one array.'
        ' Convert the checkpoint to one array per layer (scan_layers=False).'
    )


def _shape(
    specs: Mapping[str, jax.ShapeDtypeStruct], name: str
) -> tuple[int, ...]:
  spec = specs.get(name)
  if spec is None or len(spec.shape) != 2:
    found = 'is missing' if spec is None else f'has shape {spec.shape}'
    raise SizesError(
        f'The parameter {name} {found}, so this is not a T5 encoder-decoder'
        " under T5X's names. Pass another checkpoint."
    )
  return spec.shape


def _num_layers(specs: Mapping[str, jax.ShapeDtypeStruct], stack: str) -> int:
  prefix = f'{stack}/layers_'
  return len({n.split('/')[1] for n in specs if n.startswith(prefix)})
