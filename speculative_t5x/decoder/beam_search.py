# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A beam search as one value."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import network
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamSearch:
  """A beam search as T5X defines it, see `speculation.beams`.

  Attributes:
    beams: Hypotheses per input, at least 2; another number compiles anew.
    brevity_penalty: T5X's `alpha`, at least 0: the score of an output is its
      log-probability over ((5 + tokens) / 6) ** brevity_penalty.
    length_penalty: Hugging Face's: the score is the log-probability over tokens
      ** length_penalty, see `beam_scores.LengthPenalty`; None for T5X's scores.
    draft_beams: Draft tokens per depth of a tree, at least `beams`; None for
      twice as many. Chains have none. It changes nothing but the speed, and
      another number compiles anew.
  Raises:
    ValueError: for a value out of range.
  """

  beams: int
  brevity_penalty: float = beams_lib.BREVITY_PENALTY
  length_penalty: float | None = None
  draft_beams: int | None = None

  def __post_init__(self):
    ranges.check_settings(
        ranges.whole(2, np.iinfo(np.int32).max), beams=self.beams
    )
    penalties = {'brevity_penalty': self.brevity_penalty}
    if self.length_penalty is not None:
      penalties['length_penalty'] = self.length_penalty
    ranges.check_settings(ranges.COEFFICIENT, **penalties)
    if self.draft_beams is not None:
      ranges.check_settings(ranges.COUNT, draft_beams=self.draft_beams)

  @property
  def compiled(self) -> 'BeamSearch':
    """A search that is compiled alike: the value of its penalty is dynamic."""
    return dataclasses.replace(
        self,
        brevity_penalty=BeamSearch.brevity_penalty,
        length_penalty=None if self.length_penalty is None else 1.0,
    )

  def bind(
      self, target: network.NetworkModel
  ) -> tuple[network.NetworkModel, beam_scores.Scoring]:
    """Return the target to search with, and what compares its hypotheses."""
    if self.length_penalty is None:
      brevity_penalty = jnp.float32(self.brevity_penalty)
      return target, beam_scores.BrevityPenalty(brevity_penalty)
    ids = target.special_ids
    scoring = beam_scores.LengthPenalty(
        jnp.float32(self.length_penalty),
        network.num_forced(target.network),
        ids.forbidden,
    )
    # It masks log-probabilities, and the target no logits.
    ids = dataclasses.replace(ids, forbidden=())
    return dataclasses.replace(target, special_ids=ids), scoring

  def check_vocabulary(self, size: int) -> None:
    """Raise ValueError for more beams than there are tokens."""
    if self.beams > size:
      raise ranges.ArgumentError(
          f'beams must be at most {size}, the number of tokens of the target,'
          f' got {self.beams}.',
          beams=self.beams,
      )

  def check_num_decodes(self, num_decodes: int) -> None:
    """Raise ValueError for several samples in place of its hypotheses."""
    if num_decodes != 1:
      raise ranges.ArgumentError(
          f'num_decodes is {num_decodes}, the number of samples, and a beam'
          f' search has as many outputs as beams, {self.beams}. Leave one out.',
          num_decodes=num_decodes,
      )


NAMES = tuple(field.name for field in dataclasses.fields(BeamSearch))


def of(
    *,
    beams: int = 1,
    brevity_penalty: float = beams_lib.BREVITY_PENALTY,
    length_penalty: float | None = None,
    draft_beams: int | None = None,
) -> BeamSearch | None:
  """Return a search with options; None for 1 beam, which is not a search.

  Raises:
    ValueError: for a value out of range, or one that 1 beam has no use for.
  """
  options = {
      'brevity_penalty': brevity_penalty,
      'length_penalty': length_penalty,
      'draft_beams': draft_beams,
  }
  ranges.check_settings(ranges.COUNT, beams=beams)
  if beams > 1:
    return BeamSearch(beams=beams, **options)
  for name, value in options.items():
    if value != getattr(BeamSearch, name):  # its default
      raise ranges.ArgumentError(
          f'{name} is a setting of a beam search, and beams is 1. Leave out'
          f' {name}, or set beams. Got {value}.',
          **{name: value},
      )
  return None


def check_draws_nothing(
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
    draft_sampling: sampling_lib.Sampling | None = None,
    rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE,
) -> None:
  """Check that a search is given nothing that samples alone have a use for.

  A seed will do, as it does for argmax.

  Raises:
    ranges.ArgumentError: naming what is not left to its default.
  """
  greedy = sampling_lib.GREEDY
  for name, value, default in (
      ('sampling', sampling, greedy),
      ('draft_sampling', draft_sampling or greedy, greedy),
      ('rule', rule, verification.TOKENWISE),
  ):
    if value != default:
      raise ranges.ArgumentError(
          f'A beam search draws nothing: {name} has no use there. Leave out'
          f' {name}, or set beams=1. Got {value}.',
          **{name: value},
      )
