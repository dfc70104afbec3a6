# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The times of the parts that decoding consists of.

Each part is what the loop runs, standardization and drawing included, in a
compiled loop of its own. A part is timed over and over in one place of the
sequence; shapes are fixed, so that every place costs the same.

Legend: examples, rows (examples times decodes), gamma (guesses a block), slots,
vocab.
"""

from collections.abc import Callable
import dataclasses
import functools
import time
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import analysis
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5_decoding

STEPS = 64  # in one compiled loop
_GUESS = 5  # any token that does not end a row


@dataclasses.dataclass(frozen=True)
class _Constant:
  """Guesses the same tokens at no cost, so that only verifying is timed."""

  gamma: int
  rows: int
  vocab_size: int

  def propose(self, params, context, state, target_cache, *unused):
    draft = seam.Draft(
        tokens=jnp.full((self.rows, self.gamma), _GUESS, jnp.int32),
        lengths=jnp.full((self.rows,), self.gamma, jnp.int32),
        probs=jnp.full(
            (self.rows, self.gamma, self.vocab_size), 1 / self.vocab_size
        ),
        is_point_mass=jnp.zeros((self.rows,), bool),
    )
    return draft, state, target_cache


class Parts:
  """The parts of a pair's decoding, compiled, to be timed in rounds.

  Attributes:
    seconds: by name, a value for each round: the encoders `encoder_target` and
      `encoder_draft` on one batch, and a step each of `t1`, `t_verify`,
      `t_draft2` and `t_draft` (see `docs/run_record.md`).
  """

  def __init__(
      self,
      decoder: token_decoder.TokenDecoder,
      request: token_decoder.Request,
  ):
    """Compiles all parts and runs each once.

    Args:
      decoder: the pair, and gamma.
      request: a batch of the shape that is decoded.
    """
    self._decoder = decoder
    self._request = decoder.place(request)
    self._rows = len(request.limits) * decoder.num_decodes
    self._table = _uniforms(self._rows, decoder)
    with decoder.scope():
      self._programs = self._compile()
      for program in self._programs.values():
        jax.block_until_ready(program())
    self.seconds: dict[str, list[float]] = {
        name: [] for name in (*self._programs, 't_draft') if name != '_drafts'
    }

  def time_round(self) -> None:
    """Times every part once more."""
    with self._decoder.scope():
      spans = {name: seconds(run) for name, run in self._programs.items()}
    drafts = spans.pop('_drafts')
    later = max(self._decoder.gamma, 2) - 1
    spans['t_draft'] = max(drafts - spans['t_draft2'], 0.0) / later
    for name, span in spans.items():
      is_loop = not name.startswith('encoder')
      self.seconds[name].append(span / STEPS if is_loop else span)

  def median(self, name: str) -> float:
    """Median seconds of a part."""
    return float(np.median(self.seconds[name]))

  def times(self) -> analysis.StepTimes:
    """Median times, of the encoders those of one batch."""
    encoders = (self.median(f'encoder_{n}') for n in ('target', 'draft'))
    steps = ('t1', 't_verify', 't_draft', 't_draft2')
    return analysis.StepTimes(
        *encoders, *(self.median(name) * 1e3 for name in steps)
    )

  def _compile(self) -> dict[str, Callable[[], Any]]:
    decoder, tokens = self._decoder, self._request.encoder_input_tokens
    target, draft = decoder.target, decoder.draft
    encode_target = jax.jit(
        functools.partial(t5_decoding.encode, target.config)
    )
    encode_draft = jax.jit(decoder.drafter.encode)
    _, context = encode_target(target.params, tokens)
    state = functools.partial(self._init_state, context)
    return {
        'encoder_target': lambda: encode_target(target.params, tokens),
        'encoder_draft': lambda: encode_draft(draft.params, tokens),
        't1': self._looped(self._plain_step, context, state(0)),
        't_verify': self._looped(
            self._verify_step, context, state(decoder.gamma)
        ),
        't_draft2': self._drafting(1),
        # At least two guesses, so that a later one can be told from the first.
        '_drafts': self._drafting(max(decoder.gamma, 2)),
    }

  def _looped(self, step, context, state) -> Callable[[], Any]:
    """A compiled loop of the target's steps, bound to its arguments."""

    def program(params, context, request, table, state):
      rows = self._limits(request)

      def body(i, state):
        state = self._rewound(i, state)
        uniforms = speculation.uniforms_of(state, table)
        return step(params, context, request, rows, state, uniforms)

      return lax.fori_loop(0, STEPS, body, state)

    return functools.partial(
        jax.jit(program), self._decoder.target.params, context, self._request,
        self._table, state,
    )  # fmt: skip

  def _plain_step(self, params, context, request, rows, state, uniforms):
    setup = speculation.Plain(
        self._decoder.target_decoder, params, context, request.sampling
    )
    return speculation.plain_step(setup, rows, state, uniforms[:, :1])

  def _verify_step(self, params, context, request, rows, state, uniforms):
    decoder = self._decoder
    constant = _Constant(
        decoder.gamma, self._rows, decoder.target.config.vocab_size
    )
    setup = speculation.Speculation(
        decoder.target_decoder, params, context, constant, None, None,
        request.sampling, request.draft_sampling, rule=request.rule,
    )  # fmt: skip
    return speculation.speculative_step(setup, rows, state, uniforms)

  def _drafting(self, gamma: int) -> Callable[[], Any]:
    """A compiled loop of whole drafts of so many guesses."""
    decoder, request = self._decoder, self._request
    drafter = dataclasses.replace(decoder.drafter, gamma=gamma)
    slots = speculation.cache_slots(decoder.length, max(decoder.gamma, 2))
    init = functools.partial(drafter.init, batch=self._rows, slots=slots)
    context, state = jax.jit(init)(
        decoder.draft.params, request.encoder_input_tokens, None
    )

    def program(params, context, request, table, state, sequences):
      num_tokens = jnp.full((self._rows,), self._position, jnp.int32)

      def body(i, carry):
        state, sequences = carry
        guesses, state, _ = drafter.propose(
            params, context, state, None, sequences, num_tokens,
            table[i % self._decoder.length][:, :gamma],
            request.draft_sampling,
        )  # fmt: skip
        # The next draft must depend on this one, or it could be hoisted.
        width = min(gamma, self._decoder.length)
        tokens = guesses.tokens[:, :width]
        return state, sequences.at[:, :width].set(tokens)

      return lax.fori_loop(0, STEPS, body, (state, sequences))

    sequences = jnp.full((self._rows, decoder.length), _GUESS, jnp.int32)
    return functools.partial(
        jax.jit(program), decoder.draft.params, context, request, self._table,
        state, sequences,
    )  # fmt: skip

  @property
  def _position(self) -> int:
    return self._decoder.length // 4  # about the middle of a typical output

  def _init_state(self, context, gamma: int) -> speculation.State:
    decoder = self._decoder
    return jax.jit(
        lambda context: speculation.init_state(
            decoder.target_decoder,
            context,
            self._limits(self._request),
            length=decoder.length,
            gamma=gamma,
        )
    )(context)

  def _limits(self, request) -> speculation.Rows:
    keys = speculation.row_keys(request.seed, jnp.zeros((self._rows,), int))
    return speculation.Rows(
        keys, jnp.full((self._rows,), self._decoder.length, jnp.int32)
    )

  def _rewound(self, i, state: speculation.State) -> speculation.State:
    """The state as if the row stood where it always does."""
    fill = lambda x, value: jnp.full_like(x, value)
    return state.replace(
        num_tokens=fill(state.num_tokens, self._position),
        num_calls=fill(state.num_calls, i % self._decoder.length),
        has_ended=fill(state.has_ended, False),
    )


def _uniforms(rows: int, decoder: token_decoder.TokenDecoder) -> jax.Array:
  """What the loop draws beforehand: [calls, rows, uniforms a call]."""
  count = 2 * max(decoder.gamma, 2) + 1
  shape = (decoder.length, rows, count)
  return jax.random.uniform(jax.random.key(0), shape)


def seconds(program: Callable[[], Any]) -> float:
  start = time.perf_counter()
  jax.block_until_ready(program())
  return time.perf_counter() - start
