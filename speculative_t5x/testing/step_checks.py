# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges drafters and draft length policies, through the production step."""

from collections.abc import Callable, Sequence
import functools

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import lookup
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.policies import confidence
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model

Maker = Callable[[contracts.Model, int], contracts.Drafter]
Drafter = Maker | contracts.Drafter | drafting.Drafting

_GAMMA = 2
_ROUNDING = 1e-5  # of probabilities, which production computes in float32

# Drafts as long as they get, and drafts that stop after some tokens.
_POLICIES = draft_length.Fixed(), confidence.Confidence(0.45)


def check_drafter(
    drafter: Drafter,
    params: contracts.Params = None,
    *,
    gamma: int | None = None,
    vocab_size: int = 3,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-4,
) -> None:
  """Check that outputs follow the target's distribution with a drafter.

  Two examples are decoded by the production step: a random table is the target,
  and all outputs of up to 4 tokens are enumerated, over everything that is
  drafted. The drafter must draw its tokens in the order of its uniforms, as by
  `sampling.draw`, and work for any target: one that runs layers of the target
  cannot be judged. The number of paths grows as vocab_size^gamma.

  Args:
    drafter: The class of the drafter, or what makes it of a target and gamma,
      as `drafters.Drafting.make`; or a drafter for a target of `vocab_size`
      tokens; or a drafting without a checkpoint, as `drafters.Drafting(...)`.
    params: Parameters of the drafter, for a vocabulary of `vocab_size`; None
      for those of a `drafters.Drafting`, or without.
    gamma: Draft tokens per block; None for those of a drafter that is made, or
      2.
    vocab_size: Tokens of the target, at least 3; 0 is padding and start, 1 the
      end.
    temperatures: Temperatures of target and drafter.
    tolerance: The largest total variation distance that passes.
  Raises:
    AssertionError: for a distance above it; if tokens are not drawn from the
      distributions that the drafter states; if a token is drawn and not tested
      for its value; if a row depends on other rows; if the state has not one
      entry per row. The message says which.
    ValueError: if the drafter does not return what `contracts.Drafter` says, or
      was made for another gamma.
  """
  make, own_gamma = _maker(drafter)
  if params is None:
    params = getattr(drafter, 'params', None)
  target = table_model.TextModel(vocab_size)
  drafter = drafting.Drafting(make).drafter(target, gamma or own_gamma)
  for hints in (None, pairs.HINTS) if drafter.form.reads_hints else (None,):
    pair = pairs.of_tables(
        drafter,
        params,
        vocab_size=vocab_size,
        tolerance=_ROUNDING,
        hints=hints,
    )
    for policy in _POLICIES:
      check_pair(pair, policy, temperatures, tolerance)


def _maker(drafter: Drafter) -> tuple[Maker, int]:
  """Return what makes a drafter, and how many draft tokens it is judged by."""
  if hasattr(drafter, 'propose') and not isinstance(drafter, type):
    # One without a form is refused where it is made.
    gamma = drafter.form.gamma if hasattr(drafter, 'form') else _GAMMA
    return lambda target, gamma: drafter, gamma
  make = getattr(drafter, 'make', drafter)
  if not callable(make):
    raise ValueError(
        'drafter must be a class of drafters, a drafter, or a drafting such as'
        f' drafters.Drafting(<class>), got {drafter!r}. Check one that reads a'
        ' checkpoint by check_pair.'
    )
  return make, _GAMMA


def check_policy(
    policy: draft_length.Policy,
    *,
    gamma: int = _GAMMA,
    vocab_size: int = 3,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-4,
) -> None:
  """Check that outputs follow the target's distribution under a policy.

  As in `check_drafter` all outputs are enumerated, with a draft model as the
  drafter, alone and after lookup. See there for other arguments and errors.

  Raises:
    AssertionError: if what is decided for a row, or its state, depends on other
      rows, on their number, or on the row's place among them; also if
      `is_constant` is true and drafts have other lengths.
    ValueError: if the policy does not return what `draft_length.Policy`
      says.
    TypeError: if it is not hashable, as a frozen dataclass is.
  """
  draft_length.check(policy)
  draft_length.check_gamma(policy, gamma)
  hash(policy)
  target = table_model.TextModel(vocab_size)
  model = draft_model.ModelDrafter(target, gamma, vocab_size)
  copying = lookup.LookupDrafter(gamma, 2, 1)
  logits = pairs.draft_logits(vocab_size)
  for drafter, params in (
      (model, logits),
      (in_order.DraftersInOrder((copying, model), target), (None, logits)),
  ):
    pair = pairs.of_tables(
        drafter, params, vocab_size=vocab_size, tolerance=_ROUNDING
    )
    lengths = check_pair(pair, policy, temperatures, tolerance)
    if policy.is_constant and lengths - {gamma}:
      raise AssertionError(
          f'The policy {policy.name} has is_constant = True, and there are'
          f' drafts of {sorted(lengths)} tokens where gamma is {gamma}. Set'
          ' is_constant = False.'
      )


def check_pair(
    pair: pairs.Pair,
    policy: draft_length.Policy = draft_length.Fixed(),  # noqa: B008
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-4,
) -> set[int]:
  """Check that outputs of a pair follow the target, whatever its network.

  All outputs are enumerated, with the rule of the paper. The target has few
  tokens. The tolerance is the largest total variation distance that passes.

  Returns:
    The lengths of drafts, see `reachable.Reached`.
  Raises:
    AssertionError: see `check_drafter`.
  """
  program = step_programs.Program(pair, policy)
  lengths = set()
  for setting in rules.samplings(temperatures, pair.target.vocab_size):
    program = program.with_sampling(sampling_lib.Sampling(**setting))
    found = reachable.reach(program, verification.TOKENWISE, _enumerator())
    lengths |= found.lengths
    shown = ', '.join(f'{name} {value:g}' for name, value in setting.items())
    exact = reachable.exact_distributions(program)
    for example, both in enumerate(zip(exact, found.distributions)):
      rules.check_distance(
          f'{program.name} at {shown}, example {example},',
          rules.total_variation(*both),
          tolerance,
      )
  return lengths


@functools.cache
def _enumerator() -> rules.Enumerator:
  return rules.Enumerator(verification.TOKENWISE)
