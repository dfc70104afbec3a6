# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Translation tasks: corpora, seqio tasks and metrics.

  bulletins    the embedded corpus, as text
  multi30k     Multi30k from a folder, as text, and its seqio task
  ende         makes seqio tasks, and registers the one of the bulletins
  examples     a split of a seqio task, as arrays
  example_ids  ids of examples
  metrics      BLEU, and tokens per target call
  predictions  decoded texts and their metrics

`bulletins`, `metrics` and `example_ids` need neither seqio nor TensorFlow.
"""
