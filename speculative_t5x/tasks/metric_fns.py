# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics with the signature by which seqio passes auxiliary values.

seqio classifies metrics by their parameters without defaults, and decodes a
task twice if only some of its metrics take auxiliary values.
"""

from speculative_t5x.tasks import metrics


def _bleu(targets, predictions, aux_values):
  return metrics.bleu(targets, predictions, aux_values)


def _bleu_of_t5(targets, predictions, aux_values):
  return metrics.bleu(targets, predictions, aux_values, tokenize='intl')


def _rouge(targets, predictions, aux_values):
  return metrics.rouge(targets, predictions, aux_values)


def _tokens_per_target_call(targets, predictions, aux_values):
  del targets, predictions
  return metrics.tokens_per_target_call(aux_values)


TRANSLATION = (_bleu, _tokens_per_target_call)
T5_TRANSLATION = (_bleu_of_t5, _tokens_per_target_call)  # BLEU as T5 reports it
SUMMARIZATION = (_rouge, _tokens_per_target_call)
