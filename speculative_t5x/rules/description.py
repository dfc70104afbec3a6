# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of rules for records, reports and errors."""

import dataclasses

import jax
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


def check(rule: contracts.Rule | contracts.CoupledRule) -> None:
  """Check that something given as a rule is one.

  Raises:
    ValueError: for anything else, such as a class or a name, and for a rule
      that is not a pytree.
  """
  is_named = all(hasattr(rule, x) for x in ('name', 'is_lossless'))
  # One with both would be taken for a coupled rule, whatever it accepts.
  is_either = callable(rule) != hasattr(rule, 'draw')
  if isinstance(rule, type) or not is_named or not is_either:
    raise ranges.ArgumentError(
        'rule must be a rule of speculative_t5x.rules, with parentheses, as'
        ' rules.Tokenwise(), or one of your own (docs/own.md#a-rule); in jobs'
        f' take a gin file of configs/rules. Got {rule!r}.',
        rule=rule,
    )
  if jax.tree_util.all_leaves([rule]):
    raise ValueError(
        f'The rule {rule.name} is not a pytree, and compiled functions cannot'
        f' take it. Decorate {type(rule).__name__} with flax.struct.dataclass.'
    )


def describe(rule: contracts.Rule) -> str:
  """Return a rule's name and parameters, as in `lenience(lenience=0.5)`."""
  if not dataclasses.is_dataclass(rule):
    return rule.name
  values = (
      f'{field.name}={np.asarray(getattr(rule, field.name))!s}'
      for field in dataclasses.fields(rule)
  )
  shown = ', '.join(values)
  return f'{rule.name}({shown})' if shown else rule.name
