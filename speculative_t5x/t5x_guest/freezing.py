# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a draft model beside a target that stays as it is."""

import copy
from typing import Any

from flax import traverse_util
from t5x import adafactor
from t5x import optimizers


class DraftOptimizer(optimizers.MultiOptimizer):
  """Trains the parameters under `draft/`, and has no state for others.

  T5X has two ways to train a part of the parameters. This one, MultiOptimizer,
  takes Adafactor with T5X's rules of factoring, which T5X's model files set.
  The other, masked transformations of optax, does not: T5X partitions no
  factored state of optax.
  """

  def __init__(self, optimizer_def: optimizers.OptimizerDefType):
    """Restrict T5X's Adafactor to the draft model."""
    if not isinstance(optimizer_def, adafactor.Adafactor):
      raise ValueError(
          f'optimizer_def is a {type(optimizer_def).__name__}, and a draft'
          " model is distilled by T5X's Adafactor alone. Give"
          " @adafactor.Adafactor(), as T5X's model files do."
      )
    is_draft = traverse_util.ModelParamTraversal(
        lambda path, _: path.startswith('/draft/')
    )
    super().__init__([(is_draft, _of_whole(optimizer_def))])

  def state_dict(self, target: Any, state: Any) -> dict[str, Any]:
    """Return what is saved.

    MultiOptimizer has None as the state of each parameter that is not trained.
    T5X's manager of Orbax saves that, and then cannot read it.
    """
    saved = super().state_dict(target, state)
    del saved['state']['param_states']['target']
    return saved

  def restore_state(self, opt_target, opt_state, state_dict):
    """Return parameters and state of what was saved."""
    none = super().state_dict(opt_target, opt_state)['state']['param_states']
    state = state_dict['state']
    param_states = {**state['param_states'], 'target': none['target']}
    return super().restore_state(
        opt_target,
        opt_state,
        {**state_dict, 'state': {**state, 'param_states': param_states}},
    )


def _of_whole(optimizer_def: adafactor.Adafactor) -> adafactor.Adafactor:
  """Return an optimizer that takes parameters which no mesh partitions.

  Their axes have no names, and T5X's rules of factoring know names alone. They
  do not matter here: with two axes at most, as in T5, sizes decide.
  """
  rules = optimizer_def.hyper_params.logical_factor_rules
  if rules is None:
    return optimizer_def
  changed = copy.copy(optimizer_def)
  changed.hyper_params = changed.hyper_params.replace(
      logical_factor_rules={**rules, None: adafactor.FactorDim.NONE}
  )
  return changed
