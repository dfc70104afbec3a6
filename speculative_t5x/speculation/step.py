# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One target call of every row: Algorithm 1 of Leviathan et al. (2023).

A step drafts up to gamma tokens, scores them all by one target call, accepts a
prefix and draws one more token. Each row advances by its own number of tokens.
Plain decoding is the step of a drafter that drafts nothing. The target call is
as wide as the longest draft of the batch needs.

A step is a pure function of the state and of the uniforms it is given.

Legend: rows, gamma (draft tokens per block), length (longest output), vocab.
"""

import functools
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import widths as widths_lib


class Verified(NamedTuple):
  """What the target call and the rule found.

  Attributes:
    num_accepted: [rows] int32, see `contracts.Verdict`.
    next_token: [rows] int32, resampled after a rejection, else the bonus token.
    log_probs: [rows, gamma + 1] float32, of the tokens of the block; see
      `outcome.Outcome`.
    model_log_probs: Likewise.
    alternatives: Likewise.
    features: See `state.State.last_features`.
  """

  num_accepted: jax.Array
  next_token: jax.Array
  log_probs: jax.Array
  model_log_probs: jax.Array
  alternatives: outcome_lib.Alternatives | None
  features: jax.Array | None


def step(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: jax.Array,
) -> tuple[state_lib.State, outcome_lib.Outcome]:
  """Draft, score, accept a prefix and draw one more token, for every row.

  An example of a block, gamma 3, a row at 2 committed tokens `x y`:

    decoder fed              y  a  b  c      at positions 2, 3, 4, 5
    target's distributions   p1 p2 p3 p4     of the tokens at 2, 3, 4, 5
    a, b accepted, c rejected: a b and a token from max(0, p3 - q3) are
    committed, and the next block is fed from position 5 on, over what c left
    there.

  Args:
    batch: What the rows have read. The keys are not used here.
    state: Rows that have ended stay as they are.
    uniforms: [rows, count, 2] random bits, of which `noise` says how many and
      what for.
  Returns:
    The next state, and what happened.
  Reference: Leviathan et al. (2023), Algorithm 1, arXiv:2211.17192v2.
  """
  drafter_uniforms, rule_uniforms = setup.noise.divide(uniforms)
  draft, draft_state, target_cache = _draft(
      setup, batch, state, drafter_uniforms
  )
  counted = _cut(setup, draft)

  def verify(width, carry):
    return _verify(setup, batch, state, counted, rule_uniforms, width, carry[0])

  target_cache, verified = widths_lib.at_smallest(
      widths(setup),
      jnp.max(counted.lengths) + 1,
      verify,
      (target_cache, _nothing_verified(setup, counted, state.last_features)),
  )
  state = state.replace(
      target_cache=target_cache,
      last_features=verified.features,
      draft_state=draft_state,
  )
  return committed(setup, batch, state, draft, counted, verified)


def committed(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    draft: contracts.Draft,
    counted: contracts.Draft,
    verified: Verified,
) -> tuple[state_lib.State, outcome_lib.Outcome]:
  """Commit what was verified; return the next state, and what happened.

  Args:
    draft: What was drafted.
    counted: The same, cut to the tokens that could be accepted.
    verified: What the target call and the rule found.
  """
  outcome = _outcome(
      state,
      draft,
      counted,
      verified,
      batch.limits - state.num_tokens,
      setup.target.special_ids,
  )
  state = state.replace(
      policy_state=_policy_state(setup.policy, state.policy_state, outcome),
      # Rows begin without them, and no drafter reads them.
      outcome=outcome._replace(alternatives=None),
  )
  return _commit(state, outcome), outcome


def drafted(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: jax.Array,
) -> contracts.Draft:
  """Return the draft of a `step`, cut to the tokens that can be accepted."""
  own, _ = setup.noise.divide(uniforms)
  draft, *_ = _draft(setup, batch, state, own)
  return _cut(setup, draft)


def widths(setup: state_lib.Setup) -> tuple[int, ...]:
  """Return the widths of verification; one if drafts are all of one length."""
  if isinstance(setup.drafter, candidates.CandidateDrafter):
    return (setup.drafter.num_nodes,)
  size = setup.drafter.max_draft_tokens + 1
  drafts_all = getattr(setup.drafter, 'drafts_all_wanted', False)
  if drafts_all and setup.policy.is_constant:
    return (size,)
  return widths_lib.of_block(size)


def _nothing_verified(
    setup: state_lib.Setup, draft: contracts.Draft, features: jax.Array | None
) -> Verified:
  """Return zeros in the shapes of what is verified."""
  rows, gamma = draft.tokens.shape
  counts = lambda *shape: jnp.zeros(shape, jnp.int32)
  log_probs = jnp.zeros((rows, gamma + 1), jnp.float32)
  alternatives = None
  if setup.keeps_alternatives is not None:
    count = num_alternatives(setup.target.vocab_size)
    alternatives = outcome_lib.Alternatives.zeros(rows, gamma + 1, count)
  return Verified(
      counts(rows),
      counts(rows),
      log_probs,
      log_probs,
      alternatives,
      None if features is None else jnp.zeros_like(features),
  )


def _verify(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    draft: contracts.Draft,
    uniforms: Any,
    width: int,
    target_cache: contracts.Cache,
) -> tuple[contracts.Cache, Verified]:
  """Score the first `width` positions of each block and apply the rule.

  What comes after them in a block belongs to no draft token.
  """
  gamma = draft.tokens.shape[1]
  # Width 3 of gamma 4: the decoder is fed the last committed token and two
  # draft tokens, `y a b`, and gives the distributions of three tokens.
  short = jax.tree.map(lambda x: x[:, : width - 1] if x.ndim > 1 else x, draft)
  last_token = state_lib.decoder_inputs(
      state.sequences, batch.first_tokens, state.num_tokens, 1
  )
  with jax.named_scope('target'):  # names are for traces
    logits, target_cache, features = setup.decode(
        batch.memory,
        target_cache,
        jnp.concatenate([last_token, short.tokens], axis=1),
        batch.offsets + state.num_tokens,
    )
  # [rows, width, vocab]: position i is about the token after i draft tokens, so
  # the draft token at index i is judged by position i, and the token that is
  # drawn after n accepted ones comes from position n.
  probs = sampling_lib.standardize(logits, batch.sampling)
  num_accepted, next_token = setup.noise.decide(
      contracts.Scores(logits, probs, batch.sampling), short, uniforms
  )
  # All widths of the chain must return the same shapes.
  padded = lambda x: jnp.pad(
      x, ((0, 0), (0, gamma + 1 - width), (0, 0))[: x.ndim]
  )
  scores = scores_of(setup, short, num_accepted, next_token, logits, probs)
  return target_cache, Verified(
      num_accepted, next_token, *jax.tree.map(padded, (*scores, features))
  )


def scores_of(
    setup: state_lib.Setup,
    draft: contracts.Draft,
    num_accepted: jax.Array,
    next_token: jax.Array,
    logits: jax.Array,
    probs: jax.Array,
) -> tuple[jax.Array, jax.Array, outcome_lib.Alternatives | None]:
  """Return both log-probabilities and the alternatives of `Verified`.

  Logits and probabilities, [rows, gamma + 1, vocab], are the target's after
  each draft token; those past the accepted ones do not matter.
  """
  tokens = _block_tokens(draft, num_accepted, next_token)
  logits = logits.astype(probs.dtype)
  total = jax.nn.logsumexp(logits, axis=-1)
  of_model = (_at_tokens(logits, tokens) - total).astype(jnp.float32)
  alternatives = _alternatives(setup, logits, total)
  # A rule that is not lossless may accept tokens that the distribution sampled
  # from rules out, which would have no score under it.
  if setup.rescale_log_probs and setup.rule.is_lossless:
    return _log_probs(tokens, probs), of_model, alternatives
  return of_model, of_model, alternatives


def num_alternatives(vocab_size: int) -> int:
  """Return how many likeliest tokens are kept of so many."""
  return min(outcome_lib.MAX_ALTERNATIVES, vocab_size)


def _alternatives(
    setup: state_lib.Setup, logits: jax.Array, total: jax.Array
) -> outcome_lib.Alternatives | None:
  """Return the likeliest tokens of logits whose exponentials have a sum.

  Args:
    setup: Says whether they are kept.
    logits: [rows, block, vocab].
    total: [rows, block], the logarithms of the sums.
  """
  if setup.keeps_alternatives is None:
    return None
  count = num_alternatives(logits.shape[-1])

  def find():
    largest, tokens = lax.top_k(logits, count)
    log_probs = (largest - total[..., None]).astype(jnp.float32)
    return outcome_lib.Alternatives(tokens, log_probs)

  # Whoever does not ask for them does not wait for them.
  return lax.cond(
      setup.keeps_alternatives,
      find,
      lambda: outcome_lib.Alternatives.zeros(*total.shape, count),
  )


def _draft(setup, batch, state, uniforms):
  view = view_of(setup, batch, state, uniforms)
  with jax.named_scope('draft'):
    draft, draft_state, target_cache = propose(
        setup.drafter,
        setup.draft_params,
        batch.draft_memory,
        state.draft_state,
        view,
        setup.target.vocab_size,
    )
  # A drafter may make more than was wanted. Where it is cut depends on no
  # token's value, so that the cut does not bias the output.
  lengths = jnp.clip(draft.lengths, 0, view.num_wanted)
  return draft.replace(lengths=lengths), draft_state, target_cache


def view_of(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: Any,
) -> contracts.View:
  """Return what the drafter of a setup may look at, with its uniforms."""
  return contracts.View(
      sequences=state.sequences,
      num_tokens=state.num_tokens,
      num_wanted=_num_wanted(setup, batch, state),
      uniforms=uniforms,
      sampling=batch.draft_sampling,
      target=batch.view(
          setup.target_params, state.target_cache, state.last_features
      ),
      last_outcome=state.outcome,
      begin=functools.partial(
          setup.policy.begin,
          state.policy_state,
          gamma=setup.drafter.max_draft_tokens,
      ),
      continues=functools.partial(_continues, setup, state),
      wants_always=setup.policy.is_constant,
      draw=setup.noise.draw,
  )


def _num_wanted(setup, batch, state) -> jax.Array:
  """Return how many draft tokens each row can use, [rows]."""
  policy, gamma = setup.policy, setup.drafter.max_draft_tokens
  if not gamma:  # plain decoding, which policies know nothing of
    return jnp.zeros_like(state.num_tokens)
  num_remaining = batch.limits - state.num_tokens
  num_wanted = jnp.asarray(
      policy.num_wanted(state.policy_state, num_remaining, gamma), jnp.int32
  )
  # With r tokens left a block of r draft tokens is enough: if all are accepted,
  # the bonus token is past the limit and is not committed.
  num_wanted = jnp.clip(num_wanted, 0, jnp.minimum(num_remaining, gamma))
  return jnp.where(state.has_ended, 0, num_wanted)


def _continues(setup, state, progress, logits, tokens):
  # What follows the end of sequence cannot be accepted.
  is_end = setup.target.special_ids.is_end(tokens)
  gamma = setup.drafter.max_draft_tokens
  wanted, progress = setup.policy.continues(
      state.policy_state, progress, logits, tokens, gamma
  )
  return wanted & ~is_end, progress


def propose(
    drafter: contracts.Drafter,
    params: contracts.Params,
    memory: contracts.Memory,
    state: Any,
    view: contracts.View,
    vocab_size: int,
) -> tuple[contracts.Draft, Any, contracts.Cache]:
  """Call `drafter.propose` and check what it returns, while it is traced.

  Raises:
    ValueError: for anything but a `contracts.Draft` of its shapes and types, a
      state like the one before, and a cache.
  """
  name = f'The drafter {type(drafter).__name__}'
  returned = drafter.propose(params, memory, state, view)
  if not isinstance(returned, tuple) or len(returned) != 3:
    raise ValueError(
        f'{name} must return three values from propose: the draft, its state'
        " and the target's cache."
    )
  draft, after, cache = returned
  if not isinstance(draft, contracts.Draft):
    raise ValueError(
        f'{name} must return a contracts.Draft from propose, got'
        f' {type(draft).__name__}.'
    )
  rows, gamma = view.num_tokens.shape[0], drafter.max_draft_tokens
  form = _form_of_draft(draft, rows, gamma, vocab_size)
  _check_form(f'{name} returned its draft', form, draft)
  _check_form(f'{name} returned its state', state, after)
  _check_form(f"{name} returned the target's cache", view.target.cache, cache)
  return draft, after, cache


def _form_of_draft(
    draft: contracts.Draft, rows: int, gamma: int, vocab_size: int
) -> contracts.Draft:
  """Return the shapes and types that a draft of these kinds must have."""
  form = jax.ShapeDtypeStruct
  expected = contracts.Draft(
      form((rows, gamma), jnp.int32), form((rows,), jnp.int32)
  )
  if draft.probs is not None or draft.is_point_mass is not None:
    dtype = jnp.result_type(jnp.float32 if draft.probs is None else draft.probs)
    expected = expected.replace(probs=form((rows, gamma, vocab_size), dtype))
  if draft.is_point_mass is not None:
    expected = expected.replace(is_point_mass=form((rows, gamma), bool))
  return expected


def _policy_state(policy, state: Any, outcome: outcome_lib.Outcome) -> Any:
  """Return the policy's next state, whose form is checked."""
  after = policy.update(state, outcome)
  _check_form(f'The policy {policy.name} returned its state', state, after)
  return after


