# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seqio task of German summarization.

Importing this module registers `bulletins_summary`, the task of the embedded
reports. Its features, and what else an example has, are those of `ende`.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

BULLETINS_SUMMARY = 'bulletins_summary'

seqio_tasks.add_task(
    BULLETINS_SUMMARY,
    seqio_tasks.source_of_pairs(bulletins.read_reports, bulletins.SPLITS),
    metric_fns=metric_fns.SUMMARIZATION,
    vocabulary_file=bulletins.VOCABULARY_FILE,
)
