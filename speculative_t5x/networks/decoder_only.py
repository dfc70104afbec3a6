# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoder alone as a network of the decoding loop: GPT-2, Llama and others.

Its inputs are prompts, which an output continues, see `prompts`. They are read
into the cache that decoding goes on with. The last token of a prompt is the
first one that the loop feeds.

Legend: examples, rows, inputs_length, outputs_length, slots, vocab.
"""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from speculative_t5x.networks import block_decoder
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import prompts
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

LayerKind = config_lib.LayerKind

CHUNK = 64  # tokens of a prompt that are read at once


@dataclasses.dataclass(frozen=True)
class DecoderOnly(config_lib.Stack, block_decoder.BlockDecoder):
  """A decoder alone with its sizes: a `network.Network`.

  Its other attributes are those of `config.Stack`.

  Attributes:
    start_token: Id that the network puts before every prompt; None for none.
    ends_inputs: See `network.Network`.
    prefix_bidirectional: Whether each token of a prompt attends to all of it,
      as in a prefix-LM, and not only to those before. No checkpoint records it.
  """

  start_token: int | None = None
  ends_inputs: bool = False
  prefix_bidirectional: bool = False

  name: ClassVar[str] = 'decoder alone'
  layers_field: ClassVar[str] = 'num_layers'
  encoder: ClassVar[None] = None
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=contracts.NO_TOKEN, start=None
  )

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    return self

  @property
  def reads_features(self) -> bool:
    """True of a head, which reads features of the target's prompts."""
    return self.feature_dim is not None

  def __post_init__(self):
    super().__post_init__()
    if self.prefix_bidirectional and any(x.window for x in self.kinds):
      raise ranges.ArgumentError(
          'prefix_bidirectional needs layers without a window, and kinds has'
          ' some. Leave one of the two out.',
          prefix_bidirectional=True,
      )

  @classmethod
  def of_t5x(
      cls, *, emb_dim: int, logits_via_embedding: bool, **sizes: Any
  ) -> 'DecoderOnly':
    """Return the network of `t5x.examples.decoder_only` of some sizes.

    Its prompts begin with id 0, and end, as the inputs of T5X's tasks do, with
    the end of sequence.
    """
    return cls(
        emb_dim=emb_dim,
        logits_via_embedding=logits_via_embedding,
        positions=config_lib.RELATIVE,
        query_scale=1.0,
        logits_scale=emb_dim**-0.5 if logits_via_embedding else 1.0,
        start_token=0,
        ends_inputs=True,
        **sizes,
    )

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    cache = transformer.init_cache(self, (), 1)
    token = jnp.zeros((1,), jnp.int32)
    fed = None
    if self.feature_dim is not None:
      fed = jnp.zeros((1, self.feature_dim), self.dtype)
    variables = transformer.Decoder(self).init(
        key, token, jnp.int32(0), cache, fed=fed, method='decode_block'
    )
    return {name: {'decoder': tree} for name, tree in variables.items()}

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """Read the prompts; see `network.Network.start`.

    A row without any token, which only fills a batch, begins with id 0. A head
    reads the features that its target has at all positions of the prompts.
    """
    return self._start(params, inputs, rows, slots, fed=features)

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `network.ShowsFeatures`."""
    del features  # it reads none
    return self._start(params, inputs, rows, slots, shows_features=True)

  def _start(
      self, params, inputs, rows, slots, fed=None, shows_features=False
  ) -> contracts.Started:
    tokens, lengths = prompts.aligned(inputs, self.start_token)
    slots += tokens.shape[1] - 1
    cache, shown = self._read(
        params, tokens, lengths, slots, fed, shows_features
    )
    examples, last = len(tokens), jnp.maximum(lengths - 1, 0)
    first_tokens = jnp.take_along_axis(tokens, last[:, None], axis=1)[:, 0]
    if rows != examples:
      of_rows = lambda x: jnp.repeat(x, rows // examples, axis=0)
      last, first_tokens = of_rows(last), of_rows(first_tokens)
      # One example has no batch axis.
      cache = jax.tree.map(
          lambda x: of_rows(x if examples > 1 else x[None]), cache
      )
    started = contracts.Started(
        None, kv_cache.constrain(cache), last, first_tokens, shown
    )
    if not shows_features:
      return started
    before = jnp.maximum(last - 1, 0)[:, None, None]
    shown = jnp.repeat(shown, rows // examples, axis=0)
    features = jnp.take_along_axis(shown, before, axis=1)
    has_before = (last > 0)[:, None, None]
    return started._replace(last_features=jnp.where(has_before, features, 0))

  def _read(
      self,
      params: contracts.Params,
      tokens: jax.Array,
      lengths: jax.Array,
      slots: int,
      fed: jax.Array | None,
      shows_features: bool,
  ) -> tuple[transformer.Cache, jax.Array | None]:
    """Read prompts [examples, width]; see `prompts`.

    Returns:
      The cache and, if asked for, the features of the positions read.
    """
    examples, width = tokens.shape
    batch_shape = () if examples == 1 else (examples,)
    empty = functools.partial(self.init_cache, examples)
    decode = functools.partial(self._apply, params, method='decode_block')
    if self.prefix_bidirectional:
      if fed is not None or shows_features:
        raise ValueError(
            'A head on last features needs a target whose prompts are causal,'
            ' and this one has prefix_bidirectional. Choose another drafter.'
        )
      tokens = tokens.reshape(*batch_shape, width)
      return prompts.read_at_once(decode, empty, tokens, lengths, slots), None
    chunk = min(CHUNK, width)
    tokens = jnp.pad(tokens, ((0, 0), (0, -width % chunk)))
    width = tokens.shape[1]
    tokens, shown = tokens.reshape(*batch_shape, width), None
    if fed is not None:
      fed = fed.reshape(*tokens.shape, -1)
    if shows_features:
      shown = jnp.zeros((*tokens.shape, self.last_width), self.dtype)
    # The last chunk may reach past all that is decoded.
    cache, shown = prompts.read_in_chunks(
        decode, empty(max(width, slots)), tokens, lengths, chunk, fed, shown
    )
    if shown is not None:
      shown = sharding.constrain(
          shown.reshape(examples, width, -1), ('batch', 'length', 'embed')
      )
    return cache, shown

  def score_with_features(
      self,
      params,
      inputs,
      outputs,
      dropout_key=None,
      features=None,
      fed=None,
  ) -> network.Scored:
    """See `network.ShowsFeatures`."""
    del features  # it reads none
    tokens, lengths = prompts.aligned(inputs, self.start_token)
    # A row without any token begins with id 0, as in `start`.
    lengths = jnp.maximum(lengths, 1)
    width, length = tokens.shape[1], outputs.shape[1]
    # Each output lies behind its prompt, as in decoding.
    index = jnp.arange(width + length - 1) - lengths[:, None]
    of_output = jnp.take_along_axis(
        jnp.maximum(outputs, 0), jnp.clip(index, 0, length - 1), axis=1
    )
    tokens = jnp.pad(tokens, ((0, 0), (0, length - 1)))
    tokens = jnp.where(index < 0, tokens, of_output)
    slots = jnp.arange(tokens.shape[1])
    mask = slots <= slots[:, None]
    if self.prefix_bidirectional:
      mask = mask | (slots < lengths[:, None, None])
    x = self._apply(
        params,
        tokens,
        mask,
        fed=fed,
        drop=dropout_key is not None,
        rngs=None if dropout_key is None else {'dropout': dropout_key},
        method='score',
    )
    at = lengths[:, None] - 1 + jnp.arange(length)
    of_outputs = jnp.take_along_axis(x, at[..., None], axis=1)
    logits, shown = self._apply(params, of_outputs, method='logits_of')
    return network.Scored(
        logits, shown, self._apply(params, x, method='shown')
    )

  def _apply(self, params, *args, **kwargs) -> Any:
    params = {'params': params['decoder']}
    return transformer.Decoder(self).apply(params, *args, **kwargs)

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """See `network.LimitsPositions`: an output continues its input."""
    # The last token of an output is fed to nothing.
    num_fed = inputs_length + max_tokens - 1
    return num_fed + (self.start_token is not None)

  def on_last_features(self, target: 'DecoderOnly') -> 'DecoderOnly':
    """Return the head on a decoder alone: its parts, and this one's sizes."""
    if not isinstance(target, DecoderOnly):
      raise ValueError(
          'A head with the sizes of a decoder alone needs a target that is one,'
          f' and the target is {target.name}. Choose a head of its kind.'
      )
    return dataclasses.replace(
        target.decoder_alone(),
        emb_dim=self.emb_dim,
        num_layers=self.num_layers,
        num_heads=self.num_heads,
        num_kv_heads=self.num_kv_heads,
        mlp_dim=self.mlp_dim,
        logits_via_embedding=self.logits_via_embedding,
        feature_dim=target.last_width,
    )

  def head_of_shapes(
      self, shapes: Mapping[str, tuple[int, ...]]
  ) -> 'DecoderOnly':
    """See `network.ShowsFeatures`; heads have the width of the target's."""
    layer = 'decoder/layers_0/'
    width = lambda name: shapes[f'{layer}self_attention/{name}/kernel'][1]
    sizes = dataclasses.replace(
        self,
        emb_dim=shapes['decoder/token_embedder/embedding'][1],
        num_layers=len(
            {x.split('/')[1] for x in shapes if x.startswith('decoder/layers_')}
        ),
        num_heads=width('query') // self.head_dim,
        num_kv_heads=width('key') // self.head_dim,
        mlp_dim=shapes[f'{layer}mlp/wo/kernel'][0],
        logits_via_embedding=t5_preparation.HEAD not in shapes,
    )
    read = shapes[t5_preparation.FEATURES][0]
    return dataclasses.replace(sizes.on_last_features(self), feature_dim=read)
