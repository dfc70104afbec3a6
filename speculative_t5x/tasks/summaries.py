# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seqio task of German summarization.

Importing this module registers `bulletins_summary`, the task of the embedded
reports. Its features, and what else an example has, are those of `ende`.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende

BULLETINS_SUMMARY = 'bulletins_summary'

ende.add_task(
    BULLETINS_SUMMARY,
    bulletins.read_reports,
    splits=bulletins.SPLITS,
    vocabulary_file=bulletins.VOCABULARY_FILE,
)
