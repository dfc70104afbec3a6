# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids in, token ids out: both encoders and the loop, compiled once.

Legend: examples, num_decodes (samples per example), rows (examples times
num_decodes, an example's next to each other), inputs_length, length (of the
outputs), gamma (draft tokens per block).
"""

from collections.abc import Iterator, Sequence
import contextlib
import copy
import functools
import itertools
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import given
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import score_order
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification


@struct.dataclass
class Decoded:
  """Token ids, and what happened on the way.

  Attributes:
    sequences: [rows, length] int32, with the end of sequence, padding after.
    num_tokens: [rows] int32, end of sequence included.
    log_probs: [rows] float32.
    num_calls: [rows] int32, target calls.
    num_steps: int32 scalar, steps of the loop, see `loop.Work`.
    num_draft_steps: int32 scalar, see `loop.Work`.
    calls_by_width: [widths] int32, target calls, see `loop.Work`.
    statistics: Counts per row; None for plain decoding.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  num_steps: jax.Array
  num_draft_steps: jax.Array
  calls_by_width: jax.Array
  statistics: outcome_lib.Statistics | None


def check_finite(decoded: Decoded) -> None:
  """Check that no logits were lost to overflow on the way.

  Raises:
    ValueError: if a row's log-probability is not finite.
  """
  bad = np.flatnonzero(~np.isfinite(decoded.log_probs))
  if bad.size:
    raise ValueError(
        f'Row {bad[0]} of a batch has log-probability'
        f" {decoded.log_probs[bad[0]]}: the model's logits are not finite."
        ' Decode in float32, or use another checkpoint.'
    )


def best_last(
    decoded: Decoded, num_decodes: int
) -> tuple[np.ndarray, np.ndarray]:
  """Return the decodes of each example by score, in T5X's order.

  Args:
    decoded: What was decoded, as numpy arrays.
    num_decodes: Rows per example.
  Returns:
    Sequences [examples, num_decodes, length] int32 and their log-probabilities
    [examples, num_decodes] float32, ascending; equal ones as they were decoded.
  """
  columns = decoded.sequences, decoded.log_probs
  return jax.device_get(
      score_order.best_last(decoded.log_probs, columns, num_decodes)
  )


