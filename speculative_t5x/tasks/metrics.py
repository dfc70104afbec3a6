# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How translations are judged."""

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
  """Computes corpus BLEU, case kept, with exponential smoothing.

  Tokenization is by the rules of mteval-v13a, sacrebleu's default. The metric
  of the T5 library tokenizes by 'intl' instead; on Multi30k in German the two
  are a point apart.

  Args:
    targets: one reference for each example.
    predictions: the translations, in the same order.
    aux_values: what else the model returned, not used.
    tokenize: sacrebleu's name for a tokenization.

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
      'targets and predictions must be equally many. Got '
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
  """Computes what speculation saved, where the model says.

  Args:
    aux_values: counts `tokens` and `target_calls` of each example, or neither.

  Returns:
    `tokens_per_target_call`; nothing without the counts.
  """
  if not aux_values or 'target_calls' not in aux_values:
    return {}
  calls = float(sum(map(float, aux_values['target_calls'])))
  tokens = float(sum(map(float, aux_values['tokens'])))
  return {'tokens_per_target_call': tokens / calls}
