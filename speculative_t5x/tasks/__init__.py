# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of translation, summarization and texts: corpora, seqio tasks, metrics.

`bulletins` and `metrics` need neither seqio nor TensorFlow, and `multi30k`
only to register a task.
"""
