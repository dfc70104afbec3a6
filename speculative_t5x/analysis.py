# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What speculation should gain: Section 3 of Leviathan et al. (2023).

Closed forms take scalars or arrays, which broadcast, and compute in float64.
Then exact counts for a known text, and estimates from measurements, with their
uncertainty. All raise ValueError for a value out of range, naming both.

Legend: alpha in [0, 1] (mean probability that a guess is kept, Definition 3.1);
gamma, whole, from 1 on (guesses a target call); cost_coefficient, c, from 0 on
(time of a draft step over a target step, Definition 3.7); ops_coefficient,
c-hat, from 0 on (the same of operations a token, Definition 3.10); vocab.

References are to arXiv:2211.17192v2.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

import numpy as np
from numpy import typing as npt
from scipy import special

Values = np.ndarray | np.generic  # arrays, or numpy's scalars

_MASS_TOLERANCE = 1e-3  # far above the rounding of a softmax in float32
_NUM_RESAMPLES = 10_000
_MIN_PAIRS = 6
_MAX_INDICES = 2**22  # drawn at a time, 32 MiB


def expected_tokens(alpha: npt.ArrayLike, gamma: npt.ArrayLike) -> Values:
  """Tokens a target call, if guesses are kept independently: Equation (1).

  A gamma of infinity is allowed.

  >>> print(f'{expected_tokens(0.8, 5):.2f}')
  3.69
  """
  return _mean_tokens(_alpha(alpha), _gamma(gamma))


def _mean_tokens(alpha: np.ndarray, gamma: np.ndarray) -> Values:
  miss = 1 - alpha
  with np.errstate(divide='ignore', invalid='ignore'):
    # (1 - alpha^(gamma + 1)) / (1 - alpha), accurate up to alpha 1.
    tokens = -np.expm1((gamma + 1) * np.log(alpha)) / miss
  return np.where(miss > 0, tokens, gamma + 1)[()]


def walltime_factor(
    alpha: npt.ArrayLike, gamma: npt.ArrayLike, cost_coefficient: npt.ArrayLike
) -> Values:
  """Plain over speculative walltime: Theorem 3.8.

  Long outputs, no encoders, and gamma + 1 tokens scored in the time of one.

  >>> print(f'{walltime_factor(0.75, 7, 0.02):.3f}')
  3.157
  """
  gamma = _finite_gamma(gamma)
  cost = _coefficient('cost_coefficient', cost_coefficient)
  return _mean_tokens(_alpha(alpha), gamma) / (gamma * cost + 1)


def operations_factor(
    alpha: npt.ArrayLike, gamma: npt.ArrayLike, ops_coefficient: npt.ArrayLike
) -> Values:
  """Speculative over plain arithmetic operations: Theorem 3.11.

  >>> print(f'{operations_factor(0.8, 5, 0):.2f}')
  1.63
  """
  gamma = _finite_gamma(gamma)
  ops = _coefficient('ops_coefficient', ops_coefficient)
  return (gamma * ops + gamma + 1) / _mean_tokens(_alpha(alpha), gamma)


def memory_access_factor(alpha: npt.ArrayLike, gamma: npt.ArrayLike) -> Values:
  """Plain over speculative reads of the target's weights and cache.

  They are read once a target call: Equation (1), by the end of Section 3.4.
  """
  return expected_tokens(alpha, gamma)


def can_improve(
    alpha: npt.ArrayLike, cost_coefficient: npt.ArrayLike
) -> Values:
  """Whether any gamma makes decoding faster, bool: Corollary 3.9."""
  cost = _coefficient('cost_coefficient', cost_coefficient)
  return _alpha(alpha) > cost


def guaranteed_factor(
    alpha: npt.ArrayLike, cost_coefficient: npt.ArrayLike
) -> Values:
  """What the best gamma gains at least: Corollary 3.9.

  1, that of plain decoding, where no gamma improves.
  """
  return np.maximum(walltime_factor(alpha, 1, cost_coefficient), 1)


