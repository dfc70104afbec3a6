# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Generator of the embedded corpora: translations, summaries, paraphrases.

`python -m scripts.bulletins` writes the splits and their vocabulary into
`speculative_t5x/tasks/bulletins`. From the words up:

  data/          words, statements by topic, and ways to join them, in TOML
  forms.py       numbers, dates, times, units and money (Babel, num2words)
  grammar.py     German articles, adjective endings and word order
  phrases.py     a phrase in both languages
  drawing.py     ways to draw a phrase
  topics.py      what may be said about a subject, read from `data`
  skeletons.py   statements joined by a frame, and how their slots are filled
  composed.py    frames composed of openings and endings, for training
  corpus.py      the splits of the translation corpus
  reports.py     the splits of the summarization corpus
  paraphrases.py pairs of bulletins with the same facts
  vocabulary.py  the SentencePiece model of the translation corpus
"""
