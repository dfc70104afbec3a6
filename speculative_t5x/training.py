# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a T5 network by T5X's recipe: loss, Adafactor, steps.

The conventions are T5X's: cross entropy with z-loss, summed over the batch
unless a normalizer is set, padding weighing 0; Adafactor with second moments
factored from size 128 on, decay 0.8, updates clipped at 1 and scaled by the
parameter's own size. Steps run in a `lax.scan` over rows of indices into
examples that stay on the device, so a call costs one launch however many steps
it makes. The embedding's gradient is a scatter: on a GPU its sums depend on
the order of arrival unless XLA is told to be deterministic, on CPU and TPU
they do not.

Legend: batch, length (of the targets), vocab, num_steps.
Reference: Shazeer and Stern (2018), "Adafactor", arXiv:1804.04235.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import math
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int
import numpy as np
import optax

from speculative_t5x import batches
from speculative_t5x.networks import t5

Params = Any
LearningRateFn = Callable[[ArrayLike], ArrayLike]

NUM_REAL_TARGET_TOKENS = 'NUM_REAL_TARGET_TOKENS'
NUM_TOTAL_TARGET_TOKENS = 'NUM_TOTAL_TARGET_TOKENS'
_NORMALIZERS = (NUM_REAL_TARGET_TOKENS, NUM_TOTAL_TARGET_TOKENS)


@dataclasses.dataclass(frozen=True)
class LossConfig:
  """What is minimised, under T5X's names.

  Attributes:
    z_loss: weight of the squared logarithm of the softmax's normalizer, which
      keeps logits from drifting.
    label_smoothing: probability spread over the wrong tokens, in [0, 1).
    loss_normalizing_factor: what the batch's sum is divided by: None, as T5X
      has it by default, for nothing (Adafactor is all but blind to the scale
      of gradients); a number; NUM_REAL_TARGET_TOKENS; or
      NUM_TOTAL_TARGET_TOKENS, which counts padding too.
  """

  z_loss: float = 1e-4
  label_smoothing: float = 0.0
  loss_normalizing_factor: float | str | None = None

  def __post_init__(self):
    if not 0.0 <= self.label_smoothing < 1.0:
      raise ValueError(
          f'label_smoothing must be in [0, 1). Got {self.label_smoothing}.'
      )
    factor = self.loss_normalizing_factor
    if isinstance(factor, str) and factor not in _NORMALIZERS:
      raise ValueError(
          'loss_normalizing_factor must be None, a number or one of'
          f' {_NORMALIZERS}. Got {factor!r}.'
      )


@struct.dataclass
class TrainState:
  """All that a training carries from step to step.

  Attributes:
    step: [] int32, steps made.
    params: float32 parameters under T5X's names.
    opt_state: optax's state of `adafactor`.
  """

  step: jax.Array
  params: Params
  opt_state: optax.OptState


@struct.dataclass
class Metrics:
  """Sums over target tokens, each [] float32 (or [num_steps] of several).

  Attributes:
    loss: cross entropy and z-loss, before any normalizer.
    z_loss: the part of it that is z-loss.
    num_correct: tokens that were the most probable one.
    num_tokens: target tokens that are not padding.
  """

  loss: ArrayLike
  z_loss: ArrayLike
  num_correct: ArrayLike
  num_tokens: ArrayLike

  @property
  def loss_per_token(self) -> ArrayLike:
    return self.loss / self.num_tokens

  @property
  def accuracy(self) -> ArrayLike:
    """Correct tokens among target tokens, in [0, 1]."""
    return self.num_correct / self.num_tokens


# --- Loss ---


def cross_entropy(
    logits: Float[Array, '*shape vocab'],
    targets: Int[Array, '*shape'],
    *,
    z_loss: float = 0.0,
    label_smoothing: float = 0.0,
) -> tuple[Float[Array, '*shape'], Float[Array, '*shape']]:
  """Cross entropy of each token, z-loss added.

  With smoothing, the wanted token has probability 1 - label_smoothing and every
  other an equal share of the rest; as in T5X the entropy of that distribution
  is subtracted, so that the least possible loss is 0.

  Args:
    logits: [..., vocab] float32.
    targets: [...] int32 in [0, vocab).
    z_loss: weight of log(normalizer) squared.
    label_smoothing: in [0, 1). Static.
  Returns:
    The loss and the z-loss in it, [...] float32 each.
  """
  log_z = jax.nn.logsumexp(logits, axis=-1)
  target_logits = jnp.take_along_axis(logits, targets[..., None], axis=-1)
  loss = log_z - target_logits[..., 0]
  if label_smoothing:
    loss = _smooth(loss, logits, log_z, label_smoothing)
  weighted_z_loss = z_loss * jnp.square(log_z)
  return loss + weighted_z_loss, weighted_z_loss


