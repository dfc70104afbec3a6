# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of translations and of speculative decoding."""

from collections.abc import Mapping, Sequence
from typing import Any

import sacrebleu


def bleu(
    targets: Sequence[str],
    predictions: Sequence[str],
    aux_values: Mapping[str, Any] | None = None,
    *,
    tokenize: str = '13a',
) -> dict[str, float]:
  """Computes case-sensitive corpus BLEU with exponential smoothing.

  The default tokenization is mteval-v13a, which is also sacrebleu's. The T5
  library's metric uses 'intl'; on German Multi30k the two differ by about one
  point.

  Args:
    targets: one reference per example.
    predictions: the translations, in the same order.
    aux_values: the model's auxiliary outputs; unused.
    tokenize: sacrebleu's name of a tokenization.

  Returns:
    `bleu`, from 0 to 100.

  Raises:
    ValueError: if the numbers of targets and predictions differ.

  Reference: Papineni et al. (2002), "BLEU: a Method for Automatic Evaluation
  of Machine Translation", Section 2; Post (2018), arXiv:1804.08771, Section 3.
  """
  del aux_values
  if len(targets) != len(predictions):
    raise ValueError(
        'targets and predictions must have the same length. Got '
        f'{len(targets)} and {len(predictions)}.'
    )
  score = sacrebleu.corpus_bleu(
      list(predictions),
      [list(targets)],
      smooth_method='exp',
      smooth_value=0.0,
      force=True,
      lowercase=False,
      tokenize=tokenize,
      use_effective_order=False,
  )
  return {'bleu': score.score}


def tokens_per_target_call(
    aux_values: Mapping[str, Any],
) -> dict[str, float]:
  """Computes tokens per target call from a model's auxiliary outputs.

  Args:
    aux_values: counts `tokens` and `target_calls` per example, or neither.

  Returns:
    `tokens_per_target_call`; an empty dict without the counts.
  """
  if not aux_values or 'target_calls' not in aux_values:
    return {}
  calls = float(sum(map(float, aux_values['target_calls'])))
  tokens = float(sum(map(float, aux_values['tokens'])))
  return {'tokens_per_target_call': tokens / calls}
