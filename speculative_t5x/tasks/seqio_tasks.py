# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers text-to-text tasks with seqio.

Targets of all tasks end with EOS, and so do inputs, but for those of tasks for
decoders alone (`texts`). Besides the tokens, an example has

  example_id             [] int32, its index in the split
  inputs_pretokenized    [] string
  targets_pretokenized   [] string
"""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any

import seqio
import tensorflow as tf

from speculative_t5x.loading.files import public_t5
from speculative_t5x.loading.files import user_paths
from speculative_t5x.tasks import metric_fns as metric_fns_lib
from speculative_t5x.tasks import task_vocabulary

# T5X's model files name it, and T5X compares vocabularies by their paths.
T5_VOCABULARY_FILE = public_t5.VOCABULARY_FILE

Pairs = Sequence[tuple[str, str]]

_TOKENIZERS = (
    seqio.preprocessors.tokenize,
    seqio.CacheDatasetPlaceholder(),
    seqio.preprocessors.append_eos_after_trim,
)


def add_task(
    name: str,
    source: seqio.DataSource,
    *,
    metric_fns: Sequence[Callable[..., Mapping[str, metric_fns_lib.Value]]],
    vocabulary_file: str | os.PathLike[str],
    preprocessors: Sequence[Callable[..., tf.data.Dataset]] = (),
    tokenizers: Sequence[Callable[..., tf.data.Dataset]] = _TOKENIZERS,
    ends_inputs: bool = True,
) -> None:
  """Register a task of inputs and targets in place of one of the same name.

  Args:
    name: The name of the task.
    source: Examples with the features `inputs`, `targets` and `example_id`,
      or with those that `preprocessors` expect.
    metric_fns: Metrics of the texts, beside `metric_fns.speculation`. Each must
      take `aux_values` as that does, because seqio decodes a task twice if only
      some of its metrics do.
    vocabulary_file: SentencePiece model or tokenizer.json of both, which may be
      remote (`gs://`).
    preprocessors: Applied before the texts are tokenized.
    tokenizers: Make tokens of the texts, which end with EOS.
    ends_inputs: Whether inputs end with EOS too, as for an encoder. A decoder
      alone goes on where its input ends.
  """
  vocabulary = load_vocabulary(vocabulary_file)
  if name in seqio.TaskRegistry.names():
    # A task that reads another folder must not silently remain.
    seqio.TaskRegistry.remove(name)
  seqio.TaskRegistry.add(
      name,
      source=source,
      preprocessors=[*preprocessors, *tokenizers],
      output_features={
          'inputs': seqio.Feature(vocabulary, add_eos=ends_inputs),
          'targets': seqio.Feature(vocabulary, add_eos=True),
      },
      metric_fns=[*metric_fns, metric_fns_lib.speculation],
  )


def source_of_pairs(
    read_pairs: Callable[[str], Pairs], splits: Sequence[str]
) -> seqio.DataSource:
  """Return a source of pairs (input, target); see `source_of_columns`."""

  def read(split: str) -> Mapping[str, list[str]]:
    inputs, targets = zip(*read_pairs(split), strict=True)
    return {'inputs': list(inputs), 'targets': list(targets)}

  return source_of_columns(read, splits)


def source_of_columns(
    read: Callable[[str], Mapping[str, Any]], splits: Sequence[str]
) -> seqio.DataSource:
  """Return a source of examples whose ids are their indices in the split.

  `read` returns the features of one of the splits, lists or tensors with one
  entry per example; it is called when the split is first read.
  """

  def dataset(split: str, shuffle_files: bool, seed: int | None = None):
    # There are no files to shuffle; seqio shuffles the examples.
    del shuffle_files, seed
    if split not in splits:  # seqio does not check it, and T5X neither
      raise ValueError(
          f'There is no split {split}. Choose one of {", ".join(splits)}; parts'
          ' of splits cannot be named.'
      )
    rows = tf.data.Dataset.from_tensor_slices(read(split))
    return rows.enumerate().map(
        lambda i, row: {**row, 'example_id': tf.cast(i, tf.int32)}
    )

  return seqio.FunctionDataSource(dataset, splits=splits)


def load_vocabulary(path: str | os.PathLike[str]) -> seqio.Vocabulary:
  """Load a SentencePiece model or tokenizer.json, read at its first use."""
  expanded = os.fspath(user_paths.expand(path))
  if expanded.endswith('.json'):
    return task_vocabulary.SeqioTokenizer(expanded)
  return seqio.SentencePieceVocabulary(expanded)