def _smooth(loss, logits, log_z, label_smoothing: float) -> jax.Array:
  vocab = logits.shape[-1]
  share = label_smoothing / (vocab - 1)
  sum_of_all = vocab * log_z - logits.sum(axis=-1)
  confidence = 1.0 - label_smoothing
  smoothed = confidence * loss + share * (sum_of_all - loss)
  entropy = -confidence * np.log(confidence) - label_smoothing * np.log(share)
  return smoothed - entropy


def batch_loss(
    logits: Float[Array, 'batch length vocab'],
    targets: Int[Array, 'batch length'],
    config: LossConfig,
) -> tuple[Float[Array, ''], Metrics]:
  """The loss of a batch that is minimised, and the sums to report.

  Args:
    logits: [batch, length, vocab] float32.
    targets: [batch, length] int32; padding (0) weighs 0.
    config: see there.
  """
  weights = (targets > 0).astype(jnp.float32)
  losses, z_losses = cross_entropy(
      logits,
      targets,
      z_loss=config.z_loss,
      label_smoothing=config.label_smoothing,
  )
  is_correct = jnp.argmax(logits, axis=-1) == targets
  metrics = Metrics(
      loss=jnp.sum(losses * weights),
      z_loss=jnp.sum(z_losses * weights),
      num_correct=jnp.sum(is_correct * weights),
      num_tokens=jnp.sum(weights),
  )
  factor = config.loss_normalizing_factor
  if factor is None:
    return metrics.loss, metrics
  if factor == NUM_REAL_TARGET_TOKENS:
    factor = metrics.num_tokens
  elif factor == NUM_TOTAL_TARGET_TOKENS:
    factor = targets.size
  return metrics.loss / factor, metrics


# --- Optimizer ---


def rsqrt_decay(
    *, learning_rate: float = 0.01, warmup_steps: int = 1000
) -> LearningRateFn:
  """T5X's 'constant * linear_warmup * rsqrt_normalized_decay'.

  Args:
    learning_rate: reached after the warmup; relative to a parameter's size.
    warmup_steps: from 0 up to it; afterwards the rate falls with the square
      root of the step.
  """
  _check_schedule(learning_rate, warmup_steps)

  def schedule(step: ArrayLike) -> jax.Array:
    start = jnp.float32(max(warmup_steps, 1))
    warmup = jnp.minimum(1.0, step / start) if warmup_steps else 1.0
    return learning_rate * warmup * jnp.sqrt(start / jnp.maximum(step, start))

  return schedule


def _check_schedule(learning_rate: float, warmup_steps: int) -> None:
  _check_whole('warmup_steps', warmup_steps, least=0)
  is_number = isinstance(learning_rate, (int, float))
  if not is_number or not 0 <= learning_rate < math.inf:
    raise ValueError(
        'learning_rate must be a number from 0 on, got'
        f' {learning_rate!r}.'
    )


def _check_whole(name: str, value: int, least: int) -> None:
  if not isinstance(value, int) or value < least:
    raise ValueError(
        f'{name} must be a whole number of at least {least}, got {value!r}.'
    )


def linear_decay(
    *,
    train_steps: int,
    learning_rate: float = 0.01,
    warmup_steps: int = 1000,
    decay_steps: int | None = None,
) -> LearningRateFn:
  """Linear warmup, a constant rate, then linear decay to 0 at the end.

  Args:
    train_steps: steps of the whole training.
    learning_rate: the constant rate; relative to a parameter's size.
    warmup_steps: from 0 up to it.
    decay_steps: last steps in which it falls; None for half of them all.
  Raises:
    ValueError: if warmup and decay are longer than the training.
  """
  _check_whole('train_steps', train_steps, least=1)
  _check_schedule(learning_rate, warmup_steps)
  if decay_steps is None:
    decay_steps = train_steps // 2
  _check_whole('decay_steps', decay_steps, least=0)
  if warmup_steps + decay_steps > train_steps:
    raise ValueError(
        f'warmup_steps {warmup_steps} and decay_steps {decay_steps} (by default'
        f' half of train_steps) are more than the {train_steps} train_steps.'
        ' Lower them, in a gin file by WARMUP_STEPS and DECAY_STEPS.'
    )

  def schedule(step: ArrayLike) -> jax.Array:
    warmup = jnp.minimum(1.0, step / max(warmup_steps, 1))
    decay = jnp.minimum(1.0, (train_steps - step) / max(decay_steps, 1))
    return learning_rate * (warmup if warmup_steps else 1.0) * decay

  return schedule


def adafactor(
    learning_rate_fn: LearningRateFn,
) -> optax.GradientTransformation:
  """Adafactor with the settings of T5X's T5 1.1 recipe.

  Args:
    learning_rate_fn: learning rate of a step, the first being 0.
  """
  return optax.adafactor(
      learning_rate_fn,
      min_dim_size_to_factor=128,
      decay_rate=0.8,
      multiply_by_parameter_scale=True,
      clipping_threshold=1.0,
      momentum=None,
      eps=1e-30,
      factored=True,
  )


