# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes and parts of a stack of layers, an encoder's or a decoder's.

All families have one transformer, `transformer`, and are told apart by the
fields of `Stack` alone.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

import jax.numpy as jnp

from speculative_t5x.networks import chips
from speculative_t5x.networks import rope
from speculative_t5x.speculation import ranges

# Kinds of positions: T5's bias of attention; rotated queries and keys; a table
# that is added to embeddings, or sines and then cosines, or these with the
# longest wavelength last, and not one step from it.
RELATIVE, ROPE = 'relative', 'rope'
LEARNED, SINUSOID, TENSOR2TENSOR = 'learned', 'sinusoid', 'tensor2tensor'
ADDED = LEARNED, SINUSOID, TENSOR2TENSOR
# Kinds of norms.
RMS, RMS_PLUS_ONE, LAYER = 'rms', 'rms_plus_one', 'layer'


@dataclasses.dataclass(frozen=True)
class LayerKind:
  """Parts that may differ from layer to layer.

  Attributes:
    window: How many of the last positions a query attends to, itself included;
      None for all.
    theta: Base of RoPE's frequencies.
    scaling: How these are scaled; None for not at all.
    ahead: In an encoder, how many of the next positions beside a window.
  """

  window: int | None = None
  theta: float = 10_000.0
  scaling: rope.Scaling | None = None
  ahead: int = 0


def settled_dtype(dtype: Any) -> Any:
  """Return a dtype to decode in; for None, the one that suits the device.

  Raises:
    ValueError: for one that cannot represent the logit of a masked position, as
      float16, or no dtype.
  """
  if dtype is None:  # a NumPy dtype counts as false
    dtype = chips.suited_dtype()
  try:
    name = jnp.dtype(dtype).name
  except TypeError:
    name = dtype
  if name not in ('float32', 'bfloat16'):
    message = f'dtype must be float32 or bfloat16, got {name}.'
    raise ranges.ArgumentError(message, dtype=name)
  return dtype


@dataclasses.dataclass(frozen=True, kw_only=True)
class Form:
  """Form of a network's parameters and computations, whatever its sizes are.

  Up to `min_block` all but the dtype is for decoding only, see
  `t5_preparation`.

  Attributes:
    dtype: Dtype of activations and matrix products; None for the one that suits
      the device. Logits are float32.
    separate_head: Whether a tied head is also stored transposed.
    merge_projections: Whether kernels that share an input are stored as one.
    head_size: Number of tokens that the head has logits for, if not all.
    min_block: Minimum number of positions that a decoder call computes; padding
      positions are discarded.
    num_masks: Of a head that drafts several tokens per call, how many positions
      ahead of the last token it may be asked for; 0 for other networks.
    recurrence_dim: Width of such a head's recurrence over its draft tokens;
      None for a head of which each distribution knows none of them.
  """

  dtype: Any = jnp.float32
  separate_head: bool = False
  merge_projections: bool = False
  head_size: int | None = None
  min_block: int = 1
  num_masks: int = 0
  recurrence_dim: int | None = None

  def __post_init__(self):
    object.__setattr__(self, 'dtype', settled_dtype(self.dtype))
    # Gin files give lists, which are not hashable.
    for name, value in list(vars(self).items()):
      if isinstance(value, list):
        object.__setattr__(self, name, tuple(value))


