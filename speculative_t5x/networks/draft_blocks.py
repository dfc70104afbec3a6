# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of a text by a head that drafts several tokens per call.

Behind some tokens, the anchors, a head is asked for the next tokens by masks.
In one call it reads the text and the masks of all anchors, which lie behind it:

  index       0  1  2  3  4    5    6    7
  token       a  b  c  d  m1   m2   m1   m2    of the anchors a and c
  position    0  1  2  3  1    2    3    4
  draws       b'          c'   d'              at a and its masks

A mask sees what its anchor sees, the masks of its anchor before it, and itself.

Legend: examples, length (of the texts), anchors (per text), masks (per anchor),
vocab.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def score(
    decoder: Any,
    tokens: jax.Array,
    mask: jax.Array,
    anchors: jax.Array,
    crosses: Any = None,
    is_input: jax.Array | None = None,
    fed: jax.Array | None = None,
    drop: bool = False,
) -> tuple[jax.Array, None]:
  """Return float32 logits [examples, anchors, masks + 1, vocab].

  They are of the tokens behind each anchor, where those before each are the
  text's. No features are shown: the second value is None.

  Args:
    decoder: A `transformer.Decoder` with masks.
    tokens: [examples, length] int32.
    mask: [examples, length, length] bool, which tokens each one attends to.
    anchors: [examples, anchors] int32 in [0, length).
    crosses, fed, drop: See `transformer.Decoder.score`.
    is_input: [examples, 1, inputs_length] bool, or None.
  """
  config, length = decoder.config, tokens.shape[1]
  # Of each mask, which anchor it is of, and how far behind the first one.
  of, ahead = np.divmod(np.arange(anchors.shape[1] * config.num_masks),
                        config.num_masks)
  rows = lambda x: jnp.broadcast_to(x, (len(tokens), len(x)))
  join = lambda *x: jnp.concatenate(x, axis=-1)
  at = anchors[:, of] + 1 + ahead
  # Of the text a mask sees what its anchor sees.
  seen = jnp.take_along_axis(mask, anchors[:, of, None], axis=1)
  own = (of == of[:, None]) & (ahead <= ahead[:, None])
  own = jnp.broadcast_to(own, (len(tokens), *own.shape))
  unseen = jnp.zeros((*tokens.shape, len(of)), bool)
  mask = jnp.concatenate([join(mask, unseen), join(seen, own)], axis=1)
  if fed is not None:  # the target has not been at the masks
    fed = jnp.pad(fed, ((0, 0), (0, len(of)), (0, 0)))
  x = decoder.score(
      join(tokens, rows(config.vocab_size + ahead)),
      mask,
      crosses,
      is_input,
      fed,
      drop,
      join(rows(np.arange(length)), at),
  )
  masks = x[:, length:].reshape(*anchors.shape, config.num_masks, -1)
  firsts = jnp.take_along_axis(x, anchors[..., None], axis=1)[:, :, None]
  logits, read = decoder.logits_of(jnp.concatenate([firsts, masks], axis=2))
  if config.recurrence_dim is None:
    return logits, None
  before = jnp.minimum(anchors[..., None] + np.arange(config.num_masks + 1),
                       length - 1)
  before = jnp.take_along_axis(tokens[:, None], before, axis=-1)
  state, added = jnp.zeros_like(read[:, :, 0]), []
  for i in range(config.num_masks + 1):
    more, state = decoder.follow(state, before[..., i], read[:, :, i])
    added.append(more)
  return logits + jnp.stack(added, axis=2), None