def _check_form(what: str, expected: Any, found: Any) -> None:
  """Check that a pytree has the form of another one.

  Raises:
    ValueError: naming the first difference.
  """
  one, other = _forms(expected), _forms(found)
  for place in {**one, **other}:
    if one.get(place) != other.get(place):
      raise ValueError(
          f'{what} with {other.get(place)} instead of {one.get(place)}'
          f'{f" at {place}" if place else ""}. Structure, shapes and types must'
          ' be those of speculation.contracts, and the same in every step.'
      )


def _forms(tree: Any) -> dict[str, str]:
  """Return type and shape of each array by its place."""
  show = lambda x: f'{jnp.result_type(x)}{list(jnp.shape(x))}'
  leaves, _ = jax.tree.flatten_with_path(tree)
  return {jax.tree_util.keystr(path): show(leaf) for path, leaf in leaves}


def _cut(setup: state_lib.Setup, draft: contracts.Draft) -> contracts.Draft:
  target = setup.target
  return draft.replace(
      lengths=_count_draft_tokens(
          draft, target.special_ids, target.vocab_size
      )
  )


def _count_draft_tokens(
    draft: contracts.Draft, special_ids: contracts.SpecialIds, vocab_size: int
) -> jax.Array:
  """Return how many draft tokens can be accepted, [rows].

  They are those up to the first end of sequence and before the first id outside
  the vocabulary, which would be looked up as another id.
  """
  # Draft a <end> b: last is (gamma, 2, gamma), and two draft tokens remain.
  # Draft a b 99 with a vocabulary of 64: last is (gamma, gamma, 2), the same.
  gamma = draft.tokens.shape[1]
  index = jnp.arange(gamma, dtype=jnp.int32)
  is_id = (draft.tokens >= 0) & (draft.tokens < vocab_size)
  is_end = special_ids.is_end(draft.tokens)
  last = jnp.where(is_id, jnp.where(is_end, index + 1, gamma), index)
  num_to_end = jnp.min(last, axis=1, initial=gamma)
  return jnp.minimum(draft.lengths, num_to_end)


