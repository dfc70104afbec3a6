# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids in, token ids out: both encoders and the loop, compiled once.

Legend: examples, num_decodes (samples an example), rows (examples times
num_decodes, an example's next to each other), inputs_length, length (of the
outputs), gamma (guesses a block).
"""

from collections.abc import Iterator
import contextlib
import copy
import functools
import operator
import reprlib
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import loading
from speculative_t5x import loops
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import sharding
from speculative_t5x import speculation
from speculative_t5x import verification
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import recording
from speculative_t5x.networks import t5_decoding


@struct.dataclass
class Request:
  """A batch to decode. No value of it recompiles, only its shape does.

  Attributes:
    encoder_input_tokens: [examples, inputs_length] int32; 0 is padding.
    example_ids: [examples] int32. A row's sample depends on seed, example id
      and decode number alone, whatever else is in the batch.
    limits: [examples] int32, most tokens of each output, at most the decoder's
      length; 0 for an example that only pads the batch.
    seed: int32 scalar.
    sampling: the target's law, which the outputs follow.
    draft_sampling: the draft's law.
    rule: which guesses are kept. Any but the default changes the law of the
      outputs.
  """

  encoder_input_tokens: jax.Array
  example_ids: jax.Array
  limits: jax.Array
  seed: jax.Array
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  rule: verification.Rule = verification.TOKENWISE


@struct.dataclass
class Decoded:
  """Token ids, and what happened on the way.

  Attributes:
    sequences: [rows, length] int32, with the end of sequence (1), 0 after it.
    num_tokens: [rows] int32, end of sequence included.
    log_probs: [rows] float32.
    num_calls: [rows] int32, target calls.
    num_steps: int32 scalar, steps of the compiled loop.
    statistics: counts a row; of a plain run, all 0.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  num_steps: jax.Array
  statistics: speculation.Statistics


def check_int32(name: str, value: int) -> None:
  """Checks that a number fits a request.

  Any integer type will do. A float will not, even if it is whole: float32
  merges large example ids.

  Raises:
    ValueError: naming what is no integer or not of 32 bits.
  """
  limits = np.iinfo(np.int32)
  try:
    fits = limits.min <= operator.index(value) <= limits.max
  except TypeError:
    fits = False
  if not fits:
    plain = value.tolist() if hasattr(value, 'tolist') else value
    raise ValueError(
        f'{name} must be an integer of 32 bits, got {reprlib.repr(plain)}.'
    )


