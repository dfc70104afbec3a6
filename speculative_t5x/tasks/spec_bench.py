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

from collections.abc import Mapping
import os
from typing import Any

from speculative_t5x.tasks import text_files

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
  """Read the rows of one of CATEGORIES, in the order of the file.

  The file may be remote (`gs://`). Spec-Bench's instruction at the start of a
  prompt is replaced by T5's prefix; a prompt that begins with another text is
  unchanged.
  """
  wanted = 'a row of Spec-Bench with a category, one turn and a reference'
  rows = text_files.read_rows(
      data_file,
      lambda row: (
          row['category'],
          _pair(row) if row['category'] == category else None,
      ),
      wanted,
      _SOURCE,
  )
  pairs = [pair for found, pair in rows if found == category]
  if not pairs:
    raise ValueError(
        f'{data_file} has no row of the category {category}, only of'
        f' {", ".join(sorted({found for found, _ in rows})) or "none"}.'
        f' {_SOURCE}'
    )
  return pairs


def _pair(row: Mapping[str, Any]) -> tuple[str, str]:
  """Return a row's prompt, with T5's prefix, and its reference."""
  (prompt,), (reference, *_) = row['turns'], row['reference']
  for instruction, prefix in _PREFIXES.items():
    if prompt.startswith(instruction):
      prompt = prefix + prompt.removeprefix(instruction)
  return prompt, reference


def register(
    data_file: str | os.PathLike[str],
    category: str,
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> str:
  """Register the seqio task of one of CATEGORIES; return its name.

  It is `spec_bench_translation` or `spec_bench_summarization`, in place of one
  of the same name. Without a SentencePiece model, the vocabulary is T5's.
  """
  # seqio imports TensorFlow, which reading pairs does not need.
  from speculative_t5x.tasks import metric_fns
  from speculative_t5x.tasks import seqio_tasks

  metrics = {
      'translation': metric_fns.T5_TRANSLATION,
      'summarization': metric_fns.SUMMARIZATION,
  }
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
