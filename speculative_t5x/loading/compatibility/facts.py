# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Facts about a pair, known without its weights, and findings from them."""

from collections.abc import Mapping
import dataclasses
from typing import Literal

import jax

from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5

Verdict = Literal['ok', 'note', 'warning', 'error']
FROM_PARAMETERS = 'the parameters'  # as the source of a config


@dataclasses.dataclass(frozen=True)
class Candidate:
  """Facts about one model of a pair, known without its weights.

  Attributes:
    checkpoint: folder of the checkpoint.
    layout: layout of the checkpoint; empty if unknown.
    specs: shapes and dtypes of the parameters, by name; empty if they cannot be
      read.
    config: sizes, and the dtype of decoding; None if they cannot be read.
    config_source: source of the sizes.
    vocabulary: the vocabulary; None if none was given or it cannot be read.
    is_assumed: whether the vocabulary is only assumed to be the model's.
    problems: reasons why the model cannot be used in any pair.
  """

  checkpoint: str
  layout: str = ''
  specs: Mapping[str, jax.ShapeDtypeStruct] = dataclasses.field(
      default_factory=dict
  )
  config: t5.T5Config | None = None
  config_source: str = ''
  vocabulary: vocabularies.Vocabulary | None = None
  is_assumed: bool = False
  problems: tuple[str, ...] = ()

  def with_problem(self, problem: str) -> 'Candidate':
    return dataclasses.replace(self, problems=(*self.problems, problem))


@dataclasses.dataclass(frozen=True)
class Finding:
  """The result of one check.

  Attributes:
    name: name of the check.
    target: the target's value.
    draft: the draft's value.
    verdict: the verdict; a pair with an 'error' cannot be used.
    remedy: explanation and remedy; empty if the verdict is 'ok'.
  """

  name: str
  target: str
  draft: str
  verdict: Verdict = 'ok'
  remedy: str = ''

  def judged(self, verdict: Verdict, remedy: str) -> 'Finding':
    """Returns the finding with a verdict and a remedy."""
    return dataclasses.replace(self, verdict=verdict, remedy=remedy)


@dataclasses.dataclass(frozen=True)
class Report:
  """The findings about a pair, in the order in which they are shown.

  Attributes:
    checkpoints: folders of the target's and the draft's checkpoints.
    findings: see `Finding`.
    assumptions: assumptions of the checks, as sentences.
  """

  checkpoints: tuple[str, str]
  findings: tuple[Finding, ...]
  assumptions: tuple[str, ...]

  @property
  def errors(self) -> tuple[Finding, ...]:
    return tuple(f for f in self.findings if f.verdict == 'error')
