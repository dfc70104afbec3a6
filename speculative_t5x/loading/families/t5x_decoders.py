# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder alone of T5X's examples: a `families.Family` of T5X's layouts."""

from collections.abc import Mapping
from typing import Any

import jax

from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.networks import decoder_only

NAME = "T5X's decoder alone"
FIELDS: Mapping[str, Any] = {}  # Hugging Face has none


def of_shapes(
    specs: Mapping[str, jax.ShapeDtypeStruct]
) -> decoder_only.DecoderOnly:
  """See `families.Family.of_shapes` and `t5_checkpoints.sizes_of_shapes`.

  Whether a prompt attends in both directions is nowhere: it is taken not to.
  """
  sizes, _ = t5_checkpoints.sizes_of_shapes(
      specs,
      'decoder/token_embedder/embedding',
      'decoder/relpos_bias/rel_embedding',
  )
  return decoder_only.DecoderOnly.of_t5x(
      **sizes,
      num_layers=t5_checkpoints.num_layers(specs, 'decoder'),
  )
