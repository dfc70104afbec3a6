# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Generator of the embedded English-German bulletins.

`python -m scripts.bulletins` writes the splits and their vocabulary into
`speculative_t5x/tasks/bulletins`. From the words up:

  forms.py       numbers, dates, times, units and money (Babel, num2words)
  grammar.py     German articles, adjective endings and word order
  phrases.py     a phrase in both languages, and ways to draw one
  fillers.py     the phrases that every topic may use
  clauses.py     a statement in both languages, with slots for phrases
  topics/        statements by subject, with their own phrases
  frames.py      ways to join statements, held out for the test split or not
  skeletons.py   a frame holding clauses, and how its slots are filled
  corpus.py      the splits
  vocabulary.py  the SentencePiece model of the training split
"""
