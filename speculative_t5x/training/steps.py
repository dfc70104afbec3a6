# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiled train steps and evaluation.

Steps run in a `lax.scan` over rows of indices into examples that stay on the
device, so that one launch runs any number of steps. The gradient of the
embedding is a scatter: its sums are nondeterministic on a GPU unless XLA is set
to be deterministic; on CPU and TPU they are deterministic.

Legend: batch, length (of the targets), num_steps.
"""

import abc
from collections.abc import Callable, Mapping
import functools
from typing import Any

from flax import struct
from flax.training import train_state
import jax
from jax import lax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches

Params = Any


@struct.dataclass
class Sums:
  """Sums over target tokens, each float32 [], or [num_steps] for several."""

  loss: ArrayLike
  num_correct: ArrayLike  # target tokens with the largest logit
  num_tokens: ArrayLike  # target tokens


def sums(
    logits: Float[Array, 'batch length vocab'],
    targets: Int[Array, 'batch length'],
    losses: Float[Array, 'batch length'],
) -> Sums:
  """Sum the losses of tokens over a batch, and count its tokens.

  Logits and losses are float32, targets int32. A place without a token
  (`contracts.NO_TOKEN`) has weight 0.
  """
  is_token = targets != contracts.NO_TOKEN
  # Selected, because a loss may be inf where nothing is to be learnt.
  over_tokens = lambda x: jnp.sum(jnp.where(is_token, x, 0.0))
  is_correct = jnp.argmax(logits, axis=-1) == targets
  return Sums(
      loss=over_tokens(losses),
      num_correct=over_tokens(is_correct.astype(jnp.float32)),
      num_tokens=over_tokens(1.0),
  )


class Objective(abc.ABC):
  """Loss that training minimises, a mean over target tokens.

  An objective is a pytree, whose arrays (such as the parameters of a teacher)
  training does not change.

  Parameters are always float32.
  """

  @abc.abstractmethod
  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """Return the shardings of the trained parameters on a mesh."""

  @abc.abstractmethod
  def loss(
      self, params: Params, batch: batches.TokenPairs, dropout_key: jax.Array
  ) -> tuple[jax.Array, Sums]:
    """Return the sum of the losses of a batch, and sums to be shown."""


# Takes an objective, parameters and a batch. Returns sums over its tokens by
# their names, [] float32 each, and the number of tokens as 'num_tokens'.
Measure = Callable[..., dict[str, jax.Array]]


def init_params(network: network_lib.Network, seed: int) -> Params:
  """Draw float32 parameters."""
  params_key, _ = _keys(seed)
  return jax.jit(network.init)(params_key)


def place(
    state: train_state.TrainState,
    objective: Objective,
    mesh: jax.sharding.Mesh | None,
) -> train_state.TrainState:
  """Put a state on the devices of a mesh; without one, return it.

  Parameters are partitioned along the model axis. The optimizer's state is
  replicated: of a factored parameter it is small.
  """
  if mesh is None:
    return state
  whole = sharding.replicated(mesh)
  return jax.device_put(state, whole).replace(
      params=jax.device_put(state.params, objective.shardings(mesh))
  )


def make_train_steps(
    seed: int,
    num_parts: int = 1,
    state_shardings: train_state.TrainState | None = None,
) -> Callable[
    [Objective, train_state.TrainState, batches.TokenPairs, ArrayLike],
    tuple[train_state.TrainState, Sums],
]:
  """Make the function that trains for several steps per call.

  Args:
    seed: Seed of the dropout masks, which also depend on the step.
    num_parts: Gradient accumulation: each batch is divided into this many
      parts, which are computed one after the other and need less memory.
    state_shardings: Where each array of the new state lies; None for one
      device.
  Returns:
    A compiled function from the objective, the state (whose buffers are
    donated), all examples and indices [num_steps, batch] int32 to the new state
    and the metrics of each step, [num_steps]. Each value of num_steps is
    compiled once.
  """
  _, dropout_key = _keys(seed)

  def train_step(objective, examples, state, indices):
    batch = examples.take(indices)
    grads, metrics = _gradient(
        objective,
        state.params,
        batch,
        jax.random.split(
            jax.random.fold_in(dropout_key, state.step), num_parts
        ),
    )
    # Over all parts at once: parts may have unequal numbers of tokens. Each
    # target ends with an end of sequence, so that no batch has none.
    grads = jax.tree.map(lambda grad: grad / metrics.num_tokens, grads)
    return state.apply_gradients(grads=grads), metrics

  @functools.partial(
      jax.jit, donate_argnums=1, out_shardings=(state_shardings, None)
  )
  def train_steps(objective, state, examples, indices):
    return lax.scan(
        functools.partial(train_step, objective, examples), state, indices
    )

  return train_steps


def _gradient(
    objective: Objective,
    params: Params,
    batch: batches.TokenPairs,
    dropout_keys: jax.Array,
) -> tuple[Params, Sums]:
  """Compute the gradient of the sum of losses, and the metrics of a batch.

  `dropout_keys`, [parts], has one per part of the batch.
  """
  num_parts = dropout_keys.shape[0]
  # Part i takes the examples i, i + num_parts, ...: then each device of the
  # data axis has its share of every part.
  parts = jax.tree.map(
      lambda x: jnp.swapaxes(x.reshape(-1, num_parts, *x.shape[1:]), 0, 1),
      batch,
  )

  def of_part(part, key):
    part = jax.tree.map(
        lambda x: sharding.constrain(x, ('batch', 'length')), part
    )
    compute = jax.grad(objective.loss, has_aux=True)
    return compute(params, part, key)

  def add(total, part):
    return jax.tree.map(jnp.add, total, of_part(*part)), None

  # The scan's first sum: zeros of the shapes and dtypes that a part has.
  one = jax.tree.map(lambda x: x[0], (parts, dropout_keys))
  zeros = jax.tree.map(
      lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(of_part, *one)
  )
  return lax.scan(add, zeros, (parts, dropout_keys))[0]


class Validation:
  """Measures parameters on given examples by teacher forcing."""

  def __init__(
      self,
      objective: Objective,
      measures: Mapping[str, tuple[Measure, batches.TokenPairs]],
      score: Callable[[Mapping[str, float]], float],
  ):
    """Put the examples on the device.

    By the suffix of its names there is what measures a batch, with all batches,
    arrays of shape [num_batches, batch, length], see `batches.in_order`. Given
    what was measured, `score` returns the number that chooses the best
    checkpoint; higher is better.
    """
    self.score = score
    self._objective = objective
    self._measures = {
        suffix: (
            jax.jit(functools.partial(_summed, measure)),
            jax.device_put(examples),
        )
        for suffix, (measure, examples) in measures.items()
    }

  def __call__(self, params: Params) -> dict[str, float]:
    """Return means over all tokens by their names."""
    found = {}
    for suffix, (measure, examples) in self._measures.items():
      sums = measure(self._objective, params, examples)
      num_tokens = sums.pop('num_tokens')
      for name, total in sums.items():
        found[f'{name}{suffix}'] = float(total / num_tokens)
    return found


def _summed(
    measure: Measure, objective: Objective, params: Params, examples: Any
) -> dict[str, jax.Array]:
  sums = lax.map(lambda batch: measure(objective, params, batch), examples)
  return jax.tree.map(lambda x: jnp.sum(x, axis=0), sums)


def _keys(seed: int) -> tuple[jax.Array, jax.Array]:
  """Return the keys of the initial parameters and of dropout.

  The keys are Threefry's, independent of JAX's default, so that a resumed
  training run draws the same masks as the interrupted one.
  """
  return tuple(jax.random.split(jax.random.key(seed, impl='threefry2x32')))
