# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks: where the text comes from and how its translation is judged.

  bulletins   the embedded corpus, as text
  multi30k    Multi30k from a folder, as text, and its seqio task
  metrics     BLEU
  ende        makes seqio tasks, and registers the one of the bulletins

Only `ende` imports seqio, and with it TensorFlow.
"""