def _block_tokens(
    draft: contracts.Draft, num_accepted: jax.Array, next_token: jax.Array
) -> jax.Array:
  """Return accepted draft tokens, then the drawn token, [rows, gamma + 1]."""
  # Draft a b c, 2 accepted, z drawn: a b z z. What is past the drawn token is
  # never committed.
  tokens = jnp.pad(draft.tokens, ((0, 0), (0, 1)))
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  is_drawn = index >= num_accepted[:, None]
  return jnp.where(is_drawn, next_token[:, None], tokens)


def _outcome(
    state: state_lib.State,
    draft: contracts.Draft,
    counted: contracts.Draft,
    verified: Verified,
    num_remaining: jax.Array,
    special_ids: contracts.SpecialIds,
) -> outcome_lib.Outcome:
  is_active = ~state.has_ended
  when_active = lambda n: jnp.where(is_active, n.astype(jnp.int32), 0)
  num_accepted = verified.num_accepted
  tokens = _block_tokens(draft, num_accepted, verified.next_token)
  # The accepted tokens alone may end the row, by an end or at the limit: then
  # the drawn token is not committed.
  is_cut_short = _is_last(tokens, num_accepted, num_remaining, special_ids)
  num_committed = num_accepted + jnp.where(is_cut_short, 0, 1)
  is_last = _is_last(tokens, num_committed, num_remaining, special_ids)
  return outcome_lib.Outcome(
      num_before=state.num_tokens,
      num_computed=when_active(draft.lengths),
      num_drafted=when_active(counted.lengths),
      num_accepted=when_active(num_accepted),
      num_committed=when_active(num_committed),
      is_active=is_active,
      is_cut_short=is_active & is_cut_short,
      has_ended=state.has_ended | is_last,
      draft_tokens=draft.tokens,
      tokens=tokens,
      log_probs=verified.log_probs,
      model_log_probs=verified.model_log_probs,
      alternatives=verified.alternatives,
  )


