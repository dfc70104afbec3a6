# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of texts alone, which a decoder alone writes or goes on with.

An input is what stands before a text (`[CLS]` of a WordPiece vocabulary), and
the first tokens of the text if it is a prompt. The target is what follows, with
EOS.

  lm1b    the One Billion Word Benchmark, shuffled sentences of news

Reference: Chelba et al. (2013), "One Billion Word Benchmark for Measuring
Progress in Statistical Language Modeling", arXiv:1312.3005.
"""

from collections.abc import Mapping
import os

import seqio
import tensorflow as tf

from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import task_vocabulary
from speculative_t5x.tasks import tfds_tasks

LM1B = 'lm1b'
TEXT = 'text'  # the feature of the texts
_TFDS_NAME = 'lm1b:1.1.0'
_NUM_VALIDATION = 5000
# The data set has two splits, train and the held-out test.
_SPLITS = {
    'train': f'train[{_NUM_VALIDATION}:]',
    'validation': f'train[:{_NUM_VALIDATION}]',
    'test': 'test',
}


def register_lm1b(
    vocabulary_file: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    files: Mapping[str, str | os.PathLike[str]] | None = None,
    prompt_tokens: int = 0,
) -> str:
  """Register the seqio task in place of one of the same name; return its name.

  The folder is that of TensorFlow Datasets, see `tfds_tasks.register`. Or files
  of JSON lines are read instead, by their splits: objects with the field
  `text`. For the other arguments see `add`.
  """
  remedy = "Or set files={'train': '<file>', ...} (docs/data.md)."
  source = tfds_tasks.PreparedDataSource(_TFDS_NAME, data_dir, remedy, _SPLITS)
  if files:
    source = seqio_tasks.source_of_columns(
        lambda split: tfds_tasks.read_columns(files[split], [TEXT]),
        tuple(files),
    )
  return add(LM1B, source, vocabulary_file, prompt_tokens)


def add(
    name: str,
    source: seqio.DataSource,
    vocabulary_file: str | os.PathLike[str],
    prompt_tokens: int = 0,
) -> str:
  """Register a task of texts in place of one of the same name; return its name.

  The examples have the features `text` and `example_id`. The vocabulary is a
  tokenizer.json, or a SentencePiece model. So many tokens of a text belong to
  its input; 0 for texts that are written from the beginning, as for training.
  """
  ranges.check_settings(ranges.NATURAL, prompt_tokens=prompt_tokens)
  vocabulary = seqio_tasks.load_vocabulary(vocabulary_file)

  def divide(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    begin_ids = task_vocabulary.of(vocabulary).begin_ids
    text = vocabulary.encode_tf(example[TEXT])
    prompt = [tf.constant(begin_ids, tf.int32), text[:prompt_tokens]]
    return {
        'inputs': tf.concat(prompt, axis=0),
        'targets': text[prompt_tokens:],
        'example_id': example['example_id'],
    }

  seqio_tasks.add_task(
      name,
      source,
      tokenizers=[
          seqio.map_over_dataset(divide),
          seqio.CacheDatasetPlaceholder(),
          seqio.preprocessors.append_eos_after_trim,
      ],
      metric_fns=[],
      vocabulary_file=vocabulary_file,
      ends_inputs=False,
  )
  return name