def check_finite(decoded: Decoded) -> None:
  """Checks that no logits were lost to overflow on the way.

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
  """The decodes of each example by score, in T5X's order.

  Args:
    decoded: as numpy arrays.
    num_decodes: rows an example.
  Returns:
    Sequences [examples, num_decodes, length] int32 and their log-probabilities
    [examples, num_decodes] float32, ascending; equal ones as they were decoded.
  """
  columns = decoded.sequences, decoded.log_probs
  return jax.device_get(
      loops.best_last(decoded.log_probs, columns, num_decodes)
  )


class TokenDecoder:
  """A target and a draft, and two compiled functions from tokens to tokens.

  Both models lie on one device or on one mesh, each by its own rules. On a mesh
  the examples of a request are dealt out along its data axis.
  """

  def __init__(
      self,
      target: loading.Model,
      draft: loading.Model,
      *,
      gamma: int,
      length: int,
      num_decodes: int = 1,
      rescale_log_probs: bool = True,
      num_valid_tokens: int | None = None,
      may_end: bool = True,
      matmul_precision: str | None = None,
  ):
    """Binds two models; compiles nothing yet. All arguments are static.

    Args:
      target: whose law the outputs follow.
      draft: any T5 that shares the vocabulary.
      gamma: guesses a block, at least 1.
      length: of the longest output, at least 1.
      num_decodes: samples an example.
      rescale_log_probs: score under the law sampled from (True, T5X's
        default), or under the model's own (False).
      num_valid_tokens: if given, ids from there on are forbidden.
      may_end: whether the end of sequence may be written. Without it every
        output has all of its limit's tokens.
      matmul_precision: JAX's setting for matrix products; None leaves it.
    Raises:
      ValueError: for gamma, length or num_decodes below 1, a gamma above the
        length, or for models on different meshes.
    """
    for name, value in (('length', length), ('num_decodes', num_decodes)):
      if value < 1:
        raise ValueError(f'{name} must be at least 1, got {value}.')
    self.target = target
    self.mesh = target.mesh
    self.length = length
    self.num_decodes = num_decodes
    self.matmul_precision = matmul_precision
    self._rescale_log_probs = rescale_log_probs
    forbidden = () if may_end else (speculation.EOS_ID,)
    self._bind = lambda config: t5_decoding.block_decoder(
        config, num_valid_tokens, forbidden
    )
    self.target_decoder = self._bind(target.config)
    # Bound to a copy that has no draft yet: all that is made by `with_draft`
    # shares it, and a draft that was replaced must not stay in memory.
    self._jit_plain = jax.jit(copy.copy(self)._plain)
    self._bind_draft(draft, gamma)

  def _bind_draft(self, draft: loading.Model, gamma: int) -> None:
    if self.mesh != draft.mesh:
      raise sharding.MeshError(
          f'The target lies on the mesh {sharding.describe(self.mesh)} and'
          f' the draft on {sharding.describe(draft.mesh)} ({{}} is one'
          ' device). Load both onto one mesh.'
      )
    if gamma > self.length:
      raise ValueError(
          f'gamma is {gamma}, but an output has at most {self.length} tokens:'
          f' more draft tokens cannot be kept. Give at most {self.length}.'
      )
    self.draft = draft
    self.gamma = gamma
    config = draft.config  # and not the draft, whose weights a cache could keep
    self.drafter = draft_model.DraftModel(
        decoder=self._bind(config),
        encode=lambda params, tokens: t5_decoding.encode(
            config, params, tokens
        )[1],
        gamma=gamma,
        vocab_size=self.target.config.vocab_size,
        rules=draft.rules,
    )
    self._jit_speculative = jax.jit(
        lambda *args: self._speculative(self.drafter, *args)[0]
    )
    self._jit_recorded = jax.jit(
        functools.partial(self._speculative, recording.Recording(self.drafter))
    )

  def with_draft(
      self, draft: loading.Model, gamma: int
  ) -> 'TokenDecoder':
    """The same target with another draft or gamma.

    What has been compiled for plain decoding stays compiled.
    """
    other = copy.copy(self)
    other._bind_draft(draft, gamma)
    return other

  def speculative(self, request: Request) -> Decoded:
    """Decodes speculatively; asynchronous, as all of JAX."""
    request = self.place(request)
    with self.scope():
      return self._jit_speculative(
          self.target.params, self.draft.params, request
      )

  def recorded(
      self, request: Request
  ) -> tuple[Decoded, recording.RecordingState]:
    """Decodes speculatively and keeps every draft, to be looked at."""
    request = self.place(request)
    with self.scope():
      return self._jit_recorded(
          self.target.params, self.draft.params, request
      )

  def plain(self, request: Request) -> Decoded:
    """Decodes by the target alone, one token a call."""
    request = self.place(request)
    with self.scope():
      return self._jit_plain(self.target.params, request)

  def compile_speculative(self, request: Request) -> jax.stages.Compiled:
    """The compiled program of `speculative`, to be read or timed.

    A request of shapes alone must say where they lie.
    """
    request = self.place(request)
    with self.scope():
      return self._jit_speculative.lower(
          self.target.params, self.draft.params, request
      ).compile()

  def compile_plain(self, request: Request) -> jax.stages.Compiled:
    """The compiled program of `plain`; see `compile_speculative`."""
    request = self.place(request)
    with self.scope():
      return self._jit_plain.lower(self.target.params, request).compile()

  def place(self, request: Request) -> Request:
    """Puts a request where it is decoded, if it does not lie there yet.

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
    """What the functions of these models are traced and called under."""
    with (
        jax.default_matmul_precision(self.matmul_precision),
        sharding.scope(self.mesh, self.target.rules),
    ):
      yield

  def _rows(self, request: Request) -> speculation.Rows:
    keys = speculation.row_keys(
        request.seed, request.example_ids, self.num_decodes
    )
    # A limit past the buffers would have the loop write beyond their ends.
    limits = jnp.minimum(request.limits, self.length)
    return speculation.Rows(keys, jnp.repeat(limits, self.num_decodes))

  def _speculative(
      self,
      drafter: seam.Drafter,
      target_params: seam.Params,
      draft_params: seam.Params,
      request: Request,
  ) -> tuple[Decoded, Any]:
    state, num_steps = loops.decode_speculatively(
        self._read(target_params, request.encoder_input_tokens),
        loops.Guesser(drafter, draft_params),
        self._rows(request),
        request.sampling,
        request.draft_sampling,
        length=self.length,
        rescale_log_probs=self._rescale_log_probs,
        rule=request.rule,
    )
    return _decoded(state, num_steps), state.draft_state

  def _plain(self, target_params: seam.Params, request: Request) -> Decoded:
    state, num_steps = loops.decode_plainly(
        self._read(target_params, request.encoder_input_tokens),
        self._rows(request),
        request.sampling,
        length=self.length,
        rescale_log_probs=self._rescale_log_probs,
    )
    return _decoded(state, num_steps)

  def _read(self, params: seam.Params, tokens: jax.Array) -> loops.Target:
    encoded, context = t5_decoding.encode(self.target.config, params, tokens)
    return loops.Target(self.target_decoder, params, tokens, encoded, context)


def _decoded(state: speculation.State, num_steps: jax.Array) -> Decoded:
  return Decoded(
      sequences=state.sequences,
      num_tokens=state.num_tokens,
      log_probs=state.log_probs,
      num_calls=state.num_calls,
      num_steps=num_steps,
      statistics=state.statistics,
  )
