# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The production step of a pair, compiled once for any number of states.

Legend: rows (paths of decoding), examples.
"""

from collections.abc import Callable
import copy
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import pairs

ROWS = 512  # per call of a compiled function


class Program:
  """A pair's production step, compiled for `ROWS` rows.

  Attributes:
    pair: What is decoded.
    policy: The draft length policy.
    samplings: The target's sampling and the drafter's.
    probs: Returns the target's distribution after some tokens of an example.
    known: What `reachable` knows of each rule's decisions at this sampling.
  """

  def __init__(
      self,
      pair: pairs.Pair,
      policy: draft_length.Policy,
      sampling: sampling_lib.Sampling | None = None,
  ):
    """Compile nothing yet."""
    self.pair = pair
    self.policy = policy
    self._set_sampling(sampling or sampling_lib.Sampling(), None)
    self._begin = _jit(self._start_both)
    step = lambda *args: step_lib.step(*args)[0]
    self._step = _jit(_run_with(self.start, step))
    self._step_alone = _jit(_alone(_run_with(self.start, step)))
    self._draft = _jit(_run_with(self.start, step_lib.drafted))

  def with_sampling(
      self,
      sampling: sampling_lib.Sampling,
      draft_sampling: sampling_lib.Sampling | None = None,
  ) -> 'Program':
    """Return a program that shares what this one compiles.

    Without a sampling of its own, the drafter has the target's.
    """
    other = copy.copy(self)
    other._set_sampling(sampling, draft_sampling)
    return other

  def _set_sampling(self, sampling, draft_sampling) -> None:
    both = sampling, draft_sampling or sampling
    self.samplings = tuple(each.as_arrays() for each in both)
    self.probs = _probs(self.pair, sampling)
    self.known = {}

  @property
  def name(self) -> str:
    """Names drafter and policy, for messages."""
    drafter = type(self.pair.drafter).__name__
    return f'The drafter {drafter} with the policy {self.policy.name}'

  def num_uniforms(self, rule: contracts.Rule) -> int:
    """Return how many uniforms a step uses per row."""
    return noise.of(rule, self.pair.drafter).num_uniforms

  def start(
      self,
      rule: contracts.Rule,
      samplings: tuple[sampling_lib.Sampling, sampling_lib.Sampling],
      examples: np.ndarray,
      rows: int = ROWS,
  ) -> tuple[state_lib.Setup, state_lib.Batch, state_lib.State]:
    """Begin with some examples, given by their numbers.

    Each has as many rows as the next. `rows`, a multiple of the examples, is
    static.
    """
    pair = self.pair
    limits = jnp.asarray(pair.limits, jnp.int32)[examples]
    setup = state_lib.Setup(
        pair.target,
        jax.tree.map(jnp.asarray, pair.target_params),
        pair.drafter,
        jax.tree.map(jnp.asarray, pair.draft_params),
        rule,
        self.policy,
    )
    take = lambda texts: jnp.asarray(texts)[examples]
    return setup, *state_lib.begin(
        setup,
        take(pair.inputs),
        None,
        jnp.repeat(limits, rows // len(examples)),
        *samplings,
        length=max(pair.limits),
        hints=None if pair.hints is None else take(pair.hints),
    )

  def _start_both(self, rule, samplings, examples):
    """Return the states of all rows, and of each example in a batch of two."""
    alone = lambda example: self.start(rule, samplings, example[None], 2)[2]
    numbers = jnp.arange(len(self.pair.limits))
    return self.start(rule, samplings, examples)[2], jax.vmap(alone)(numbers)

  def begin(self, rule: contracts.Rule) -> state_lib.State:
    """Return the states of all examples before any token.

    Raises:
      AssertionError: if the state of the drafter or of the policy has not one
        entry per row, or another one beside other rows, which requests that
        take the place of others need.
    """
    count = len(self.pair.limits)
    examples = np.resize(np.arange(count), ROWS)
    state, alone = jax.device_get(self._begin(rule, self.samplings, examples))
    for part in 'draft_state', 'policy_state':
      leaves, own_leaves = (
          jax.tree.leaves(getattr(each, part)) for each in (state, alone)
      )
      for leaf, own in zip(leaves, own_leaves):
        # Caches differ by rounding, and in slots that nothing reads.
        is_cache = part == 'draft_state' and leaf.ndim > 1
        if leaf.shape[:1] != (ROWS,) or not (
            is_cache or np.allclose(leaf, own[examples, 0], 1e-4, 1e-5)
        ):
          raise AssertionError(
              f'{self.name}: {part} begins with an array of shape'
              f' {leaf.shape} for {ROWS} rows. It must have one entry per row,'
              ' the same for an input in every batch and place, because new'
              ' requests take the place of single rows.'
          )
    return take(state, np.arange(count))

  def draft(self, rule, examples, state, uniforms) -> contracts.Draft:
    """Return the drafts of any number of rows, see `step.drafted`."""
    return self._in_parts(self._draft, rule, examples, state, uniforms)

  def step(self, rule, examples, state, uniforms) -> state_lib.State:
    """Make one step of any number of rows."""
    return self._in_parts(self._step, rule, examples, state, uniforms)

  def step_alone(self, rule, examples, state, uniforms) -> state_lib.State:
    """Make one step of rows, each in a batch of nothing but itself."""
    return self._in_parts(self._step_alone, rule, examples, state, uniforms)

  def _in_parts(self, function, rule, examples, state, uniforms):
    found = []
    for i in range(0, len(examples), ROWS):
      count = min(ROWS, len(examples) - i)
      rows = i + np.arange(ROWS) % count
      after = function(
          rule,
          self.samplings,
          examples[rows],
          take(state, rows),
          words(uniforms[rows]),
      )
      found.append(take(jax.device_get(after), np.arange(count)))
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


def _run_with(start: Callable, function: Callable) -> Callable:
  """Return a function of a step, which begins with some states."""

  def run(rule, samplings, examples, state, uniforms):
    setup, batch, _ = start(rule, samplings, examples, len(examples))
    return function(setup, batch, state, uniforms)

  return run


def _alone(run: Callable) -> Callable:
  """Return a function that runs each row in a batch of two copies of it."""

  def run_alone(rule, samplings, *rows):
    # Of one row, networks have another form: its arrays have no axis for it.
    twice = jax.tree.map(lambda x: jnp.stack([x, x], axis=1), rows)
    after = jax.vmap(functools.partial(run, rule, samplings))(*twice)
    return jax.tree.map(lambda x: x[:, 0], after)

  return run_alone


# These programs run for less time than it takes to optimize them.
_jit = functools.partial(
    jax.jit, compiler_options={'xla_backend_optimization_level': 0}
)


def take(tree: Any, rows: np.ndarray) -> Any:
  """Return some rows of all arrays."""
  return jax.tree.map(lambda x: np.asarray(x)[rows], tree)


def words(values) -> np.ndarray:
  """Return uniforms whose draws and coins are those of given numbers.

  Both words, [..., 2] uint32, are values in [0, 1) times 2^32, because a draw
  from one block uses the second alone, and a coin the first, up to 2^-32. They
  are for vocabularies of one block of a draw.
  """
  # In float64: float32 would round a value below 1 up to 2^32, which wraps.
  word = np.floor(np.asarray(values, np.float64) * 2**32).astype(np.uint32)
  return np.stack([word, word], axis=-1)


def _probs(pair: pairs.Pair, sampling: sampling_lib.Sampling):

  @functools.cache
  def find(example: int, tokens: tuple[int, ...]) -> np.ndarray:
    logits = jnp.asarray(pair.find_logits(example, tokens))
    return np.asarray(_standardize(logits, sampling), np.float64)

  return find


_standardize = jax.jit(sampling_lib.standardize)