def _is_last(
    tokens: jax.Array,
    count: jax.Array,
    num_remaining: jax.Array,
    special_ids: contracts.SpecialIds,
) -> jax.Array:
  """Return whether the first `count` tokens end the row, [rows] bool."""
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  is_end = special_ids.is_end(tokens) & (index < count[:, None])
  return jnp.any(is_end, axis=1) | (count >= num_remaining)


def _log_probs(tokens: jax.Array, probs: jax.Array) -> jax.Array:
  """Return log-probabilities of tokens, [rows, block], at their positions."""
  return jnp.log(_at_tokens(probs, tokens)).astype(jnp.float32)


def _at_tokens(values: jax.Array, tokens: jax.Array) -> jax.Array:
  return jnp.take_along_axis(values, tokens[..., None], axis=-1)[..., 0]


def _commit(
    state: state_lib.State, outcome: outcome_lib.Outcome
) -> state_lib.State:
  """Append a block's new tokens to every row that has not ended."""
  index = jnp.arange(outcome.tokens.shape[1], dtype=jnp.int32)[None]
  is_new = index < outcome.num_committed[:, None]
  return state.replace(
      sequences=outcome_lib.append(state.sequences, outcome.tokens, outcome),
      num_tokens=state.num_tokens + outcome.num_committed,
      has_ended=outcome.has_ended,
      log_probs=state.log_probs
      + jnp.sum(jnp.where(is_new, outcome.log_probs, 0), axis=1),
      num_calls=state.num_calls + outcome.is_active.astype(jnp.int32),
  )
