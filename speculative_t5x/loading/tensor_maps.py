# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of tensors in Hugging Face folders, as their families map them."""

from collections.abc import Collection, Mapping
import dataclasses
import functools
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import families
from speculative_t5x.networks import t5_preparation

# PyTorch's linear layers store [out, in], Flax [in, out]; T5's tables of
# relative positions likewise.
_TRANSPOSED = '/kernel', '/rel_embedding'


def with_biases(
    names: Mapping[str, str], weight: str = 'kernel'
) -> dict[str, str]:
  """Return tensors by parameter, of parts that may have a bias.

  Args:
    names: Parts of a layer as PyTorch names them, by their names here.
    weight: The name here of what is not the bias.
  """
  return {
      f'{ours}/{kind}': f'{theirs}.{their_kind}'
      for ours, theirs in names.items()
      for kind, their_kind in ((weight, 'weight'), ('bias', 'bias'))
  }


@dataclasses.dataclass(frozen=True)
class TensorMap:
  """Names of the tensors of a family.

  Attributes:
    name: Names the family in errors.
    layers: Tensors of a layer by parameter, by stack ('encoder', 'decoder').
      Several parameters may lie in one tensor, as equal parts in their order.
    outside: Parameters outside of layers by tensor, but for the head. Several
      tensors may be one parameter: the first that is stored is read, and others
      must equal it.
    embedding: The parameter that is the head too where that is tied.
    before: What tensors of layers have before their number, by stack.
    optional: Pattern of parts that names may have beside.
    ignored: Pattern of tensors that no network uses, without these parts.
    is_transposed: Whether kernels of layers lie as [out, in].
    head: Tensor of the head.
  """

  name: str
  layers: Mapping[str, Mapping[str, str]]
  outside: Mapping[str, str]
  embedding: str = 'decoder/token_embedder/embedding'
  before: Mapping[str, str] = dataclasses.field(
      default_factory=lambda: {
          'encoder': 'encoder.layers.', 'decoder': 'decoder.layers.'
      }
  )  # fmt: skip
  optional: str = r'^model\.'
  ignored: str = r'.*\.rotary_emb\.inv_freq'
  is_transposed: bool = True
  head: str = 'lm_head.weight'

  def sources(
      self, folder: epath.Path, stored: Collection[str], network: Any
  ) -> tuple[dict[str, families.Source], dict[str, str]]:
    """See `families.Family.tensor_names`."""
    inner = {name: re.sub(self.optional, '', name) for name in stored}
    is_tied = network.logits_via_embedding
    head = self.embedding if is_tied else t5_preparation.HEAD
    outside = {**self.outside, self.head: head}
    order = {name: i for i, name in enumerate(outside)}
    sources, copies, unknown = {}, {}, []
    for name in sorted(stored, key=lambda x: order.get(inner[x], -1)):
      if re.fullmatch(self.ignored, inner[name]):
        continue
      if inner[name] in outside:
        parameter = outside[inner[name]]
        is_transposed = parameter.endswith(_TRANSPOSED)
        found = {parameter: families.Source(name, is_transposed)}
      else:
        found = self._of_layer(name, inner[name])
      if not found:
        unknown.append(name)
      for parameter, source in found.items():
        first = sources.setdefault(parameter, source)
        if first is not source:
          copies[name] = first.tensor
    families.check_all_known(folder, self.name, unknown)
    return sources, copies

  def _of_layer(self, name: str, inner: str) -> dict[str, families.Source]:
    """Return the parameters that lie in a tensor; none of an unknown name."""
    for stack, before in self.before.items():
      if match := re.fullmatch(rf'{re.escape(before)}(\d+)\.(.+)', inner):
        names = self._of_tensors.get((stack, match[2]), [])
        return {
            f'{stack}/layers_{match[1]}/{ours}': families.Source(
                name,
                self.is_transposed and ours.endswith(_TRANSPOSED),
                i,
                len(names),
            )
            for i, ours in enumerate(names)
        }
    return {}

  @functools.cached_property
  def _of_tensors(self) -> dict[tuple[str, str], list[str]]:
    """Parameters of a layer by stack and the tensor that they lie in."""
    found = {}
    for stack, layer in self.layers.items():
      for ours, theirs in layer.items():
        found.setdefault((stack, theirs), []).append(ours)
    return found
