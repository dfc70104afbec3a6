# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The parts of decoding as compiled programs, each a loop of its own.

Each part is what the loop runs, standardization and drawing included. A row
stands in one place of its sequence all the time; shapes are fixed, so that
every place costs the same.

Legend: rows (examples times decodes), gamma (guesses a block), slots, calls,
vocab.
"""

from collections.abc import Callable
import dataclasses
import functools

from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5_decoding

MAX_STEPS = 64  # in one run of a loop
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


class PartPrograms:
  """The parts of one pair at one gamma.

  Compiled at the first call of a shape, and for no other law or input again.

  Attributes:
    decoder: the pair.
  """

  def __init__(self, decoder: token_decoder.TokenDecoder):
    self.decoder = decoder
    self._encode_target = jax.jit(
        functools.partial(t5_decoding.encode, decoder.target.config)
    )
    self._encode_draft = jax.jit(self._draft_context)
    self._init_state = jax.jit(self._make_state, static_argnums=2)
    self._plain = jax.jit(functools.partial(self._loop, self._plain_step))
    self._verify = jax.jit(functools.partial(self._loop, self._verify_step))
    self._call = jax.jit(functools.partial(self._loop, self._call_step))
    self._init_draft = jax.jit(self._make_draft_state)
    self._drafts = jax.jit(self._draft_loop, static_argnums=0)

  def bind(
      self, request: token_decoder.Request, num_steps: int = MAX_STEPS
  ) -> dict[str, Callable[[], object]]:
    """The programs for a batch like this one, as functions of nothing.

    Args:
      request: the batch.
      num_steps: in a run of a loop; no number compiles again.
    Returns:
      The encoders `encoder_target` and `encoder_draft`, and loops of so many
      steps: `t1`, `t_verify`, `t_draft2`, `drafts`, which is of whole drafts of
      gamma guesses, and of two at least, so that a later guess can be told from
      the first; and `t_call`, drafts and verifying in turns.
    """
    decoder, gamma = self.decoder, self.decoder.gamma
    tokens = request.encoder_input_tokens
    target, draft = decoder.target.params, decoder.draft.params
    _, context = self._encode_target(target, tokens)
    table = _uniforms(self._num_rows(request), decoder)
    draft_context, draft_state = self._init_draft(draft, request)
    first = self._init_state(context, request, 0)
    state = self._init_state(context, request, gamma)
    count = jnp.int32(num_steps)
    looped = (count, target, context, request, table)
    drafted = (count, draft, request, table, draft_context, draft_state)
    both = (count, (target, draft), (context, draft_context), request, table)
    bind = functools.partial
    return {
        'encoder_target': bind(self._encode_target, target, tokens),
        'encoder_draft': bind(self._encode_draft, draft, tokens),
        't1': bind(self._plain, *looped, first),
        't_verify': bind(self._verify, *looped, state),
        't_draft2': bind(self._drafts, 1, *drafted),
        'drafts': bind(self._drafts, max(gamma, 2), *drafted),
        't_call': bind(
            self._call, *both, state.replace(draft_state=draft_state)
        ),
    }

  def lower_verify(self, request: token_decoder.Request) -> jax.stages.Lowered:
    """The loop `t_verify`, to be compiled for devices that are not there.

    Args:
      request: of shapes alone, as the decoder's models are.
    """
    decoder = self.decoder
    params = decoder.target.params
    with decoder.scope():
      _, context = self._encode_target.eval_shape(
          params, request.encoder_input_tokens
      )
      table = jax.eval_shape(
          lambda: _uniforms(self._num_rows(request), decoder)
      )
      state = jax.eval_shape(
          lambda c, r: self._make_state(c, r, decoder.gamma), context, request
      )
      count = jax.ShapeDtypeStruct((), jnp.int32)
      return self._verify.lower(count, params, context, request, table, state)

  def _num_rows(self, request: token_decoder.Request) -> int:
    return request.limits.shape[0] * self.decoder.num_decodes

  @property
  def _position(self) -> int:
    return self.decoder.length // 4  # about the middle of a typical output

  def _rows(self, request: token_decoder.Request) -> speculation.Rows:
    count = self._num_rows(request)
    keys = speculation.row_keys(request.seed, jnp.zeros((count,), int))
    limits = jnp.full((count,), self.decoder.length, jnp.int32)
    return speculation.Rows(keys, limits)

  def _make_state(self, context, request, gamma: int) -> speculation.State:
    return speculation.init_state(
        self.decoder.target_decoder,
        context,
        self._rows(request),
        length=self.decoder.length,
        gamma=gamma,
    )

  def _loop(self, step, num_steps, params, context, request, table, state):
    """Steps of the target."""
    rows = self._rows(request)

    def body(i, state):
      state = self._rewound(i, state)
      uniforms = speculation.uniforms_of(state, table)
      return step(params, context, request, rows, state, uniforms)

    return lax.fori_loop(0, num_steps, body, state)

  def _plain_step(self, params, context, request, rows, state, uniforms):
    setup = speculation.Plain(
        self.decoder.target_decoder, params, context, request.sampling
    )
    return speculation.plain_step(setup, rows, state, uniforms[:, :1])

  def _verify_step(self, params, context, request, rows, state, uniforms):
    decoder = self.decoder
    constant = _Constant(
        decoder.gamma, len(rows.limits), decoder.target.config.vocab_size
    )
    return self._speculative_step(
        constant, (params, None), (context, None), request, rows, state,
        uniforms,
    )  # fmt: skip

  def _call_step(self, params, contexts, *rest):
    return self._speculative_step(
        self.decoder.drafter, params, contexts, *rest
    )

  def _speculative_step(
      self, drafter, params, contexts, request, rows, state, uniforms
  ):
    """Parameters and contexts are pairs, of target and draft."""
    setup = speculation.Speculation(
        self.decoder.target_decoder, params[0], contexts[0], drafter, params[1],
        contexts[1], request.sampling, request.draft_sampling,
        rule=request.rule,
    )  # fmt: skip
    return speculation.speculative_step(setup, rows, state, uniforms)

  def _draft_context(self, params, tokens):
    with partitioning.axis_rules(self.decoder.drafter.rules):
      return self.decoder.drafter.encode(params, tokens)

  def _make_draft_state(self, params, request):
    slots = speculation.cache_slots(
        self.decoder.length, max(self.decoder.gamma, 2)
    )
    return self.decoder.drafter.init(
        params,
        request.encoder_input_tokens,
        None,
        self._num_rows(request),
        slots,
    )

  def _draft_loop(
      self, gamma: int, num_steps, params, request, table, context, state
  ):
    """Whole drafts of gamma guesses."""
    drafter = dataclasses.replace(self.decoder.drafter, gamma=gamma)
    count, length = self._num_rows(request), self.decoder.length
    num_tokens = jnp.full((count,), self._position, jnp.int32)
    width = min(gamma, length)

    def body(i, carry):
      state, sequences = carry
      guesses, state, _ = drafter.propose(
          params, context, state, None, sequences, num_tokens,
          table[i % length][:, :gamma], request.draft_sampling,
      )  # fmt: skip
      # The next draft must depend on this one, or it could be hoisted.
      tokens = guesses.tokens[:, :width]
      return state, sequences.at[:, :width].set(tokens)

    sequences = jnp.full((count, length), _GUESS, jnp.int32)
    return lax.fori_loop(0, num_steps, body, (state, sequences))

  def _rewound(self, i, state: speculation.State) -> speculation.State:
    """The state as if the rows stood where they always do."""
    fill = lambda x, value: jnp.full_like(x, value)
    return state.replace(
        num_tokens=fill(state.num_tokens, self._position),
        num_calls=fill(state.num_calls, i % self.decoder.length),
        has_ended=fill(state.has_ended, False),
    )


def _uniforms(rows: int, decoder: token_decoder.TokenDecoder) -> jax.Array:
  """What the loop draws beforehand: [calls, rows, uniforms a call]."""
  count = 2 * max(decoder.gamma, 2) + 1
  shape = (decoder.length, rows, count)
  return jax.random.uniform(jax.random.key(0), shape)