def optimal_gamma(
    alpha: npt.ArrayLike, cost_coefficient: npt.ArrayLike, max_gamma: int = 64
) -> Values:
  """The gamma of the largest walltime factor, at most max_gamma: Section 3.5.

  0 where no gamma improves. The factor rises up to one gamma and falls from
  there, so the steps that rise are counted. It rises forever at cost 0, and at
  alpha 1 and a cost below 1: the answer is max_gamma then.

  >>> int(optimal_gamma(0.75, 0.02))
  9
  """
  alpha = _alpha(alpha)[..., None]
  cost = _coefficient('cost_coefficient', cost_coefficient)[..., None]
  gammas = np.arange(int(_finite_gamma(max_gamma)))
  # Guess gamma + 1 adds alpha^(gamma + 1) tokens and the time c.
  tokens = np.cumsum(alpha**gammas, axis=-1)
  added = alpha ** (gammas + 1)
  return np.sum(added * (gammas * cost + 1) > cost * tokens, axis=-1)


def oracle_expected_tokens(alpha: npt.ArrayLike) -> Values:
  """Tokens a target call if gamma always ends at the rejection: Section 3.5."""
  return expected_tokens(alpha, np.inf)


def oracle_factor(
    alpha: npt.ArrayLike, cost_coefficient: npt.ArrayLike
) -> Values:
  """Walltime factor of that oracle, which drafts what is kept: Section 3.5.

  Infinite at alpha 1 and cost 0.
  """
  alpha = _alpha(alpha)
  cost = _coefficient('cost_coefficient', cost_coefficient)
  with np.errstate(divide='ignore'):
    return 1 / (1 - alpha + cost * alpha)


def divergence(
    target_probs: npt.ArrayLike, draft_probs: npt.ArrayLike
) -> Values:
  """Distance of two distributions, [..., vocab] -> [...]: Definition 3.2.

  The total variation distance, in [0, 1]; ValueError for what is no
  distribution. 1 minus the acceptance probability, by Theorem 3.5.
  """
  target_probs = _distribution('target_probs', target_probs)
  draft_probs = _distribution('draft_probs', draft_probs)
  distance = np.sum(np.abs(target_probs - draft_probs), axis=-1) / 2
  return np.minimum(distance, 1)


def acceptance_probability(
    target_probs: npt.ArrayLike,
    draft_probs: npt.ArrayLike,
    lenience: npt.ArrayLike = 1.0,
) -> Values:
  """Probability that a guess is kept, beta: Theorem 3.5 and Appendix A.5.

  Args:
    target_probs: [..., vocab], as sampled from (Section 2.2).
    draft_probs: [..., vocab], likewise.
    lenience: [...] in (0, 1]; 1 keeps the target's law, less does not.
  Returns:
    Probabilities [...].
  Raises:
    ValueError: for what is no distribution, or a lenience out of range.
  """
  target_probs = _distribution('target_probs', target_probs)
  draft_probs = _distribution('draft_probs', draft_probs)
  lenience = np.asarray(lenience, np.float64)
  is_allowed = (lenience > 0) & (lenience <= 1)
  _check('lenience', lenience, is_allowed, 'lie in (0, 1]')
  kept = np.minimum(target_probs / lenience[..., None], draft_probs)
  return np.minimum(np.sum(kept, axis=-1), 1)


def expected_tokens_from_histogram(
    histogram: npt.ArrayLike, num_cut_short: npt.ArrayLike = 0
) -> Values:
  """Mean tokens a target call, as measured.

  Args:
    histogram: [..., gamma + 1], blocks by number of guesses accepted.
    num_cut_short: [...], how many of them ended inside their draft, so that no
      further token was drawn.
  Raises:
    ValueError: for negative counts, no block, or more cut short than there are.
  """
  histogram = np.asarray(histogram, np.float64)
  cut = np.asarray(num_cut_short, np.float64)
  _check('histogram', histogram, histogram >= 0, 'count from 0 on')
  calls = np.sum(histogram, axis=-1)
  _check('The sum of histogram', calls, calls > 0, 'be above 0')
  is_allowed = (cut >= 0) & (cut <= calls)
  _check('num_cut_short', cut, is_allowed, 'lie between 0 and the blocks')
  accepted = histogram @ np.arange(histogram.shape[-1])
  return 1 + (accepted - cut) / calls


