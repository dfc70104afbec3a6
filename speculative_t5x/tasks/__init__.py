# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of translation and summarization: corpora, seqio tasks and metrics.

  bulletins    the embedded corpus, as text
  multi30k     Multi30k from a folder, as text, and its seqio task
  spec_bench   Spec-Bench's rows from a file, as text, and their seqio tasks
  ende         registers the seqio task of the bulletins
  tfds_tasks   registers WMT14, CNN/DailyMail and XSum
  tfds_source  reads what TensorFlow Datasets has prepared
  seqio_tasks  registers text-to-text tasks with seqio
  examples     a split of a seqio task, as arrays
  example_ids  ids of examples
  metrics      BLEU, ROUGE, and tokens per target call
  metric_fns   the metrics as seqio calls them
  task_metrics the metrics of a task, computed and logged
  predictions  decoded texts and their metrics

`bulletins`, `metrics` and `example_ids` need neither seqio nor TensorFlow, and
`multi30k` and `spec_bench` only to register a task.
"""
