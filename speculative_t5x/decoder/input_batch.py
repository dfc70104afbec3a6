# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that are read at once, as arrays."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification


@struct.dataclass
class InputBatch:
  """A batch to decode. New values do not recompile, new shapes do."""

  # [examples, inputs_length] int32, with `contracts.NO_TOKEN` behind the tokens
  # of a row.
  inputs: jax.Array
  # [examples] int32. Up to rounding, a row's sample depends on seed, example id
  # and decode number alone, whatever else is in the batch.
  example_ids: jax.Array
  # [examples] int32, most tokens of each output, at most the decoder's length;
  # 0 for an example that only pads the batch.
  limits: jax.Array
  seed: jax.Array  # int32, a scalar or [examples]
  # Sampling of the target, which the outputs follow; scalars or [examples].
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling  # likewise, of the drafter
  # Decides which draft tokens are accepted. Only a rule that `is_lossless`
  # keeps the distribution of the outputs.
  rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE
  # [examples, any] int32, see `views.Context`; None without hints.
  hints: jax.Array | None = None
  # Class of `rule`, set from it.
  rule_class: type | None = struct.field(pytree_node=False, default=None)

  def __post_init__(self):
    # JAX 0.10.2 compares registered dataclasses by their fields and not by
    # their class: `jax.jit` may run the program of another rule whose fields
    # are alike. As a static field, the class is compared.
    object.__setattr__(self, 'rule_class', type(self.rule))


class Shape(NamedTuple):
  """Sizes that are compiled in."""

  examples: int  # inputs that are read at once
  inputs_length: int  # tokens per input
  hints_length: int = 0  # tokens of the hints of an input; 0 for none


def stack(
    requests: Sequence[request_lib.Request | None],
    shape: Shape,
    rule: contracts.Rule | contracts.CoupledRule,
) -> InputBatch:
  """Return a batch of requests, in which each has a sampling of its own.

  The requests, of token ids, are no more than the shape has; None is not
  decoded, and neither is what fills the shape.
  """
  filled = [*requests, *[None] * (shape.examples - len(requests))]
  of_each = lambda name, filler: [
      filler if each is None else getattr(each, name) for each in filled
  ]
  column = lambda name: np.array(of_each(name, 0), np.int32)
  sampling = of_each('sampling', sampling_lib.GREEDY)
  own = of_each('draft_sampling', None)
  draft_sampling = [x or y for x, y in zip(own, sampling, strict=True)]
  hints = None
  if shape.hints_length:
    stacked = hints_lib.stack(of_each('hints', ()), shape.hints_length)
    # Longer hints are cut: another width would compile again.
    hints = stacked[:, : hints_lib.width(shape.hints_length)]
  return InputBatch(
      batching.pad(of_each('inputs', ()), shape.inputs_length),
      column('example_id'),
      column('max_tokens'),
      column('seed'),
      sampling_lib.stack(sampling),
      sampling_lib.stack(draft_sampling),
      rule,
      hints,
  )


def whole_batches(
    requests: Sequence[request_lib.Request | None],
    settings: request_lib.Settings,
    *,
    size: int,
    inputs_length: int,
) -> Iterator[InputBatch]:
  """Yield requests in batches of one shape, each to be decoded as a whole.

  Requests are as in `stack`, made by the settings, which are scalars of the
  batches. All batches have hints if one of them has. Of `size` inputs per
  batch, those that are longer than `inputs_length` are cut.
  """
  hints = hints_lib.stack([each.hints or () for each in requests if each])
  hints_length = 0 if hints is None else hints.shape[1]
  shape = Shape(size, inputs_length, hints_length)
  draft_sampling = settings.draft_sampling or settings.sampling
  for part in batching.parts(requests, size):
    batch = stack(part, shape, settings.rule).replace(
        seed=np.int32(settings.seed),
        sampling=settings.sampling.as_arrays(),
        draft_sampling=draft_sampling.as_arrays(),
    )
    yield jax.tree.map(jnp.asarray, batch)
