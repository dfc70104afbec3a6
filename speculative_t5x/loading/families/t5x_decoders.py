# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder alone of T5X's examples: a `families.Family` of T5X's layouts."""

from collections.abc import Mapping
from typing import Any

import jax

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.networks import decoder_only

NAME = "T5X's decoder alone"
FIELDS: Mapping[str, Any] = {}  # Hugging Face has none

_LAYER = 'decoder/layers_0'
_HEAD = 'decoder/logits_dense/kernel'


def of_shapes(
    specs: Mapping[str, jax.ShapeDtypeStruct], dtype: Any
) -> decoder_only.DecoderOnly:
  """See `families.Family.of_shapes`.

  The activations are those of the T5 version with the same number of input
  projections, as T5X's own sizes have them. Whether a prompt attends in both
  directions is nowhere: it is taken not to.
  """
  inputs = [x for x in specs if x.startswith(f'{_LAYER}/mlp/wi')]
  names = (
      'decoder/token_embedder/embedding',
      'decoder/relpos_bias/rel_embedding',
      f'{_LAYER}/self_attention/query/kernel',
      *inputs,
  )
  # Not all shapes are checked; `Checkpoint.check_shapes` does that.
  shapes, wrong = families.matrices(specs, names)
  if not wrong and shapes[2][1] % shapes[1][0]:
    wrong = names[1:3]  # of a fraction of a head
  if len(inputs) not in t5_checkpoints.USUAL_ACTIVATIONS:
    wrong = [f'{_LAYER}/mlp']
  if wrong:
    raise errors.CheckpointError(
        f'{" and ".join(wrong)} is missing or of another shape.'
    )
  (vocab_size, emb_dim), (num_heads, _), (_, joined) = shapes[:3]
  layers = {x.split('/')[1] for x in specs if x.startswith('decoder/layers_')}
  return decoder_only.DecoderOnly.of_t5x(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_layers=len(layers),
      num_heads=num_heads,
      head_dim=joined // num_heads,
      mlp_dim=shapes[3][1],
      mlp_activations=t5_checkpoints.USUAL_ACTIVATIONS[len(inputs)],
      logits_via_embedding=_HEAD not in specs,
      dtype=dtype,
  )
