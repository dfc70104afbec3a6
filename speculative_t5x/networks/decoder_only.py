# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoder alone as a network of the decoding loop: GPT-2, Llama and others.

Its inputs are prompts, which an output continues, see `prompts`.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import t5_preparation
from speculative_t5x.networks import transformer_network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

LayerKind = config_lib.LayerKind


# Sizes that a head has for itself; all else is its target's.
_OF_HEAD = (
    'emb_dim', 'num_layers', 'num_heads', 'num_kv_heads', 'mlp_dim',
    'logits_via_embedding', 'num_masks', 'recurrence_dim',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class DecoderOnly(config_lib.Stack, transformer_network.TransformerNetwork):
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
  no_encoder: ClassVar[Mapping[str, Any]] = {}
  encoder: ClassVar[None] = None
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=contracts.NO_TOKEN, start=None
  )

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    return self

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

  def on_last_features(self, target: 'DecoderOnly') -> 'DecoderOnly':
    """Return the head on a decoder alone: its parts, and this one's sizes."""
    if not isinstance(target, DecoderOnly):
      raise ValueError(
          'A head with the sizes of a decoder alone needs a target that is one,'
          f' and the target is {target.name}. Choose a head of its kind.'
      )
    return dataclasses.replace(
        target.decoder_alone(),
        **{name: getattr(self, name) for name in _OF_HEAD},
        feature_dim=target.last_width,
    )

  def head_of_shapes(
      self, shapes: Mapping[str, tuple[int, ...]]
  ) -> 'DecoderOnly':
    """See `HasVariants`; heads have the width of the target's."""
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
        **t5_preparation.block_sizes(shapes),
    )
    read = shapes[t5_preparation.FEATURES][0]
    return dataclasses.replace(sizes.on_last_features(self), feature_dim=read)
