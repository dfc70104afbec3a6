# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a model and of a drafter in a run record.

The fields are keys of the JSON objects: see `docs/run_record.md`.
"""

import dataclasses
import pathlib
import re

# Behind the name of a model of the Hugging Face hub.
_COMMIT = re.compile('@[0-9a-f]{40}$')
JOINED = ' then '  # between the paths and the names of drafters in order


@dataclasses.dataclass(frozen=True)
class ModelDescription:
  """The target, or the network of a draft model."""

  name: str | None = None
  checkpoint: str | None = None  # its path
  num_params: int | None = None
  dtype: str | None = None

  def __str__(self) -> str:
    return _in_words(self.name or 'without a checkpoint', self)

  @property
  def paths(self) -> list[str]:
    """Paths of all that the model is read from."""
    return [self.checkpoint] if self.checkpoint else []


@dataclasses.dataclass(frozen=True)
class DrafterDescription:
  """The drafter; a drafter without parameters has a kind and a name only."""

  kind: str | None = None
  name: str | None = None
  checkpoint: str | None = None  # its path
  num_params: int | None = None
  dtype: str | None = None
  model_parallel: bool | None = None  # partitioned as the target is
  temperature: float | None = None
  short_vocabulary: int | None = None  # tokens of its head, if not all
  table: str | None = None  # path of the token counts that it was made from
  candidates: str | None = None  # of a tree, as `CandidateTree` is given them

  def __str__(self) -> str:
    name = self.name or self.kind or 'nothing'
    tree = '' if self.candidates is None else f', tree {self.candidates}'
    return _in_words(name + tree, self)

  @property
  def paths(self) -> list[str]:
    """Paths of all that the drafter, or each of several, is read from."""
    is_joined = JOINED in (self.kind or '')
    return [
        path
        for each in (self.checkpoint, self.table)
        if each
        for path in (each.split(JOINED) if is_joined else [each])
    ]


def name_of(path: str) -> str:
  """Return the name of a model by its path."""
  folder = pathlib.PurePosixPath(_COMMIT.sub('', path))
  return f'{folder.parent.name}/{folder.name}'


def _in_words(
    name: str, description: ModelDescription | DrafterDescription
) -> str:
  count = description.num_params
  size = None if count is None else f'{count / 1e6:.3g}M parameters'
  return ', '.join(x for x in (name, size, description.dtype) if x)
