# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decodes of a target as a seqio task, to train a draft model on.

They are the tokens that an infer job wrote (`predictions.jsonl` with
`tokens`). Nothing is tokenized again: a text may have other tokens than
those that the target chose.
"""

from collections.abc import Mapping
import os
from typing import Any

import seqio
import tensorflow as tf

from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import user_paths
from speculative_t5x.tasks import predictions
from speculative_t5x.tasks import seqio_tasks

NAME = 'decodes'


def register(
    train_file: str | os.PathLike[str],
    validation_file: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str],
) -> str:
  """Register the task in place of one of the same name; return its name.

  Sequences are used as they are written, end of sequence included. Those that
  are longer than the task's feature lengths are cut. The predictions of each
  split's inputs may be remote (`gs://`); the vocabulary is the target's.
  """
  files = {'train': train_file, 'validation': validation_file}
  seqio_tasks.add_task(
      NAME,
      seqio_tasks.source_of_columns(
          lambda split: _read(files[split], vocabulary_file), files
      ),
      # Nothing is worth a cache: with `use_cached`, seqio reads the files too.
      tokenizers=[seqio.map_over_dataset(_as_tensors)],
      metric_fns=[],
      vocabulary_file=vocabulary_file,
  )
  return NAME


def _read(
    path: str | os.PathLike[str], vocabulary_file: str | os.PathLike[str]
) -> Mapping[str, Any]:
  """Return the inputs and outputs of a file, as ragged tensors."""
  vocabulary = vocabularies.load(vocabulary_file)
  pairs = predictions.read_pairs(user_paths.expand(path), vocabulary)
  inputs, targets = zip(*pairs, strict=True)
  return {
      'inputs': tf.ragged.constant(inputs, tf.int32),
      'targets': tf.ragged.constant(targets, tf.int32),
  }


def _as_tensors(example: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
  return {name: tf.convert_to_tensor(x) for name, x in example.items()}
