# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Spec-Bench's translation and summarization prompts, from the user's file.

The file is `data/spec_bench/question.jsonl` of the public repository
hemingkx/Spec-Bench. It has 80 sentences of WMT14, German to English, and 80
articles of CNN/DailyMail. A row has the keys

  category    of which `translation` and `summarization` can be tasks
  turns       the prompt, as a list of one text
  reference   a list whose first text is the reference

Reading pairs does not need seqio.

Reference: Xia et al. (2024), "Unlocking Efficiency in Large Language Model
Inference: A Comprehensive Survey of Speculative Decoding", arXiv:2401.07851.
"""

import json
import os
from typing import Any

from etils import epath

CATEGORIES = ('translation', 'summarization')
SPLITS = ('test',)
# Spec-Bench's instructions, and the prefixes that T5 was trained with.
_PREFIXES = {
    'Translate German to English: ': 'translate German to English: ',
    'Summarize: ': 'summarize: ',
}
_SOURCE = (
    'Copy data/spec_bench/question.jsonl from the repository'
    ' hemingkx/Spec-Bench.'
)


def read_pairs(
    data_file: str | os.PathLike[str], category: str
) -> list[tuple[str, str]]:
  """Reads the rows of a category.

  Args:
    data_file: path of the JSON lines, which may be remote (`gs://`).
    category: one of CATEGORIES.

  Returns:
    Pairs of a prompt and its reference, in the order of the file. Spec-Bench's
    instruction at the start of a prompt is replaced by T5's prefix; a prompt
    that begins with another text is unchanged.

  Raises:
    FileNotFoundError: if the file is missing.
    ValueError: if the category is unknown or the file has no row of it, or if a
      row is not as described above.
  """
  _check_category(category)
  path = _require_file(data_file)
  pairs, categories = [], set()
  for number, line in enumerate(_read_lines(path), start=1):
    if not line.strip():
      continue
    row = _parse(line, f'{path}, line {number}')
    categories.add(row['category'])
    if row['category'] == category:
      pairs.append(_pair(row, f'{path}, line {number}'))
  if not pairs:
    raise ValueError(
        f'{path} has no row of the category {category}, only of'
        f' {", ".join(sorted(categories)) or "none"}. {_SOURCE}'
    )
  return pairs


def register(
    data_file: str | os.PathLike[str],
    category: str,
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> str:
  """Registers the seqio task of a category and replaces one registered before.

  Args:
    data_file: path of the JSON lines, which may be remote (`gs://`).
    category: one of CATEGORIES.
    vocabulary_file: path of a SentencePiece model; None for T5's.

  Returns:
    The task's name, `spec_bench_translation` or `spec_bench_summarization`.

  Raises:
    FileNotFoundError: if the file or a local vocabulary is missing.
    ValueError: for an unknown category.
  """
  # seqio imports TensorFlow, which reading pairs does not need.
  from speculative_t5x.tasks import metric_fns
  from speculative_t5x.tasks import seqio_tasks

  metrics = {
      'translation': metric_fns.T5_TRANSLATION,
      'summarization': metric_fns.SUMMARIZATION,
  }
  _check_category(category)
  _require_file(data_file)
  name = f'spec_bench_{category}'
  seqio_tasks.add_task(
      name,
      seqio_tasks.source_of_pairs(
          lambda split: read_pairs(data_file, category), SPLITS
      ),
      metric_fns=metrics[category],
      vocabulary_file=vocabulary_file or seqio_tasks.T5_VOCABULARY_FILE,
  )
  return name


def _check_category(category: str) -> None:
  if category not in CATEGORIES:
    raise ValueError(f'category must be one of {CATEGORIES}. Got {category!r}.')


def _require_file(data_file) -> epath.Path:
  path = epath.Path(data_file)
  if not path.is_file():
    raise FileNotFoundError(f'There is no file {path}. {_SOURCE}')
  return path


def _read_lines(path: epath.Path) -> list[str]:
  try:
    # Not `splitlines`, which would also split at Unicode line separators.
    return path.read_bytes().decode('utf-8').split('\n')
  except UnicodeDecodeError as error:
    raise ValueError(
        f'{path} is not UTF-8 text ({error}). {_SOURCE}'
    ) from error


def _parse(line: str, place: str) -> dict[str, Any]:
  """Parses a row, which must have a category."""
  try:
    row = json.loads(line)
  except (json.JSONDecodeError, RecursionError) as error:
    raise ValueError(f'{place} is not JSON ({error}). {_SOURCE}') from error
  if not isinstance(row, dict) or not isinstance(row.get('category'), str):
    raise ValueError(
        f'{place} has no category. Give each row a category, turns and a'
        ' reference.'
    )
  return row


def _pair(row: dict[str, Any], place: str) -> tuple[str, str]:
  """Returns a row's prompt, with T5's prefix, and its reference."""
  for key in ('turns', 'reference'):
    texts = row.get(key)
    if not isinstance(texts, list) or not texts or not _is_text(texts[0]):
      raise ValueError(
          f'{place} has no {key}. Give it a list with a text that is not empty.'
      )
  if len(row['turns']) > 1:
    raise ValueError(
        f'{place} has {len(row["turns"])} turns. Give it one; T5 takes a single'
        ' input.'
    )
  prompt = row['turns'][0]
  for instruction, prefix in _PREFIXES.items():
    if prompt.startswith(instruction):
      prompt = prefix + prompt.removeprefix(instruction)
  return prompt, row['reference'][0]


def _is_text(value: Any) -> bool:
  return isinstance(value, str) and bool(value.strip())
