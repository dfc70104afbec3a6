# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The parts of decoding as compiled programs, each a loop of its own.

Each part is what the loop runs, standardization and drawing included. A row
stands in one place of its sequence all the time; shapes are fixed, so that
every place costs the same.
"""

from collections.abc import Callable
import dataclasses
import functools

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import nothing
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from speculative_t5x.speculation import views
from speculative_t5x.speculation import widths

MAX_STEPS = 64  # in one run of a loop
_TOKEN = 5  # any token that does not end a row


@dataclasses.dataclass(frozen=True)
class _Constant:
  """Drafts the same tokens at no cost: gamma, or as its parameter says."""

  form: forms.Chain
  vocab_size: int

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    shape = (view.num_tokens.shape[0], self.form.gamma)
    lengths = view.num_wanted
    draft = contracts.Draft(
        tokens=jnp.full(shape, _TOKEN, jnp.int32),
        lengths=lengths if params is None else jnp.minimum(lengths, params),
        probs=jnp.full((*shape, self.vocab_size), 1 / self.vocab_size),
    )
    return draft, state


class PartPrograms:
  """The parts of the decoding of a decoder, compiled once per shape."""

  def __init__(self, decoder: token_decoder.TokenDecoder):
    self.decoder = decoder
    gamma, size = decoder.options.gamma, decoder.target.config.vocab_size
    self._drafts_trees = isinstance(decoder.drafter.form, forms.Tree)
    whole = forms.Chain(gamma, drafts_all_wanted=True)
    self._start_target = jax.jit(self._read_by_target)
    self._init_draft = jax.jit(self._read_by_drafter)
    self._begin = jax.jit(functools.partial(self._begin_with, decoder.drafter))
    self._begin_plain = jax.jit(self._begin_without_memory)
    self._plain = self._jit_loop(nothing.NoDrafter())
    self._verify = self._jit_loop(_Constant(whole, size))
    some = _Constant(forms.Chain(gamma), size)
    self._verify_some = self._jit_loop(some)
    self._call = self._jit_loop(decoder.drafter)
    self._drafts = jax.jit(self._draft_loop, static_argnums=0)

  @property
  def width_names(self) -> dict[int, str]:
    """Names of the parts that verify at each width, ascending.

    A tree has none of these: it is verified in a whole step alone.
    """
    if self._drafts_trees:
      return {}
    sizes = widths.of_block(self.decoder.options.gamma + 1)
    return {size: f't_width_{size}' for size in sizes}

  def bind(
      self, examples: input_batch.InputBatch, num_steps: int = MAX_STEPS
  ) -> dict[str, Callable[[], object]]:
    """Return the programs for batches like the examples, without arguments.

    Returns:
      Loops of `num_steps` steps, no number of which compiles again: `t1`,
      `t_verify` (of a chain), `t_draft2` (drafts of one token), `drafts` (of
      gamma tokens, and at least of two, so that a later draft token can be told
      from the first), `t_call` (drafting and verification, as in the decoding
      loop), and for each width of verification a key of `width_names`. A draft
      token of a tree is a depth.
    """
    gamma, count = self.decoder.options.gamma, jnp.int32(num_steps)
    draft = self.decoder.loaded_drafter.params
    params = self.decoder.target.params
    shared = params, examples, self._uniforms(examples)
    # The loops share what is large where they can.
    batch, state = call = self._begin(params, draft, examples)
    plain_batch, plain_state = self._begin_plain(params, examples)
    plain = plain_batch.replace(memory=batch.memory), plain_state
    verify = batch.replace(draft_memory=None), state.replace(
        draft_state=None, last_features=None
    )
    bind = functools.partial
    parts = {
        name: bind(
            self._verify_some, count, shared, jnp.int32(width - 1), *verify
        )
        for width, name in self.width_names.items()
    }
    if not self._drafts_trees:
      parts['t_verify'] = bind(self._verify, count, shared, None, *verify)
    return {
        't1': bind(self._plain, count, shared, None, *plain),
        **parts,
        't_draft2': bind(self._drafts, 1, count, shared, draft, *call),
        'drafts': bind(
            self._drafts, max(gamma, 2), count, shared, draft, *call
        ),
        't_call': bind(self._call, count, shared, draft, *call),
    }

  def bind_encoders(
      self, examples: input_batch.InputBatch
  ) -> dict[str, Callable[[], object]]:
    """Return the programs that read the inputs of a batch, without arguments.

    `encoder_target` makes the target's memory and empty cache, `encoder_draft`
    what the drafter does not share of them.
    """
    target = self.decoder.target.params
    draft = self.decoder.loaded_drafter.params
    start = functools.partial(self._start_target, target, examples)
    # A run that is still under way would be timed with the next one.
    started = jax.block_until_ready(start())
    context = views.Context(
        examples.inputs,
        examples.hints,
        started.view(target),
        started.features,
    )
    return {
        'encoder_target': start,
        'encoder_draft': functools.partial(self._init_draft, draft, context),
    }

  def _num_rows(self, examples: input_batch.InputBatch) -> int:
    return examples.limits.shape[0] * self.decoder.options.num_decodes

  @property
  def _position(self) -> int:
    # After one token: no network has others to catch up on.
    return min(1, self.decoder.options.max_tokens - 1)

  @property
  def _slots(self) -> int:
    options = self.decoder.options
    return state_lib.cache_slots(options.max_tokens, options.gamma)

  def _setup(self, drafter, params, draft_params, examples) -> state_lib.Setup:
    return state_lib.Setup(
        self.decoder.target_model,
        params,
        drafter,
        draft_params,
        examples.rule,
        # Not that of the decoder, which might want other lengths than timed.
        draft_length.Fixed(),
    )

  def _begin_with(self, drafter, params, draft_params, examples):
    count = self._num_rows(examples)
    keys = state_lib.row_keys(examples.seed, jnp.zeros((count,), int))
    return state_lib.begin(
        self._setup(drafter, params, draft_params, examples),
        examples.inputs,
        keys,
        jnp.full((count,), self.decoder.options.max_tokens, jnp.int32),
        examples.sampling,
        examples.draft_sampling,
        length=self.decoder.options.max_tokens,
        hints=examples.hints,
    )

  def _begin_without_memory(self, params, examples):
    batch, state = self._begin_with(nothing.NoDrafter(), params, None, examples)
    return batch.replace(memory=None), state

  def _jit_loop(self, drafter: contracts.Drafter) -> Callable:
    length = self.decoder.options.max_tokens

    def steps(num_steps, shared, draft_params, batch, state):
      params, examples, table = shared
      setup = self._setup(drafter, params, draft_params, examples)
      count = setup.noise.num_uniforms

      def body(i, state):
        # Rewound: all rows stand at the timed position.
        fill = lambda x, value: jnp.full_like(x, value)
        state = state.replace(
            num_tokens=fill(state.num_tokens, self._position),
            num_calls=fill(state.num_calls, i % length),
            has_ended=fill(state.has_ended, False),
        )
        uniforms = noise.uniforms_at(table, state.num_calls)[:, :count]
        return step_lib.step(setup, batch, state, uniforms)[0]

      return lax.fori_loop(0, num_steps, body, state)

    return jax.jit(steps)

  def _read_by_target(self, params, examples) -> contracts.Started:
    return state_lib.start(
        self._setup(self.decoder.drafter, params, None, examples),
        examples.inputs,
        self._num_rows(examples),
        self._slots,
    )

  def _read_by_drafter(
      self, draft_params, context: views.Context
  ) -> contracts.Memory:
    rows = self.decoder.options.num_decodes * context.inputs.shape[0]
    return self.decoder.drafter.init(
        draft_params, context, rows, self._slots
    )[0]

  def _draft_loop(
      self, gamma: int, num_steps, shared, draft_params, batch, state
  ):
    """Make drafts of gamma tokens, each after the same number of tokens."""
    params, examples, table = shared
    drafter = self.decoder.make_drafter(gamma)
    length = self.decoder.options.max_tokens
    width = min(gamma, length)
    draw = noise.of(examples.rule, drafter).draw
    # Of as many positions as a step of this gamma shows.
    shown = jax.tree.map(lambda x: x[:, : gamma + 1], state.last_features)

    def body(i, carry):
      state, cache, sequences = carry
      view = acceptance.view_at(
          self._position,
          drafter,
          examples,
          sequences,
          batch.view(params, cache, shown),
          table[i % length][:, : drafter.form.num_uniforms],
      )
      view = view._replace(  # as by `_setup`
          wants_always=True,
          draw=draw,
          draw_candidates=lambda *args: examples.rule.draw_candidates(*args),
      )
      proposal, made, cache = proposing.propose(
          drafter, draft_params, batch.draft_memory, state, view,
          self.decoder.target_model.vocab_size,
      )  # fmt: skip
      root = jnp.zeros((sequences.shape[0], 1), jnp.int32)
      path = jnp.zeros((*root.shape, gamma + 1), jnp.int32)
      state = proposing.commit(drafter, state, made, root, path)
      tokens = proposal.tokens
      if self._drafts_trees:
        tokens = tokens[:, 1:]
      # The next draft must depend on this one, or it could be hoisted.
      tokens = tokens[:, :width]
      return state, cache, sequences.at[:, :width].set(tokens)

    shape = self._num_rows(examples), length
    sequences = jnp.full(shape, _TOKEN, jnp.int32)
    carry = state.draft_state, state.target_cache, sequences
    state, _, sequences = lax.fori_loop(0, num_steps, body, carry)
    return state, sequences

  def _uniforms(self, examples: input_batch.InputBatch) -> jax.Array:
    """Return uniforms for each part, [calls, rows, the most per call, 2]."""
    decoder = self.decoder
    gamma = max(decoder.options.gamma, 2)  # `drafts` makes two at least
    drafter = decoder.make_drafter(gamma)
    count = noise.ByCall(verification.TOKENWISE, drafter).num_uniforms
    shape = (decoder.options.max_tokens, self._num_rows(examples), count, 2)
    return jax.random.bits(jax.random.key(0), shape, jnp.uint32)