def to_param_states(opt_state: optax.OptState) -> Mapping[str, Any]:
  """The optimizer's state as T5X saves it: four arrays a parameter.

  Returns:
    A tree like the parameters', each replaced by a mapping of `v_row` and
    `v_col` (factored) or `v` (not), the others and `m` being [1] zeros.
  """
  v_row, v_col, v = (
      optax.tree_utils.tree_get(opt_state, name)
      for name in ('v_row', 'v_col', 'v')
  )
  # Without momentum T5X still saves a placeholder for it.
  state = lambda row, col, full: {
      'm': jnp.zeros(1), 'v': full, 'v_row': row, 'v_col': col
  }
  return jax.tree.map(state, v_row, v_col, v)


def from_param_states(
    optimizer: optax.GradientTransformation,
    step: int,
    params: Params,
    param_states: Mapping[str, Any],
) -> TrainState:
  """The inverse of `to_param_states`, for a training that resumes.

  Args:
    optimizer: of `adafactor`.
    step: steps made.
    params: parameters after them.
    param_states: as `to_param_states` gives it.
  """
  part = lambda name: jax.tree.map(
      lambda _, state: state[name], params, param_states
  )
  opt_state = optax.tree_utils.tree_set(
      optimizer.init(params),
      count=jnp.asarray(step, jnp.int32),
      v_row=part('v_row'),
      v_col=part('v_col'),
      v=part('v'),
  )
  state = TrainState(jnp.asarray(step, jnp.int32), params, opt_state)
  # A step takes over the state's memory, so no two leaves may share theirs
  # (the optimizer counts steps in two places) nor may the caller's be taken.
  return jax.tree.map(jnp.array, state)


# --- Steps ---


def init_state(
    config: t5.T5Config, optimizer: optax.GradientTransformation, seed: int
) -> TrainState:
  """Parameters drawn anew, at step 0."""
  tokens = jnp.ones((1, 1), jnp.int32)
  init = functools.partial(t5.Transformer(config).init, enable_dropout=False)
  params_key, _ = _keys(seed)
  params = jax.jit(init)(params_key, tokens, tokens, tokens)['params']
  return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


def make_train_steps(
    config: t5.T5Config,
    optimizer: optax.GradientTransformation,
    loss_config: LossConfig,
    seed: int,
) -> Callable[
    [TrainState, batches.Examples, ArrayLike], tuple[TrainState, Metrics]
]:
  """Makes the function that trains for several steps in one call.

  Args:
    config: of the network; its dropout rate and dtype are those of training,
      the parameters being float32 whatever the dtype.
    optimizer: of `adafactor`.
    loss_config: what is minimised.
    seed: of the dropout masks, which depend on it and on the step.
  Returns:
    A compiled function from the state (whose memory it takes over), all
    examples and indices [num_steps, batch] int32 to the new state and the
    metrics of each step, [num_steps]. Another num_steps compiles anew.
  """
  model = t5.Transformer(config)
  _, dropout_key = _keys(seed)

  def loss_fn(params, batch, key):
    logits = _teacher_forced(model, params, batch, rngs={'dropout': key})
    return batch_loss(logits, batch.targets, loss_config)

  def train_step(examples, state, indices):
    key = jax.random.fold_in(dropout_key, state.step)
    (_, metrics), grads = jax.value_and_grad(loss_fn, has_aux=True)(
        state.params, examples.take(indices), key
    )
    updates, opt_state = optimizer.update(
        grads, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, opt_state), metrics

  @functools.partial(jax.jit, donate_argnums=0)
  def train_steps(state, examples, indices):
    return lax.scan(functools.partial(train_step, examples), state, indices)

  return train_steps


def make_evaluate(
    config: t5.T5Config,
) -> Callable[[Params, batches.Examples], Metrics]:
  """Makes the function that scores examples by teacher forcing.

  Neither dropout nor z-loss nor label smoothing: `loss_per_token` is the
  cross entropy in nats, whatever the training minimises.

  Returns:
    A compiled function from parameters and examples of shape [num_batches,
    batch, length] (see `batches.in_order`) to metrics over all of them.
  """
  model = t5.Transformer(config)
  loss_config = LossConfig(z_loss=0.0)

  @jax.jit
  def evaluate(params, examples):
    def batch_metrics(batch):
      logits = _teacher_forced(model, params, batch, enable_dropout=False)
      return batch_loss(logits, batch.targets, loss_config)[1]

    return jax.tree.map(jnp.sum, lax.map(batch_metrics, examples))

  return evaluate


def _teacher_forced(model, params, batch: batches.Examples, **kwargs):
  return model.apply(
      {'params': params},
      batch.inputs,
      batches.shift_right(batch.targets),
      batch.targets,
      **kwargs,
  )


def _keys(seed: int) -> tuple[jax.Array, jax.Array]:
  """Keys of the first parameters and of dropout.

  Threefry whatever JAX's default is: a resumed training must draw the masks
  of the one that was interrupted.
  """
  return tuple(jax.random.split(jax.random.key(seed, impl='threefry2x32')))
