# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seqio tasks of English to German translation.

Importing this module registers `bulletins_ende`, the task of the embedded
corpus; `multi30k.register` adds `multi30k_ende`. Inputs have no prefix, and
inputs and targets end with EOS. Besides the tokens, an example has

  example_id             [] int32, its index in the split
  inputs_pretokenized    [] string
  targets_pretokenized   [] string
"""

from collections.abc import Callable, Sequence
import os

import seqio
import tensorflow as tf

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metrics

BULLETINS = 'bulletins_ende'

Pairs = Sequence[tuple[str, str]]


def add_task(
    name: str,
    read_pairs: Callable[[str], Pairs],
    *,
    splits: Sequence[str],
    vocabulary_file: str | os.PathLike[str],
) -> None:
  """Registers a translation task and replaces one of the same name.

  Args:
    name: name of the task.
    read_pairs: returns the pairs of a split; called when the split is first
      read.
    splits: names of the splits that `read_pairs` accepts.
    vocabulary_file: SentencePiece model of inputs and targets.
  """
  if name in seqio.TaskRegistry.names():
    # A task that reads another folder must not silently remain.
    seqio.TaskRegistry.remove(name)
  vocabulary = seqio.SentencePieceVocabulary(os.fspath(vocabulary_file))
  feature = seqio.Feature(vocabulary, add_eos=True)
  seqio.TaskRegistry.add(
      name,
      source=seqio.FunctionDataSource(_dataset_fn(read_pairs), splits=splits),
      preprocessors=[
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features={'inputs': feature, 'targets': feature},
      metric_fns=[_bleu, _tokens_per_target_call],
  )


def _bleu(targets, predictions, aux_values):
  """Calls `metrics.bleu` with the signature of an auxiliary-value metric.

  seqio classifies metrics by their parameters without defaults, and decodes a
  task twice if only some of its metrics take auxiliary values.
  """
  return metrics.bleu(targets, predictions, aux_values)


def _tokens_per_target_call(targets, predictions, aux_values):
  """Calls `metrics.tokens_per_target_call` with seqio's metric signature."""
  del targets, predictions
  return metrics.tokens_per_target_call(aux_values)


def _dataset_fn(read_pairs):
  """Returns the function that makes a split's dataset."""

  def dataset(split: str, shuffle_files: bool, seed: int | None = None):
    # There are no files to shuffle; seqio shuffles the examples.
    del shuffle_files, seed
    inputs, targets = zip(*read_pairs(split), strict=True)
    return tf.data.Dataset.from_tensor_slices(
        {
            'inputs': list(inputs),
            'targets': list(targets),
            'example_id': tf.range(len(inputs)),
        }
    )

  return dataset


add_task(
    BULLETINS,
    bulletins.read_pairs,
    splits=bulletins.SPLITS,
    vocabulary_file=bulletins.VOCABULARY_FILE,
)
