# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Earlier answers: outputs for inputs like the present ones, as hints.

An `Embedder` turns inputs into vectors by the target's own encoder. A `Store`
keeps inputs, outputs and vectors, finds the answers to the nearest inputs, and
lies in a folder between runs. A `Finder` adds the answers to requests. Finding
needs the package usearch: `pip install 'speculative_t5x[answers]'`.
"""

from speculative_t5x.decoder.answers.embedding import Embedder
from speculative_t5x.decoder.answers.finder import Finder
from speculative_t5x.decoder.answers.finder import Folder
from speculative_t5x.decoder.answers.store import MAX_ANSWERS
from speculative_t5x.decoder.answers.store import MIN_SIMILARITY
from speculative_t5x.decoder.answers.store import Answer
from speculative_t5x.decoder.answers.store import Match
from speculative_t5x.decoder.answers.store import Store
from speculative_t5x.decoder.answers.store import StoreError

__all__ = [
    'Answer',
    'Embedder',
    'Finder',
    'Folder',
    'MAX_ANSWERS',
    'MIN_SIMILARITY',
    'Match',
    'Store',
    'StoreError',
]
