# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a head that drafts several tokens per call, by teacher forcing.

Behind each anchor, a token of the text, the head drafts a block. The loss of a
block is the sum of the divergences of its tokens, each weighted by what it adds
to the tokens that are accepted. With token i accepted at rate a_i, given those
before it, a block has in the mean

  E = a_1 + a_1 a_2 + ... + a_1 a_2 ... a_gamma

accepted tokens, and the weight of token i is dE / da_i, with the rates of the
parameters as they are. With the total variation as divergence, whose rates are
1 - d_i (Leviathan et al., 2023, Corollary 3.6), the gradient of the loss is
that of -E.

Legend: batch, length (of the targets), anchors (per text), gamma (tokens per
block), vocab.
Reference: for anchors Chen et al. (2026), "DFlash", arXiv:2602.06036; for
  weights by accepted tokens "D-PACE", arXiv:2605.18810.
"""

from typing import Any

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import steps


@struct.dataclass
class BlockDistillation(distillation.Distillation):
  """The objective of a head that drafts blocks.

  A better checkpoint makes more tokens per call.

  Attributes:
    anchor_period: Of how many tokens one is an anchor; which one is drawn per
      batch, so that each token is one as often.
  """

  anchor_period: int = struct.field(pytree_node=False, default=8)

  score_name = 'tokens_per_call_7'

  def loss(
      self, params: Any, batch: batches.TokenPairs, dropout_key: jax.Array
  ) -> tuple[jax.Array, steps.Sums]:
    target_logits, draft_logits, tokens = self.read(params, batch, dropout_key)
    tokens = tokens[..., :-1]
    rates = 1 - divergences.total_variation(target_logits, draft_logits)
    rates = jnp.where(tokens == contracts.NO_TOKEN, 0, rates)
    weights = gains(jax.lax.stop_gradient(rates))
    losses = self.divergence(target_logits, draft_logits, tokens)
    metrics = steps.sums(draft_logits, tokens, losses * weights)
    return metrics.loss, metrics

  def read(
      self,
      params: Any,
      batch: batches.TokenPairs,
      dropout_key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute the logits of the target and of the draft behind anchors.

    Returns:
      Both logits, [batch, anchors, gamma, vocab] float32, and the text's tokens
      there and behind, [batch, anchors, gamma + 1] int32, NO_TOKEN past the
      end.
    """
    inputs, outputs = batch.inputs, batch.targets
    rows, length = outputs.shape
    gamma = self.draft.num_masks + 1
    # Of each row others, or the first token would be an anchor of every text.
    first = jnp.arange(rows) % self.anchor_period
    if dropout_key is not None:
      dropout_key, key = jax.random.split(dropout_key)
      first = jax.random.randint(key, (rows,), 0, self.anchor_period)
    anchors = jnp.arange(0, length, self.anchor_period) + first[:, None]
    at = anchors[..., None] + jnp.arange(gamma + 1)
    row = jnp.arange(rows)[:, None, None]
    tokens = jnp.pad(
        outputs, ((0, 0), (0, 1)), constant_values=contracts.NO_TOKEN
    )[row, jnp.minimum(at, length)]
    features = fed = None
    if network_lib.has_encoder(self.target):
      features = self.target.features(self.target_params, inputs)
    if network_lib.is_feature_head(self.draft):
      target = self.target.score_with_features(
          self.target_params, inputs, outputs, features=features
      )
      fed = network_lib.one_later(target.all_features)
      target_logits = target.logits
    else:
      target_logits = self.target.score(
          self.target_params, inputs, outputs, features=features
      )
    drafted = self.draft.score_with_features(
        params,
        inputs,
        outputs,
        dropout_key,
        features if self.draft.reads_features else None,
        fed,
        jnp.minimum(anchors, length - 1),
    )
    target_logits = target_logits[row, jnp.minimum(at[..., :-1], length - 1)]
    return target_logits, drafted.logits, tokens


def gains(rates: jax.Array) -> jax.Array:
  """Return dE / da_i of blocks' accepted tokens; see above.

  Rates and result are [..., gamma] float32. The rate of a token behind the end
  of a text is 0.
  """
  # c_i = 1 + a_(i+1) c_(i+1), what an accepted token i is worth.
  worth = [jnp.ones_like(rates[..., 0])]
  for i in range(rates.shape[-1] - 1, 0, -1):
    worth.append(1 + rates[..., i] * worth[-1])
  reached = jnp.cumprod(rates, axis=-1)
  reached = jnp.concatenate(
      [jnp.ones_like(rates[..., :1]), reached[..., :-1]], axis=-1
  )
  return reached * jnp.stack(worth[::-1], axis=-1)