@dataclasses.dataclass(frozen=True)
class Stack(Form):
  """Sizes and parts of a stack, under T5X's names where it has some.

  Attributes:
    vocab_size: Rows of the embedding and width of the logits, with padding.
    emb_dim: Width of the residual stream.
    num_layers: Layers.
    num_heads: Heads of queries.
    num_kv_heads: Heads of keys and values, which divide them; None for as many.
    head_dim: Width of one head.
    mlp_dim: Width of the feed-forward block.
    mlp_activations: Flax names, or 'gelu_exact', one per input projection;
      'linear' for none.
    positions: 'relative' for T5's bias; 'rope' for rotated queries and keys; of
      those that are added to embeddings, 'learned' for rows of a table,
      'sinusoid' for sines and then cosines, 'tensor2tensor' for those whose
      last wavelength is the longest one, and not one step from it.
    max_positions: Rows of the learned table, or how many positions there are of
      sinusoids; None without an end.
    rotated_dim: How many leading lanes of a head 'rope' rotates; None for all.
    kinds: Kinds of the layers by turns, from the first one on.
    norm: 'rms', 'rms_plus_one' for one with scale 1 + w, or 'layer'.
    norm_eps: Epsilon of all norms.
    post_norms: Whether attention and feed-forward outputs are normalized too.
    qk_norm: Whether queries and keys are normalized, per head.
    qkv_bias: Whether query, key and value projections have a bias.
    out_bias: Whether the output projection of attention has one.
    mlp_bias: Whether the projections of the feed-forward block have one.
    query_scale: Factor of queries; None for 1 / sqrt(head_dim).
    attention_cap: Soft cap of attention logits; None for none.
    logits_cap: Soft cap of the logits; None for none.
    embedding_scale: Factor of embeddings.
    logits_scale: Factor of the logits.
    logits_via_embedding: Whether the embedding is also the output head.
    feature_dim: Width of the last features that a head on them is fed and
      predicts; None for a network that is fed tokens alone.
    encoder_dim: Width of an encoder's output, which each layer attends to as
      well; None for a decoder alone, and for an encoder.
    merged_attention: Whether one attention is to both, by the same projections.
    unscaled_id: Id whose embedding is a row of its own, without the factor;
      None for none.
    dropout_rate: Dropout rate in training, in [0, 1).
    bias_per_layer: Whether each layer has a table of relative positions, as in
      umT5; in T5, all layers of a stack share one.
    t5_attention: Whether attention is T5's: its logits are in the dtype, and
      not in float32, and its random kernels have T5's scale.
    bart_form: Whether the stack has BART's form: an embedder of its own, and
      one norm per block of a layer.
    sum_norms: Whether that norm is behind, over a block's output and what it is
      added to, as in BART. Then the stack has no norm at its end.
    embedding_norm: Whether embeddings are normalized.
    position_offset: Number of the first position.
    logits_bias: Whether the logits have a bias.
  """

  vocab_size: int
  emb_dim: int = 768
  num_layers: int = 12
  num_heads: int = 12
  num_kv_heads: int | None = None
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('silu', 'linear')
  positions: str = ROPE
  max_positions: int | None = None
  rotated_dim: int | None = None
  kinds: Sequence[LayerKind] = (LayerKind(),)
  norm: str = RMS
  norm_eps: float = 1e-6
  post_norms: bool = False
  qk_norm: bool = False
  qkv_bias: bool = False
  out_bias: bool = False
  mlp_bias: bool = False
  query_scale: float | None = None
  attention_cap: float | None = None
  logits_cap: float | None = None
  embedding_scale: float = 1.0
  logits_scale: float = 1.0
  logits_via_embedding: bool = False
  feature_dim: int | None = None
  encoder_dim: int | None = None
  merged_attention: bool = False
  unscaled_id: int | None = None
  dropout_rate: float = 0.0
  bias_per_layer: bool = False
  t5_attention: bool = False
  bart_form: bool = False
  sum_norms: bool = False
  embedding_norm: bool = False
  position_offset: int = 0
  logits_bias: bool = False

  def __post_init__(self):
    super().__post_init__()
    put = lambda name, value: object.__setattr__(self, name, value)
    if self.num_kv_heads is None:
      put('num_kv_heads', self.num_heads)
    if self.query_scale is None:
      put('query_scale', self.head_dim**-0.5)
    for name, allowed in (
        ('positions', (RELATIVE, ROPE, *ADDED)),
        ('norm', (RMS, RMS_PLUS_ONE, LAYER)),
    ):
      if (value := getattr(self, name)) not in allowed:
        message = f'{name} must be {" or ".join(allowed)}, got {value!r}.'
        raise ranges.ArgumentError(message, **{name: value})
    if self.num_heads % self.num_kv_heads:
      raise ranges.ArgumentError(
          f'num_heads is {self.num_heads}, which num_kv_heads,'
          f' {self.num_kv_heads}, does not divide. Choose a divisor.',
          num_kv_heads=self.num_kv_heads,
      )
    is_learned, is_given = self.positions == LEARNED, bool(self.max_positions)
    if is_learned > is_given or is_given and self.positions not in ADDED:
      raise ranges.ArgumentError(
          'max_positions is needed for learned positions and for no others but'
          f' sinusoids, got {self.max_positions} for {self.positions}.',
          max_positions=self.max_positions,
      )

  def kind(self, layer: int) -> LayerKind:
    """Return the kind of a layer."""
    return self.kinds[layer % len(self.kinds)]


def stack_of(network: Any, **others: Any) -> Stack:
  """Return a stack with the fields of a network by their names, and others."""
  names, of_network = (
      {field.name for field in dataclasses.fields(x)} for x in (Stack, network)
  )
  same = (names & of_network) - others.keys()
  return Stack(**{x: getattr(network, x) for x in same}, **others)
