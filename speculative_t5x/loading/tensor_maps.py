# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of tensors in Hugging Face folders, as their families map them."""

from collections.abc import Collection
import dataclasses
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.networks import t5_preparation

Rules = tuple[tuple[str, str], ...]  # patterns, and what is put in their place

# Of all families, behind their own: norms are named by then.
_COMMON: Rules = (
    (r'^lm_head\.weight$', t5_preparation.HEAD),
    (r'^lm_head\.bias$', 'decoder/logits_bias/bias'),
    (r'/q(?:_proj)?\.', '/query.'),
    (r'/k(?:_proj)?\.', '/key.'),
    (r'/v(?:_proj)?\.', '/value.'),
    (r'/o(?:ut)?(?:_proj)?\.', '/out.'),
    (r'/q_norm\.', '/query_norm.'),
    (r'/k_norm\.', '/key_norm.'),
    (r'/mlp\.gate_proj\.', '/mlp/wi_0.'),
    (r'/mlp\.up_proj\.', '/mlp/wi_1.'),
    (r'/mlp\.down_proj\.', '/mlp/wo.'),
    # Before other weights, which are kernels.
    (r'norm\.weight$', 'norm/scale'),
    (r'\.weight$', '/kernel'),
    (r'\.bias$', '/bias'),
)
# PyTorch's linear layers store [out, in], Flax [in, out]; T5's tables of
# relative positions likewise.
_TRANSPOSED = '/kernel', '/rel_embedding'


@dataclasses.dataclass(frozen=True)
class TensorMap:
  """Names of the tensors of a family.

  A tensor whose name becomes 'a/b,c/kernel' holds 'a/b/kernel' and then
  'a/c/kernel'. Several tensors may become one parameter: the first one is read,
  and others must equal it.
  """

  name: str  # names the family in errors
  # Make a parameter's name of a tensor's, one after the other and before those
  # of all families: see `_COMMON`.
  rules: Rules
  # The parameter that is the head too where that is tied.
  embedding: str = 'decoder/token_embedder/embedding'
  # Pattern of tensors that no network uses.
  ignored: str = r'\.rotary_emb\.inv_freq$'
  is_transposed: bool = True  # whether kernels of layers lie as [out, in]

  def sources(
      self, folder: epath.Path, stored: Collection[str], network: Any
  ) -> tuple[dict[str, families.Location], dict[str, str]]:
    """Return where parameters lie, and which tensors equal others.

    See `families`; `stored` has the names of all tensors.
    """
    sources, copies, unknown = {}, {}, []
    # 'shared' before its copies in the stacks, and a tied head behind all.
    order = lambda x: (not x.startswith('lm_head'), x)
    for tensor in sorted(stored, key=order, reverse=True):
      if re.search(self.ignored, tensor):
        continue
      name = tensor
      for pattern, replacement in (*self.rules, *_COMMON):
        name = re.sub(pattern, replacement, name)
      match = re.fullmatch(r'([^.]*?)([^./]+)(/[^./]+)', name)
      if match is None:
        unknown.append(tensor)
        continue
      # A head is a linear layer also where those within layers are not.
      is_transposed = name.endswith(_TRANSPOSED) and (
          self.is_transposed or name == t5_preparation.HEAD
      )
      if name == t5_preparation.HEAD and network.logits_via_embedding:
        # It lies as the embedding does, [vocab, embed]: nothing is transposed.
        first = sources.setdefault(self.embedding, families.Location(tensor))
        if first.tensor != tensor:
          copies[tensor] = first.tensor
        continue
      before, parts, kind = match.groups()
      parts = parts.split(',')
      for i, part in enumerate(parts):
        source = families.Location(
            tensor, is_transposed, i, len(parts), part == 'logits_bias'
        )
        first = sources.setdefault(f'{before}{part}{kind}', source)
        if first is not source:
          copies[tensor] = first.tensor
    if unknown:
      raise errors.CheckpointError(
          f'{folder} holds tensors that {self.name} does not have:'
          f' {errors.listing(sorted(unknown))}. It is of another network, or'
          ' quantized, or holds adapters: pass the plain model.'
      )
    return sources, copies
