# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers the translation task of the embedded corpus, English to German.

Inputs of `bulletins_ende` have no prefix.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

BULLETINS = 'bulletins_ende'

seqio_tasks.add_task(
    BULLETINS,
    seqio_tasks.source_of_pairs(bulletins.read_pairs, bulletins.SPLITS),
    metric_fns=metric_fns.TRANSLATION,
    vocabulary_file=bulletins.VOCABULARY_FILE,
)