def expected_calls(keep_probs: npt.ArrayLike, gamma: npt.ArrayLike) -> Values:
  """Mean target calls to decode one known text, without assuming an iid beta.

  Given the text, a guess is its token x with probability min(1, q(x) / p(x)),
  independently of the others: a guess is x and kept with min(p, q)(x), and x is
  written with p(x). What is not kept is redrawn, as x. A call is made wherever
  a block begins, so the probabilities of that are summed.

  Args:
    keep_probs: [tokens] in [0, 1], min(1, q / p) of each token of the text,
      both laws given the text before it. The last token ends the text.
    gamma: any shape.
  Returns:
    Calls, of gamma's shape, from 1 to the number of tokens.
  Raises:
    ValueError: for a text without tokens, or values out of range.
  """
  keep_probs = np.asarray(keep_probs, np.float64)
  if keep_probs.ndim != 1 or not keep_probs.size:
    raise ValueError(
        'keep_probs must be [tokens] with a token at least, got the shape'
        f' {keep_probs.shape}.'
    )
  _check_rates('keep_probs', keep_probs)
  gamma = np.minimum(_gamma(gamma), keep_probs.size)[..., None]
  num_kept = np.arange(int(gamma.max()) + 1)
  is_tested = num_kept < gamma  # the token after gamma guesses is not
  # Probabilities of having kept so many guesses of a block: [..., gamma + 1].
  state = np.where(num_kept == 0, 1.0, np.zeros_like(is_tested, np.float64))
  calls = np.ones(gamma.shape[:-1])
  for keep in keep_probs[:-1]:
    kept = state * (is_tested * keep)
    begins = 1 - np.sum(kept, axis=-1)
    calls = calls + begins
    state[..., 0] = begins
    state[..., 1:] = kept[..., :-1]
  return calls[()]


@dataclasses.dataclass(frozen=True)
class StepTimes:
  """Times of the parts of a run. ValueError for a time that cannot be.

  Attributes:
    target_encoder_s: the target's encoder on what is decoded, a batch or all
      of a run, seconds.
    draft_encoder_s: the draft's.
    t1_ms: a target step on one position, milliseconds.
    t_verify_ms: on gamma + 1 positions.
    t_draft_ms: a draft step on one position.
    t_draft2_ms: a block's first draft step, on two positions.
  """

  target_encoder_s: float
  draft_encoder_s: float
  t1_ms: float
  t_verify_ms: float
  t_draft_ms: float
  t_draft2_ms: float

  def __post_init__(self):
    for name, time in dataclasses.asdict(self).items():
      _coefficient(name, time)
    verify = np.asarray(self.t_verify_ms)
    _check('t_verify_ms', verify, verify > 0, 'be above 0')


def plain_seconds(times: StepTimes, steps: float) -> float:
  """Plain decoding that costs no more than its parts, the encoder included.

  Args:
    times: measured at the batch size of the run.
    steps: of the loop; at batch 1 the number of tokens.
  """
  _check_steps(steps)
  return times.target_encoder_s + steps * times.t1_ms / 1e3


def speculative_seconds(times: StepTimes, steps: float, gamma: int) -> float:
  """Speculative decoding that costs no more than its parts, both encoders in.

  Args:
    times: measured at the batch size of the run, and at its gamma.
    steps: of the loop; at batch 1 the target calls.
    gamma: guesses drafted a step.
  """
  _check_steps(steps)
  later = float(_finite_gamma(gamma)) - 1
  step_ms = times.t_draft2_ms + later * times.t_draft_ms + times.t_verify_ms
  encoders_s = times.target_encoder_s + times.draft_encoder_s
  return encoders_s + steps * step_ms / 1e3


