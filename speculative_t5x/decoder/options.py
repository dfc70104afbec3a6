# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The options of a decoder as one value, and keyword arguments for them."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import jax

from speculative_t5x.loading import errors
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """Options of a decoder. All are compiled in: another value compiles anew.

  Attributes:
    gamma: Most draft tokens per target call, at least 1.
    max_tokens: Most tokens per output, end included; a call may ask for fewer.
    inputs_length: Most tokens per input, end included. Longer texts are cut.
      Shorter ones are decoded at a smaller width, see `batching.input_width`.
    hints_length: Hints of an input are cut to this many tokens; None for all.
    num_decodes: Samples per input.
    policy: Draft length policy; `policies` has others.
    rescale_log_probs: Whether to score under the distribution sampled from
      (True, T5X's default), or under the model's own (False, and always by a
      rule that is not lossless).
    mask_padded_ids: Whether ids beyond the vocabulary, which only pad the
      logits to a round width, are forbidden. T5X lets them take part.
    num_valid_tokens: Only ids below this number are written. None for all, or
      with `mask_padded_ids` for those of the vocabulary.
    may_end: Whether the end of sequence may be written. Without it, every
      output has as many tokens as it may have.
    matmul_precision: JAX's setting for matrix products. None for the setting in
      force; where there is none, 'highest' for a target in float32.
  Raises:
    ValueError: for a value out of range, or something that is not a policy.
  """

  gamma: int = 5
  max_tokens: int = 128  # inputs and outputs are as long as T5 was trained for
  inputs_length: int = 512
  hints_length: int | None = None
  num_decodes: int = 1
  policy: draft_length.Policy = draft_length.Fixed()  # noqa: RUF009
  rescale_log_probs: bool = True
  mask_padded_ids: bool = False
  num_valid_tokens: int | None = None
  may_end: bool = True
  matmul_precision: str | None = None

  def __post_init__(self):
    counts = 'gamma', 'max_tokens', 'inputs_length', 'num_decodes'
    optional = 'hints_length', 'num_valid_tokens'
    counts += tuple(x for x in optional if getattr(self, x) is not None)
    ranges.check_settings(ranges.COUNT, **{x: getattr(self, x) for x in counts})
    draft_length.check(self.policy)
    with errors.prefixed('matmul_precision'):
      with jax.default_matmul_precision(self.matmul_precision):
        pass  # JAX names those that there are
    if self.gamma > self.max_tokens:
      raise ranges.ArgumentError(
          f'gamma is {self.gamma}, but max_tokens is {self.max_tokens}: more'
          f' draft tokens cannot be kept. Give at most {self.max_tokens}.',
          gamma=self.gamma,
      )


def of(options: Options, changes: Mapping[str, Any]) -> Options:
  """Return options with those replaced that keyword arguments name."""
  check_type('options', options, Options, 'an Options, or options by name')
  return dataclasses.replace(options, **changes)


def check_type(
    name: str, value: object, types: type | tuple[type, ...], allowed: str
) -> None:
  """Raise TypeError naming an argument whose value is of other types."""
  if not isinstance(value, types):
    raise TypeError(f'{name} must be {allowed}, got {value!r}.')
