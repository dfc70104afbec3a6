# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The production step of a pair, compiled once for any number of states.

Legend: rows (paths of decoding), examples.
"""

import copy
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import pairs
from speculative_t5x.testing import words

ROWS = 512  # per call of a compiled function


class Program:
  """A pair's production step, compiled for `ROWS` rows.

  Attributes:
    pair: what is decoded.
    policy: the draft length policy.
    sampling: of target and drafter.
    probs: returns the target's distribution after some tokens of an example.
  """

  def __init__(
      self,
      pair: pairs.Pair,
      policy: contracts.DraftLengthPolicy,
      sampling: sampling_lib.Sampling,
  ):
    """Compiles nothing yet."""
    self.pair = pair
    self.policy = policy
    self.sampling = sampling
    self.probs = _probs(pair, sampling)
    self._begin = _jit(lambda *args: self.start(*args)[2])
    self._step = _jit(self._run_step)
    self._draft = _jit(self._run_draft)

  def with_sampling(self, sampling: sampling_lib.Sampling) -> 'Program':
    """Returns a program that shares what this one compiles."""
    other = copy.copy(self)
    other.sampling = sampling
    other.probs = _probs(self.pair, sampling)
    return other

  @property
  def name(self) -> str:
    """Names drafter and policy, for messages."""
    drafter = type(self.pair.drafter).__name__
    return f'The drafter {drafter} with the policy {self.policy.name}'

  @property
  def num_uniforms(self) -> int:
    """How many uniforms a step uses per row."""
    drafter = self.pair.drafter
    return drafter.num_uniforms + drafter.max_draft_tokens + 1

  def start(
      self,
      rule: contracts.Rule,
      sampling: sampling_lib.Sampling,
      examples: np.ndarray,
      rows: int = ROWS,
  ) -> tuple[state_lib.Setup, state_lib.Batch, state_lib.State]:
    """Begins with some examples, each of as many rows as the next.

    Args:
      rule: any.
      sampling: of target and drafter.
      examples: their numbers.
      rows: a multiple of the examples (static).
    """
    pair = self.pair
    limits = jnp.asarray(pair.limits, jnp.int32)[examples]
    setup = state_lib.Setup(
        pair.target,
        jax.tree.map(jnp.asarray, pair.target_params),
        sampling,
        pair.drafter,
        jax.tree.map(jnp.asarray, pair.draft_params),
        sampling,
        rule,
        self.policy,
    )
    take = lambda texts: jnp.asarray(texts)[examples]
    return setup, *state_lib.begin(
        setup,
        take(pair.inputs),
        None,
        jnp.repeat(limits, rows // len(examples)),
        length=max(pair.limits),
        hints=None if pair.hints is None else take(pair.hints),
    )

  def begin(self, rule: contracts.Rule) -> state_lib.State:
    """Returns the states of all examples before any token.

    Raises:
      AssertionError: if the state of the drafter or of the policy has not one
        entry per row, which requests that take the place of others need.
    """
    count = len(self.pair.limits)
    state = self._begin(rule, self.sampling, np.resize(np.arange(count), ROWS))
    parts = {'drafter': state.draft_state, 'policy': state.policy_state}
    for name, part in parts.items():
      for leaf in jax.tree.leaves(part):
        if leaf.shape[:1] != (ROWS,):
          raise AssertionError(
              f'{self.name}: the state of the {name} has an array of shape'
              f' {leaf.shape} for {ROWS} rows. It must have one entry per row,'
              ' because new requests take the place of single rows.'
          )
    return take(jax.device_get(state), np.arange(count))

  def draft(self, rule, examples, state, uniforms) -> contracts.Draft:
    """Returns the drafts of any number of rows, see `step.drafted`."""
    return self._in_parts(self._draft, rule, examples, state, uniforms)

  def step(self, rule, examples, state, uniforms) -> state_lib.State:
    """Makes one step of any number of rows."""
    return self._in_parts(self._step, rule, examples, state, uniforms)

  def _run_step(self, rule, sampling, examples, state, uniforms):
    setup, batch, _ = self.start(rule, sampling, examples)
    return step_lib.step(setup, batch, state, uniforms)[0]

  def _run_draft(self, rule, sampling, examples, state, uniforms):
    setup, batch, _ = self.start(rule, sampling, examples)
    return step_lib.drafted(setup, batch, state, uniforms)

  def _in_parts(self, function, rule, examples, state, uniforms):
    found = []
    for i in range(0, len(examples), ROWS):
      count = min(ROWS, len(examples) - i)
      rows = i + np.arange(ROWS) % count
      after = function(
          rule,
          self.sampling,
          examples[rows],
          take(state, rows),
          words.words(uniforms[rows]),
      )
      found.append(take(jax.device_get(after), np.arange(count)))
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


# These programs run for less time than it takes to optimize them.
_jit = functools.partial(
    jax.jit, compiler_options={'xla_backend_optimization_level': 0}
)


def take(tree: Any, rows: np.ndarray) -> Any:
  """Returns some rows of all arrays."""
  return jax.tree.map(lambda x: np.asarray(x)[rows], tree)


def _probs(pair: pairs.Pair, sampling: sampling_lib.Sampling):

  @functools.cache
  def find(example: int, tokens: tuple[int, ...]) -> np.ndarray:
    logits = jnp.asarray(pair.find_logits(example, tokens))
    return np.asarray(_standardize(logits, sampling), np.float64)

  return find


_standardize = jax.jit(sampling_lib.standardize)
