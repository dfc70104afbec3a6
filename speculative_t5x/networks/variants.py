# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of a network of all families, and variants of it.

These are made of its parts and parameters: prepared to decode, with fewer
layers, with another head, or without an encoder.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import network
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# What a head for an inner layer replaces.
_HEAD = 'decoder_norm', 'logits_dense', 'logits_bias'


class HasVariants:
  """Part of `transformer_network.TransformerNetwork`.

  Its subclasses are frozen dataclasses with the fields of `config.Form`. They
  define `name`, `special_ids`, and `_stack` or both stacks.

  Attributes:
    ends_inputs: See `network.Network`.
    embedding_in: Where the embedding of inputs lies: in 'both' stacks' parent,
      whose embedding is theirs too, in the 'decoder', or in 'each' stack.
    max_positions: How many positions there are; None without an end.
    layers_field: The field with the number of decoder layers.
    no_encoder: Values of fields that say that there is no encoder.
  """

  layers_field: ClassVar[str] = 'num_decoder_layers'
  no_encoder: ClassVar[Mapping[str, Any]] = {'num_encoder_layers': 0}
  ends_inputs: ClassVar[bool] = True
  embedding_in: ClassVar[str] = 'both'
  max_positions: ClassVar[int | None] = None

  def _stack(self, num_layers: int, **others: Any) -> config_lib.Stack:
    """Return the sizes of a stack, with others that are not the network's."""
    raise NotImplementedError

  @property
  def encoder(self) -> config_lib.Stack | None:
    """Sizes of the encoder; None of a decoder alone or on another's."""
    count = self.num_encoder_layers
    return self._stack(count, encoder_dim=None) if count else None

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    width = self.encoder_dim or self.emb_dim
    return self._stack(self.num_decoder_layers, encoder_dim=width)

  @property
  def num_decoder_layers(self) -> int:
    """Layers of the decoder."""
    return self.decoder.num_layers

  @property
  def width_of_inputs(self) -> int | None:
    """Width of the features that the decoder reads; None of one alone."""
    return self.decoder.encoder_dim

  @property
  def is_alone(self) -> bool:
    """True of a decoder whose inputs are prompts."""
    return self.width_of_inputs is None

  @property
  def reads_features(self) -> bool:
    """True of a decoder on the encoder of another network, and of a head that
    reads features of the target's prompts.
    """
    if self.is_alone:
      return self.feature_dim is not None
    return self.encoder is None

  @property
  def axis_units(self) -> Mapping[str, int]:
    """Heads are not cut apart, though their number times width might be.

    Query heads stay with the heads of keys and values that they read.
    """
    stacks = [x for x in (self.encoder, self.decoder) if x is not None]
    return {'joined_kv': math.gcd(*(x.num_kv_heads for x in stacks))}

  @property
  def decoder_prompt(self) -> tuple[int, ...]:
    """Ids that the decoder is fed before an output in training."""
    return (self.special_ids.start,)

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """Return how many positions an input and an output of these lengths need.

    Each stack counts its own.
    """
    num_fed = max_tokens - 1  # the last token of an output is fed to nothing
    if self.is_alone:  # an output continues its input
      return inputs_length + num_fed + (self.start_token is not None)
    return max(inputs_length, len(self.decoder_prompt) + num_fed)

  def prepared(self, platform: str, merged: bool) -> Self:
    """See `network.Network.prepared`."""
    return dataclasses.replace(
        self,
        separate_head=self.logits_via_embedding,
        merge_projections=merged,
        min_block=t5_preparation.MIN_BLOCKS.get(platform, 1),
    )

  def prepare(self, leaves: network.Leaves, merged: bool) -> network.Leaves:
    """See `network.Network.prepare`."""
    leaves = t5_preparation.prepare_each(self, leaves)
    return t5_preparation.merge_each(self, leaves) if merged else leaves

  def first_layers(self, count: int) -> Self:
    """Return the network that ends after some decoder layers.

    Its parameters are the network's own; those of later layers are not read.

    Raises:
      ValueError: if there is no such layer.
    """
    allowed = ranges.whole(1, self.num_decoder_layers)
    ranges.check_settings(allowed, exit_layer=count)
    return dataclasses.replace(self, **{self.layers_field: count})

  def take_first_layers(
      self, memory: contracts.Memory, cache: contracts.Cache
  ) -> tuple[contracts.Memory, contracts.Cache]:
    """Return what this reads of a deeper network's memory and cache."""
    count = self.num_decoder_layers
    if memory is not None:
      memory = memory._replace(cross=memory.cross[:count])
    return memory, cache[:count]

  def put_first_layers(
      self, cache: contracts.Cache, whole: contracts.Cache
  ) -> contracts.Cache:
    """Return a deeper network's cache with these layers' in their places."""
    # Later layers lack the draft's slots, which the next target call writes.
    return *cache, *whole[self.num_decoder_layers :]

  def decoder_alone(self) -> Self:
    """Return the part that decodes, as a checkpoint holds it."""
    return dataclasses.replace(
        self,
        separate_head=False,
        head_size=None,
        merge_projections=False,
        **self.no_encoder,
    )

  def on_features(self, width: int) -> Self:
    """Return the decoder, which reads an encoder's output of a width."""
    return dataclasses.replace(self, **self.no_encoder, encoder_dim=width)

  @property
  def last_width(self) -> int:
    """Width of the last features, that are read or predicted.

    It is that of what a recurrence over draft tokens reads of them.
    """
    if self.recurrence_dim is not None:
      return self.recurrence_dim
    is_own = self.feature_dim is None or self.num_masks
    return self.emb_dim if is_own else self.feature_dim

  def on_last_features(self, target: network.Network) -> Self:
    """Return the head on a target, of this network's sizes."""
    decoder = self.on_features(network.features_width(target))
    return dataclasses.replace(decoder, feature_dim=target.last_width)

  def head_of_shapes(
      self, shapes: Mapping[str, tuple[int, ...]]
  ) -> network.Network | None:
    """Return the head on this network, of a checkpoint's shapes.

    They are by names such as 'decoder/logits_dense/kernel'. A name that a head
    needs raises KeyError if it is missing. None where shapes say all of a head,
    and its parts are not the target's.
    """
    return None

  def with_own_head(self) -> Self:
    """Return the network whose head is stored, also where it was tied."""
    return dataclasses.replace(self, separate_head=True)

  def take_head(self, params: contracts.Params) -> contracts.Params:
    """Return the final norm and the head, which may be tied, by T5X's names."""
    decoder = params['decoder']
    if 'logits_dense' not in decoder:
      owner = params if 'token_embedder' in params else decoder
      tied = owner['token_embedder']['embedding']
      # An embedding lies as [vocab, embed], a head as [embed, vocab].
      decoder = {**decoder, 'logits_dense': {'kernel': tied.T}}
    names = [name for name in _HEAD if name in decoder]
    return {'decoder': {name: decoder[name] for name in names}}

  def put_head(
      self, params: contracts.Params, head: contracts.Params
  ) -> contracts.Params:
    """Return the parameters with another final norm and head."""
    return {**params, 'decoder': {**params['decoder'], **head['decoder']}}

  def shorten_head(
      self, params: contracts.Params, ids: np.ndarray
  ) -> tuple[Self, contracts.Params]:
    """Restrict the head of the prepared network to some tokens.

    All others get logit -inf; the remaining logits are unchanged. Their number
    is then the `head_size`. The ids differ, and the vocabulary has them.
    """
    # What is not among the ids takes a place behind the last logit of the head.
    places = np.full((self.vocab_size,), len(ids), np.int32)
    places[ids] = np.arange(len(ids))
    kernel = jnp.take(params['decoder']['logits_dense']['kernel'], ids, axis=1)
    short = {
        **params['decoder'],
        'logits_dense': {'kernel': kernel},
        'short_vocabulary': {'places': jnp.asarray(places)},
    }
    restricted = dataclasses.replace(self, head_size=len(ids))
    return restricted, {**params, 'decoder': short}
