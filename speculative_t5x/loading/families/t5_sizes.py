# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Infers a network's sizes from the names and shapes of its parameters."""

from collections.abc import Mapping
from typing import Any

import jax

from speculative_t5x.networks import t5

# Activations of T5 1.0 and T5 1.1 by the number of input projections.
USUAL_ACTIVATIONS = {1: ('relu',), 2: ('gelu', 'linear')}
# T5X's scalable_t5 stacks the layers in one array, whose name then has the
# stack's twice.
_SCANNED = 'encoder/encoder/', 'decoder/decoder/'


class SizesError(ValueError):
  """The parameters are not T5's, or their layers are scanned."""


def read_config(
    specs: Mapping[str, jax.ShapeDtypeStruct], *, dtype: Any
) -> t5.T5Config:
  """Returns the config of the network that the parameters belong to.

  The activations are those of the T5 version with the same number of input
  projections, because shapes do not determine them.

  Args:
    specs: shapes by T5X's names, e.g. `decoder/layers_0/mlp/wo/kernel`.
    dtype: dtype of decoding.
  Raises:
    SizesError: if a needed parameter is missing or has unexpected sizes, or if
      the layers are scanned.
  """
  if scanned := [x for x in specs if x.startswith(_SCANNED)]:
    raise SizesError(
        f'The layers are scanned: {scanned[0]} holds all of them in one array.'
        ' Convert the checkpoint to one array per layer (scan_layers=False).'
    )
  layer = 'decoder/layers_0'
  inputs = [x for x in specs if x.startswith(f'{layer}/mlp/wi')]
  names = (
      'token_embedder/embedding',
      'decoder/relpos_bias/rel_embedding',
      f'{layer}/self_attention/query/kernel',
      f'{layer}/encoder_decoder_attention/key/kernel',
      *inputs,
  )
  # Not all shapes are checked; `checkpoints.check_shapes` does that.
  shapes = [specs[name].shape if name in specs else () for name in names]
  wrong = [x for x, shape in zip(names, shapes) if len(shape) != 2]
  if not wrong and shapes[2][1] % shapes[1][0]:
    wrong = names[1:3]  # of a fraction of a head
  if len(inputs) not in USUAL_ACTIVATIONS:
    wrong = [f'{layer}/mlp']
  if wrong:
    raise SizesError(
        f'{" and ".join(wrong)} is missing or of another shape, so this is not'
        " a T5 encoder-decoder or decoder under T5X's names. Pass another"
        ' checkpoint.'
    )
  (vocab_size, emb_dim), (num_heads, _), (_, joined), (read, _) = shapes[:4]
  num_encoder_layers = _num_layers(specs, 'encoder')
  is_own_width = num_encoder_layers > 0 or read == emb_dim
  return t5.T5Config(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      num_encoder_layers=num_encoder_layers,
      num_decoder_layers=_num_layers(specs, 'decoder'),
      head_dim=joined // num_heads,
      mlp_dim=shapes[4][1],
      mlp_activations=USUAL_ACTIVATIONS[len(inputs)],
      encoder_dim=None if is_own_width else read,
      logits_via_embedding='decoder/logits_dense/kernel' not in specs,
      dtype=dtype,
  )


def _num_layers(specs: Mapping[str, jax.ShapeDtypeStruct], stack: str) -> int:
  prefix = f'{stack}/layers_'
  return len({x.split('/')[1] for x in specs if x.startswith(prefix)})