class TokenDecoder:
  """A target and a drafter as compiled functions from tokens to tokens.

  All parameters lie on one device or on one mesh. On a mesh the examples of a
  request are split along its data axis.
  """

  def __init__(
      self,
      target: models.Model,
      drafter: given.Given = None,
      *,
      gamma: int = 5,
      length: int = 128,
      num_decodes: int = 1,
      policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
      rescale_log_probs: bool = True,
      num_valid_tokens: int | None = None,
      may_end: bool = True,
      matmul_precision: str | None = None,
  ):
    """Bind target and drafter; compile nothing yet. All arguments are static.

    Args:
      target: Model whose distribution the outputs follow.
      drafter: Drafts for the target: a loaded model, a source that needs no
        checkpoint of the target, or a `source.Drafting`; None for lookup.
      gamma: Draft tokens per block, at least 1.
      length: Most tokens per output, at least 1.
      num_decodes: Samples per example.
      policy: Decides how many draft tokens are wanted of each row.
      rescale_log_probs: Whether to score under the distribution sampled from
        (True, T5X's default), or under the model's own (False).
      num_valid_tokens: Only ids below this number are written; None for all.
      may_end: Whether the end of sequence may be written. Without it every
        output has as many tokens as its limit allows.
      matmul_precision: JAX's setting for matrix products; None leaves it.
    Raises:
      ValueError: for gamma, length or num_decodes below 1, a gamma above the
        length, something that is not a policy, or a drafter that does not fit
        the target.
    """
    ranges.check_settings(
        ranges.COUNT, length=length, num_decodes=num_decodes
    )
    self.target = target
    self.mesh = target.mesh
    self.length = length
    self.num_decodes = num_decodes
    self.matmul_precision = matmul_precision
    draft_length.check(policy)
    self.policy = policy
    self._rescale_log_probs = rescale_log_probs
    self.target_model = network.NetworkModel(
        target.config,
        target.special_ids,
        num_valid_tokens,
        () if may_end else target.special_ids.ends,
    )
    # All that is made by `with_drafter` shares both, which must not keep a
    # replaced drafter in memory: no closure over this decoder, and a copy that
    # has no drafter yet. A network without an encoder is refused at its call.
    config = target.config
    self._jit_encode = jax.jit(
        lambda params, inputs: config.encode(params, inputs)
    )
    self._jit_plain = jax.jit(copy.copy(self)._plain)
    self._bind_drafter(drafter, gamma)

  def _bind_drafter(self, drafter: given.Given, gamma: int) -> None:
    drafter = given.load(drafter)
    if jax.tree.leaves(drafter.params) and self.mesh != drafter.mesh:
      raise sharding.MeshError(
          f'The target lies on the mesh {sharding.describe(self.mesh)} and'
          f' the drafter on {sharding.describe(drafter.mesh)} ({{}} is one'
          ' device). Load both onto one mesh.'
      )
    self.loaded_drafter = drafter
    self.drafter = self.make_drafter(gamma)
    if gamma > self.length:
      raise ValueError(
          f'gamma is {gamma}, but an output has at most {self.length} tokens:'
          f' more draft tokens cannot be kept. Give at most {self.length}.'
      )
    self.gamma = gamma
    self._jit_speculative = jax.jit(
        lambda *args: _decoded(*self._speculative(outcome_lib.COUNTING, *args))
    )
    self._jit_traced = jax.jit(
        functools.partial(self._speculative, outcome_lib.TRACING)
    )

  def make_drafter(self, gamma: int) -> contracts.Drafter:
    """Return the drafter of another gamma; see `source.Drafting`."""
    return self.loaded_drafter.drafter(self.target_model, gamma)

  def with_drafter(
      self,
      drafter: given.Given,
      gamma: int,
      policy: contracts.DraftLengthPolicy | None = None,
  ) -> 'TokenDecoder':
    """Return a decoder of the same target with another drafter or gamma.

    What has been compiled for plain decoding stays compiled.

    Args:
      drafter: Drafts for the target; see `__init__`.
      gamma: Draft tokens per block.
      policy: Another draft length policy; None for the same.
    """
    other = copy.copy(self)
    other.policy = policy or self.policy
    other._bind_drafter(drafter, gamma)
    return other

  def __repr__(self) -> str:
    return (
        f'TokenDecoder({self.target}, {self.loaded_drafter}, gamma'
        f' {self.gamma}, outputs of at most {self.length} tokens)'
    )

  @sampling_lib.as_one
  def generate(
      self,
      ids: Sequence[Sequence[int]],
      *,
      sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
      draft_sampling: sampling_lib.Sampling | None = None,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
      rule: contracts.Rule = verification.TOKENWISE,
  ) -> list[list[int]]:
    """Decode lists of token ids speculatively.

    Other powers of two of the number of inputs, or of the tokens of the longest
    one, are compiled anew; what fills both up is not decoded.

    Args:
      ids: Tokens of each input, with the end of sequence if the target was
        trained with one there. No input is empty.
      sampling: Sampling of the target; the default is argmax.
      draft_sampling: Sampling of the drafter; None for the target's. It changes
        the acceptance rate and never the distribution of the outputs.
      seed: Seed of the samples.
      example_ids: One id per input; 0, 1, ... by default.
      rule: Decides which draft tokens are accepted.
    Returns:
      Tokens of the best output per input, without end of sequence and padding.
    Raises:
      ValueError: for an empty input, an id that the target does not have, or a
        value out of range.
    """
    for index, row in enumerate(ids):
      if isinstance(row, str) or not hasattr(row, '__len__'):
        raise ValueError(f'ids[{index}] must be a list of ids, got {row!r}.')
    rows = requests_lib.check_rows(ids, example_ids)
    size = self.target_model.vocab_size
    for token in itertools.chain.from_iterable(ids):
      # It would be looked up as another id.
      if not 0 <= token < size or token != int(token):
        raise ValueError(
            f'Inputs must be token ids from 0 to {size - 1}, which the target'
            f' has, got {token}.'
        )
    (request,) = requests_lib.Requests(
        inputs_length=batching.power_of_two(max(map(len, ids))),
        length=self.length,
        batch_size=sharding.round_up(
            self.mesh, batching.power_of_two(len(rows))
        ),
        sampling=sampling,
        draft_sampling=draft_sampling,
        seed=seed,
        rule=rule,
    ).of(rows)
    decoded = jax.device_get(self.speculative(request))
    check_finite(decoded)
    sequences, _ = best_last(decoded, self.num_decodes)
    # A row without an end has as many tokens as fit, and no padding.
    ends = self.target_model.special_ids.ends
    return [
        list(itertools.takewhile(lambda token: token not in ends, row))
        for row in sequences[: len(ids), -1].tolist()
    ]

  @property
  def reads_hints(self) -> bool:
    """Whether the drafter uses the hints of a request."""
    return getattr(self.drafter, 'reads_hints', False)

  def check_reads_hints(self) -> None:
    """Raise ValueError unless the drafter uses the hints of a request."""
    source.check_reads_hints(self.drafter, self.loaded_drafter.description)

  def encode(self, request: requests_lib.Request) -> jax.Array:
    """Return the features of a request, see `Request`; asynchronous.

    Raises:
      ValueError: if the network of the target has no `encode`.
    """
    network.check_offers(self.target.config, 'encode', 'Reading inputs once')
    request = self.place(request)
    with self.scope():
      return self._jit_encode(self.target.params, request.inputs)

  def speculative(self, request: requests_lib.Request) -> Decoded:
    """Decode speculatively; asynchronous, as all of JAX."""
    args = self._speculative_args(request)
    with self.scope():
      return self._jit_speculative(*args)

  def traced(self, request: requests_lib.Request) -> outcome_lib.Trace:
    """Decode speculatively and return the outcome of every target call."""
    args = self._speculative_args(request)
    with self.scope():
      _, _, trace = self._jit_traced(*args)
    return trace

  def plain(self, request: requests_lib.Request) -> Decoded:
    """Decode by the target alone, one token per call."""
    args = self._plain_args(request)
    with self.scope():
      return self._jit_plain(*args)

  def compile_speculative(
      self, request: requests_lib.Request
  ) -> jax.stages.Compiled:
    """Return the compiled program of `speculative`, to be read or timed.

    A request of `jax.ShapeDtypeStruct`s must give their shardings.
    """
    args = self._speculative_args(request)
    with self.scope():
      return self._jit_speculative.lower(*args).compile()

  def compile_plain(self, request: requests_lib.Request) -> jax.stages.Compiled:
    """Return the compiled program of `plain`; see `compile_speculative`."""
    args = self._plain_args(request)
    with self.scope():
      return self._jit_plain.lower(*args).compile()

  def _speculative_args(self, request: requests_lib.Request) -> tuple[Any, ...]:
    if not self.reads_hints:  # another width of them would compile again
      request = request.replace(hints=None)
    request = self.place(request)
    return self.target.params, self.loaded_drafter.params, request

  def _plain_args(self, request: requests_lib.Request) -> tuple[Any, ...]:
    return self.target.params, self.place(request.replace(hints=None))

  def place(self, request: requests_lib.Request) -> requests_lib.Request:
    """Put a request where it is decoded, if it does not lie there yet.

    Raises:
      sharding.MeshError: if the data axis does not divide the examples.
    """
    if self.mesh is None:
      return request
    sharding.check_batch(self.mesh, len(request.example_ids))
    if isinstance(request.example_ids, jax.ShapeDtypeStruct):
      return request
    rows = sharding.named_sharding(
        self.mesh, sharding.REPLICATED, ['batch'], request.example_ids.shape
    )
    whole = sharding.replicated(self.mesh)
    return jax.tree.map(
        lambda x: jax.device_put(x, rows if jnp.ndim(x) else whole), request
    )

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Enter the context in which the models are traced and called."""
    with (
        jax.default_matmul_precision(self.matmul_precision),
        sharding.scope(self.mesh, self.target.rules),
    ):
      yield

  def _decode(
      self,
      setup: state_lib.Setup,
      fold: outcome_lib.Fold,
      request: requests_lib.Request,
  ) -> tuple[state_lib.State, loop.Work, Any]:
    keys = state_lib.row_keys(
        request.seed, request.example_ids, self.num_decodes
    )
    # A limit past the buffers would have the loop write beyond their ends.
    limits = jnp.minimum(request.limits, self.length)
    begun = state_lib.begin(
        setup,
        request.inputs,
        keys,
        jnp.repeat(limits, self.num_decodes),
        length=self.length,
        hints=request.hints,
        features=request.features,
    )
    return loop.decode(setup, begun, fold)

  def _speculative(
      self,
      fold: outcome_lib.Fold,
      target_params: contracts.Params,
      draft_params: contracts.Params,
      request: requests_lib.Request,
  ) -> tuple[state_lib.State, loop.Work, Any]:
    setup = state_lib.Setup(
        self.target_model,
        target_params,
        request.sampling,
        self.drafter,
        draft_params,
        request.draft_sampling,
        request.rule,
        self.policy,
        # Other rules may accept tokens that the distribution sampled from
        # rules out, which would have no score under it.
        rescale_log_probs=self._rescale_log_probs and request.rule.is_lossless,
    )
    return self._decode(setup, fold, request)

  def _plain(
      self, target_params: contracts.Params, request: requests_lib.Request
  ) -> Decoded:
    setup = state_lib.Setup(
        self.target_model,
        target_params,
        request.sampling,
        nothing.Nothing(),
        None,
        request.sampling,
        rescale_log_probs=self._rescale_log_probs,
    )
    return _decoded(*self._decode(setup, outcome_lib.NOTHING, request))


def _decoded(
    state: state_lib.State,
    work: loop.Work,
    statistics: outcome_lib.Statistics | None,
) -> Decoded:
  return Decoded(
      sequences=state.sequences,
      num_tokens=state.num_tokens,
      log_probs=state.log_probs,
      num_calls=state.num_calls,
      **work._asdict(),
      statistics=statistics,
  )
