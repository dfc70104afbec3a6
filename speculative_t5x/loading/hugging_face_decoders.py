# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the Hugging Face families of decoders alone have in common.

A family is a map of tensor names, a `TensorMap`, and a map of its config.json's
fields to those of a network. Most are Llama with other parts.
"""

from collections.abc import Collection, Mapping
import dataclasses
import functools
import math
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.networks import rope as rope_lib

# Flax's activations by Hugging Face's.
ACTIVATIONS = {
    'gelu_new': 'gelu',
    'gelu_pytorch_tanh': 'gelu',
    'relu': 'relu',
    'silu': 'silu',
    'swish': 'silu',
}
# Parts that no network here has, and the values of their fields without them.
WITHOUT = {
    'quantization_config': (None,),
    'add_cross_attention': (None, False),
    'use_bidirectional_attention': (None, False),
    'partial_rotary_factor': (None, 1.0),
}

_EMBEDDING = 'decoder/token_embedder/embedding'


def number(file: epath.Path, name: str, value: Any) -> float:
  """Return a field that must be a positive number."""
  if type(value) not in (int, float) or not 0 < value < math.inf:
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, which is not a positive'
        ' number. Write the one that the model was trained with into it, or'
        ' download the file again.'
    )
  return float(value)


def rope(
    file: epath.Path, config: Mapping[str, Any], layer_type: str | None = None
) -> tuple[float, rope_lib.Scaling | None]:
  """Return theta and scaling of RoPE.

  transformers 5 writes both as `rope_parameters`, some by the type of a layer;
  before, they are `rope_theta` and `rope_scaling`.
  """
  with errors.reading(file):
    fields = config.get('rope_parameters')
    if fields is None:
      scaling = config.get('rope_scaling') or {}
      fields = {'rope_theta': config.get('rope_theta'), **scaling}
    fields = dict(fields.get(layer_type, fields))
  theta = number(file, 'rope_theta', fields.get('rope_theta'))
  kind = fields.get('rope_type', fields.get('type', 'default'))
  if kind == 'default':
    return theta, None
  read = lambda name: number(file, name, fields.get(name))
  if kind == 'linear':
    return theta, rope_lib.Scaling(read('factor'))
  if kind == 'llama3':
    return theta, rope_lib.Scaling(
        read('factor'),
        int(read('original_max_position_embeddings')),
        read('low_freq_factor'),
        read('high_freq_factor'),
    )
  raise errors.CheckpointError(
      f'{file} has rope_type {errors.shown(kind)}, and the network that runs'
      ' here has default, linear or llama3. Pass another model, or one without'
      ' this scaling.'
  )


LAYER_TYPES = {'full_attention': False, 'sliding_attention': True}


def layer_types(file: epath.Path, config: Mapping[str, Any]) -> list[bool]:
  """Return which layers have a window, by `layer_types`."""
  with errors.reading(file):
    types = list(config['layer_types'])
  for each in types:
    if each not in list(LAYER_TYPES):
      raise errors.CheckpointError(
          f'{file} has the layer type {errors.shown(each)}, and the network'
          f' that runs here has {" and ".join(LAYER_TYPES)}. Pass another'
          ' model.'
      )
  return [LAYER_TYPES[each] for each in types]


# Tensors of a layer by parameter. Several parameters may lie in one tensor, as
# equal parts in their order.
LLAMA_LAYER = {
    'pre_self_attention_layer_norm/scale': 'input_layernorm.weight',
    'pre_mlp_layer_norm/scale': 'post_attention_layernorm.weight',
    **{
        f'self_attention/{ours}/{kind}': f'self_attn.{theirs}_proj.{their_kind}'
        for ours, theirs in zip(('query', 'key', 'value', 'out'), 'qkvo')
        for kind, their_kind in (('kernel', 'weight'), ('bias', 'bias'))
    },
    **{
        f'mlp/{ours}/{kind}': f'mlp.{theirs}_proj.{their_kind}'
        for ours, theirs in (('wi_0', 'gate'), ('wi_1', 'up'), ('wo', 'down'))
        for kind, their_kind in (('kernel', 'weight'), ('bias', 'bias'))
    },
}
QK_NORMS = {
    'self_attention/query_norm/scale': 'self_attn.q_norm.weight',
    'self_attention/key_norm/scale': 'self_attn.k_norm.weight',
}


@dataclasses.dataclass(frozen=True)
class TensorMap:
  """How a family names its tensors.

  Attributes:
    name: Names the family in errors.
    layer: Tensors of a layer by parameter.
    outside: Tensors outside of layers, but for the head, by parameter.
    prefix: What all of these begin with, or None of them.
    layers: What those of layers have before their number.
    ignored: Pattern of tensors that no network uses.
    is_transposed: Whether kernels of layers lie as [out, in].
    head: Tensor of the head.
    stack: The stack of layers that it names.
  """

  name: str
  layer: Mapping[str, str]
  outside: Mapping[str, str]
  prefix: str = 'model.'
  layers: str = 'layers.'
  ignored: str = r'.*\.rotary_emb\.inv_freq'
  is_transposed: bool = True
  head: str = 'lm_head.weight'
  stack: str = 'decoder'

  def sources(
      self,
      folder: epath.Path,
      stored: Collection[str],
      network: Any,
  ) -> tuple[dict[str, families.Source], dict[str, str]]:
    """See `families.Family.tensor_names`."""
    found = {
        name: self._parameters(name)
        for name in stored
        if not re.fullmatch(self.ignored, name)
    }
    unknown = [name for name in found if not found[name]]
    families.check_all_known(folder, self.name, unknown)
    sources = {x: y for each in found.values() for x, y in each.items()}
    copies = {}
    if network.logits_via_embedding and self.head in found:
      # transformers stores no head that is the embedding, and others do.
      sources = {x: y for x, y in sources.items() if y.tensor != self.head}
      if _EMBEDDING in sources:
        copies[self.head] = sources[_EMBEDDING].tensor
    return sources, copies

  def _parameters(self, name: str) -> dict[str, families.Source]:
    """Return the parameters that lie in a tensor; none of an unknown name."""
    if name == self.head:
      return {'decoder/logits_dense/kernel': families.Source(name, True)}
    inner = name.removeprefix(self.prefix)
    if inner in self.outside:
      return {self.outside[inner]: families.Source(name)}
    match = re.fullmatch(rf'{re.escape(self.layers)}(\d+)\.(.+)', inner)
    names = self._of_tensors.get(match[2], []) if match else []
    return {
        f'{self.stack}/layers_{match[1]}/{ours}': families.Source(
            name, self.is_transposed and ours.endswith('/kernel'), i, len(names)
        )
        for i, ours in enumerate(names)
    }

  @functools.cached_property
  def _of_tensors(self) -> dict[str, list[str]]:
    """Parameters of a layer by the tensor that they lie in."""
    found = {}
    for ours, theirs in self.layer.items():
      found.setdefault(theirs, []).append(ours)
    return found


LLAMA_OUTSIDE = {
    'embed_tokens.weight': _EMBEDDING,
    'norm.weight': 'decoder/decoder_norm/scale',
}
