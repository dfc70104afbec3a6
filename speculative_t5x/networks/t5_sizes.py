# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network's sizes, as the names and shapes of its parameters tell them."""

from collections.abc import Mapping
from typing import Any

import jax

from speculative_t5x.networks import t5

# What T5 1.0 and T5 1.1 have; the shapes tell the number alone.
_USUAL_ACTIVATIONS = {1: ('relu',), 2: ('gelu', 'linear')}


class SizesError(ValueError):
  """Parameters that are no T5's, or not laid out layer by layer."""


def read_config(
    specs: Mapping[str, jax.ShapeDtypeStruct], *, dtype: Any
) -> t5.T5Config:
  """The network that parameters are of.

  Args:
    specs: by T5X's names, e.g. `decoder/layers_0/mlp/wo/kernel`.
    dtype: to decode in.
  Returns:
    Sizes that the named parameters have, and the activations that T5 has with
    so many projections, which no shape tells. Whether the other parameters fit
    them too is for `checkpoints.check_shapes` to say.
  Raises:
    SizesError: if one of them is missing, or if the layers are scanned.
  """
  _check_unrolled(specs)
  shape = lambda name: _shape(specs, name)
  vocab_size, emb_dim = shape('token_embedder/embedding')
  layer = 'decoder/layers_0'
  inputs = [n for n in specs if n.startswith(f'{layer}/mlp/wi')]
  if len(inputs) not in _USUAL_ACTIVATIONS:
    raise SizesError(
        f'{layer}/mlp has {len(inputs)} input projections; T5 has 1 or 2.'
    )
  num_heads = shape('decoder/relpos_bias/rel_embedding')[0]
  joined = shape(f'{layer}/self_attention/query/kernel')[1]
  if joined % num_heads:
    raise SizesError(
        f'{layer}/self_attention/query/kernel has {joined} columns, which are'
        f' not whole heads: decoder/relpos_bias/rel_embedding has {num_heads}.'
        ' Pass another checkpoint.'
    )
  return t5.T5Config(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      num_encoder_layers=_num_layers(specs, 'encoder'),
      num_decoder_layers=_num_layers(specs, 'decoder'),
      head_dim=joined // num_heads,
      mlp_dim=shape(inputs[0])[1],
      mlp_activations=_USUAL_ACTIVATIONS[len(inputs)],
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
        ' Convert the checkpoint to one array a layer (scan_layers=False).'
    )


def _shape(
    specs: Mapping[str, jax.ShapeDtypeStruct], name: str
) -> tuple[int, ...]:
  spec = specs.get(name)
  if spec is None or len(spec.shape) != 2:
    found = 'is missing' if spec is None else f'has shape {spec.shape}'
    raise SizesError(
        f'The parameter {name} {found}, so this is no T5 with an encoder and a'
        " decoder under T5X's names. Pass another checkpoint."
    )
  return spec.shape


def _num_layers(specs: Mapping[str, jax.ShapeDtypeStruct], stack: str) -> int:
  prefix = f'{stack}/layers_'
  return len({n.split('/')[1] for n in specs if n.startswith(prefix)})