def bound_speedup(
    times: StepTimes,
    *,
    baseline_steps: float,
    speculative_steps: float,
    gamma: int,
) -> float:
  """Speedup of loops that cost no more than their parts, encoders included.

  Args:
    times: measured at the batch size of the run.
    baseline_steps: of the plain loop; at batch 1 the number of tokens.
    speculative_steps: of the speculative loop; at batch 1 the target calls.
    gamma: guesses drafted a step.
  """
  return plain_seconds(times, baseline_steps) / speculative_seconds(
      times, speculative_steps, gamma
  )


def _check_steps(steps: float) -> None:
  is_allowed = 0 < steps < np.inf
  _check('steps', np.asarray(steps), is_allowed, 'be finite and above 0')


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A measured value.

  Attributes:
    value: the estimate.
    ci95: its 95 percent interval, None where there is nothing to resample.
    num: tokens, tests or pairs that it rests on.
  """

  value: float
  ci95: tuple[float, float] | None
  num: int


def verdict(interval: Sequence[float] | None) -> str:
  """Whether a ratio of speeds is above 1, as far as its interval tells.

  By its bounds as they are printed, with two decimals: a speedup is never one
  whose interval reads as if it held 1.

  Args:
    interval: its bounds, or None.
  Returns:
    'faster', 'slower', 'no difference shown' or 'open, no interval'.
  """
  if interval is None:
    return 'open, no interval'
  low, high = (round(bound, 2) for bound in interval)
  if low > 1:
    return 'faster'
  return 'slower' if high < 1 else 'no difference shown'


def ratio_interval(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    statistic: Callable[..., np.ndarray] = np.sum,
) -> tuple[float, float] | None:
  """95 percent interval of a ratio of sums, by a paired bootstrap.

  Plain quantiles of the resampled ratios are too narrow for few pairs: at 8
  they hold the truth in 87 to 90 percent of cases. Those taken here are further
  out, by what Student's t is wider than the normal and by the spread that
  resampling loses: the expanded percentile interval of Hesterberg (2015), What
  Teachers Should Know about the Bootstrap, arXiv:1411.5279.

  Args:
    numerators: [pairs].
    denominators: [pairs], above 0.
    statistic: what is divided by what, called with axis=1.
  Returns:
    Its bounds; None for fewer than 6 pairs, between whose extremes the truth
    lies in less than 95 percent of cases (1 - 2^(1 - pairs) at the most).
  Raises:
    ValueError: for what is not pairs, or values out of range.
  """
  numerators, denominators = _pairs(numerators, denominators)
  num_pairs = len(numerators)
  if num_pairs < _MIN_PAIRS:
    return None
  rng = np.random.default_rng(0)
  chunk = max(_MAX_INDICES // num_pairs, 1)  # the stream does not depend on it
  ratios = []
  for start in range(0, _NUM_RESAMPLES, chunk):
    shape = (min(chunk, _NUM_RESAMPLES - start), num_pairs)
    chosen = rng.integers(0, num_pairs, shape)
    ratios.append(
        statistic(numerators[chosen], axis=1)
        / statistic(denominators[chosen], axis=1)
    )
  tail = _tail(num_pairs)
  low, high = np.quantile(np.concatenate(ratios), (tail, 1 - tail))
  return float(low), float(high)


def _tail(num_pairs: int) -> float:
  """Share of the resamples beyond each bound: 0.025 for many pairs."""
  widened = math.sqrt(num_pairs / (num_pairs - 1))
  return float(special.ndtr(widened * special.stdtrit(num_pairs - 1, 0.025)))


def estimate_alpha(betas_by_text: Sequence[npt.ArrayLike]) -> Estimate:
  """Alpha on text that the target wrote: Corollary 3.6.

  Texts are resampled and not tokens, which are alike within a text.

  Args:
    betas_by_text: a text each, [tokens], `acceptance_probability` at every
      token, given the text before it.
  """
  texts = [np.asarray(betas, np.float64) for betas in betas_by_text]
  for betas in texts:
    _check_rates('betas_by_text', betas)
  return _rate([betas.sum() for betas in texts], [b.size for b in texts])


def estimate_running_alpha(
    accepted: npt.ArrayLike, tested: npt.ArrayLike
) -> Estimate:
  """Accepted over tested guesses of a run, [texts] each.

  It is alpha if betas are iid: what follows a rejection is not tested.
  """
  accepted, tested = _aligned(accepted, tested)
  is_allowed = (accepted >= 0) & (accepted <= tested)
  _check('accepted', accepted, is_allowed, 'lie between 0 and tested')
  return _rate(accepted, tested)


def _rate(numerators: npt.ArrayLike, counts: npt.ArrayLike) -> Estimate:
  numerators, counts = np.asarray(numerators), np.asarray(counts)
  says_something = counts > 0
  if not says_something.any():
    raise ValueError('No text has a token or a test to estimate alpha from.')
  numerators, counts = numerators[says_something], counts[says_something]
  interval = ratio_interval(numerators, counts)
  return Estimate(
      float(numerators.sum() / counts.sum()), interval, int(counts.sum())
  )


def estimate_cost_coefficient(
    draft_seconds: npt.ArrayLike, target_seconds: npt.ArrayLike
) -> Estimate:
  """The ratio of medians of paired repeats, [repeats] each: Definition 3.7."""
  draft_seconds, target_seconds = _pairs(draft_seconds, target_seconds)
  return Estimate(
      float(np.median(draft_seconds) / np.median(target_seconds)),
      ratio_interval(draft_seconds, target_seconds, np.median),
      len(draft_seconds),
  )


def _aligned(first, second) -> tuple[np.ndarray, np.ndarray]:
  first = np.asarray(first, np.float64)
  second = np.asarray(second, np.float64)
  if first.ndim != 1 or first.shape != second.shape or not first.size:
    raise ValueError(
        'Pairs are two arrays of one axis, equally long and not empty, got the'
        f' shapes {first.shape} and {second.shape}.'
    )
  return first, second


def _pairs(numerators, denominators) -> tuple[np.ndarray, np.ndarray]:
  numerators, denominators = _aligned(numerators, denominators)
  _check('Numerators', numerators, np.isfinite(numerators), 'be finite')
  is_allowed = (denominators > 0) & np.isfinite(denominators)
  _check('Denominators', denominators, is_allowed, 'be finite and above 0')
  return numerators, denominators


def _distribution(name: str, probs: npt.ArrayLike) -> np.ndarray:
  probs = np.asarray(probs, np.float64)
  _check(name, probs, probs >= 0, 'be at least 0')
  mass = np.sum(probs, axis=-1)
  is_allowed = np.abs(mass - 1) <= _MASS_TOLERANCE
  _check(f'The sum of {name}', mass, is_allowed, 'be 1 along the last axis')
  return probs


def _alpha(alpha: npt.ArrayLike) -> np.ndarray:
  return _check_rates('alpha', np.asarray(alpha, np.float64))


def _check_rates(name: str, rates: np.ndarray) -> np.ndarray:
  return _check(name, rates, (rates >= 0) & (rates <= 1), 'lie in [0, 1]')


def _gamma(gamma: npt.ArrayLike) -> np.ndarray:
  gamma = np.asarray(gamma, np.float64)
  is_allowed = (gamma >= 1) & (gamma == np.floor(gamma))
  return _check('gamma', gamma, is_allowed, 'be whole and at least 1')


def _finite_gamma(gamma: npt.ArrayLike) -> np.ndarray:
  gamma = _gamma(gamma)
  return _check('gamma', gamma, np.isfinite(gamma), 'be finite')


def _coefficient(name: str, value: npt.ArrayLike) -> np.ndarray:
  value = np.asarray(value, np.float64)
  is_allowed = (value >= 0) & np.isfinite(value)
  return _check(name, value, is_allowed, 'be finite and at least 0')


def _check(
    name: str, values: np.ndarray, is_allowed: npt.ArrayLike, allowed: str
) -> np.ndarray:
  """The values; raises with the first that is not allowed."""
  if not np.all(is_allowed):
    values, is_allowed = np.broadcast_arrays(values, is_allowed)
    raise ValueError(f'{name} must {allowed}, got {values[~is_allowed][0]}.')
  return values
