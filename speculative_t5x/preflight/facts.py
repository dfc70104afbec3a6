# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is known of a pair before its weights are read, and what comes of it."""

from collections.abc import Mapping
import dataclasses
from typing import Literal

import jax
import sentencepiece

from speculative_t5x.networks import t5

Verdict = Literal['ok', 'note', 'warning', 'error']
FROM_PARAMETERS = 'the parameters'  # as the source of a config


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """A SentencePiece vocabulary.

  Attributes:
    sha256: of the file, in hexadecimal digits.
    num_ids: its pieces, and those that a task adds (`extra_ids`).
    pieces: what the file holds.
    is_assumed: whether it is only taken to be the model's.
  """

  sha256: str
  num_ids: int
  pieces: sentencepiece.SentencePieceProcessor
  is_assumed: bool = False


@dataclasses.dataclass(frozen=True)
class Candidate:
  """What is known of one model before its weights are read.

  Attributes:
    checkpoint: its folder.
    layout: of the checkpoint; empty if unknown.
    specs: of its parameters, by name; empty if they cannot be read.
    config: its sizes, and the dtype to decode in; None if they cannot be read.
    config_source: where the sizes come from.
    vocabulary: None if none was given, or if it cannot be read.
    problems: what makes it unusable whatever it is paired with.
  """

  checkpoint: str
  layout: str = ''
  specs: Mapping[str, jax.ShapeDtypeStruct] = dataclasses.field(
      default_factory=dict
  )
  config: t5.T5Config | None = None
  config_source: str = ''
  vocabulary: Vocabulary | None = None
  problems: tuple[str, ...] = ()

  def with_problem(self, problem: str) -> 'Candidate':
    return dataclasses.replace(self, problems=(*self.problems, problem))


@dataclasses.dataclass(frozen=True)
class Finding:
  """One thing that was looked at.

  Attributes:
    name: of it.
    target: the target's value.
    draft: the draft's.
    verdict: a pair with an 'error' cannot work.
    remedy: what the verdict means and what to do; empty where all is well.
  """

  name: str
  target: str
  draft: str
  verdict: Verdict = 'ok'
  remedy: str = ''

  def judged(self, verdict: Verdict, remedy: str) -> 'Finding':
    """The same values with what they mean."""
    return dataclasses.replace(self, verdict=verdict, remedy=remedy)


@dataclasses.dataclass(frozen=True)
class Report:
  """All findings, in the order in which they are worth reading.

  Attributes:
    checkpoints: folders of the target's and of the draft's.
    findings: see `Finding`.
    assumptions: what was taken for granted.
  """

  checkpoints: tuple[str, str]
  findings: tuple[Finding, ...]
  assumptions: tuple[str, ...]

  @property
  def errors(self) -> tuple[Finding, ...]:
    return tuple(f for f in self.findings if f.verdict == 'error')
