# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of translations, of summaries and of speculative decoding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
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
  library's metric uses 'intl', as do the tasks that follow it; on German
  Multi30k the two differ by about one point.

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
  _check_same_number(targets, predictions)
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


def rouge(
    targets: Sequence[str],
    predictions: Sequence[str],
    aux_values: Mapping[str, Any] | None = None,
) -> dict[str, float]:
  """Computes ROUGE as the T5 library does, without its bootstrap.

  Words are lower case and not stemmed. ROUGE-Lsum splits a text into sentences
  at newlines and at full stops between spaces. The values are means over the
  examples. The T5 library reports the medians of 1,000 bootstrap samples of
  these means, drawn without a seed, which differ from the means by sampling
  noise.

  Args:
    targets: one reference per example.
    predictions: the summaries, in the same order.
    aux_values: the model's auxiliary outputs; unused.

  Returns:
    F1 of `rouge1`, `rouge2` and `rougeLsum`, from 0 to 100.

  Raises:
    ValueError: if the numbers of targets and predictions differ.

  Reference: Lin (2004), "ROUGE: A Package for Automatic Evaluation of
  Summaries", Sections 2 and 3.
  """
  from rouge_score import rouge_scorer  # loads nltk, which takes a second

  del aux_values
  _check_same_number(targets, predictions)
  names = ('rouge1', 'rouge2', 'rougeLsum')
  scorer = rouge_scorer.RougeScorer(names)
  scores = [
      scorer.score(_split_sentences(target), _split_sentences(prediction))
      for target, prediction in zip(targets, predictions, strict=True)
  ]
  return {
      name: 100 * float(np.mean([score[name].fmeasure for score in scores]))
      for name in names
  }


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


def _check_same_number(targets, predictions) -> None:
  if len(targets) != len(predictions):
    raise ValueError(
        'targets and predictions must have the same length. Got '
        f'{len(targets)} and {len(predictions)}.'
    )


def _split_sentences(text: str) -> str:
  """Returns a text with a newline after each full stop between spaces."""
  return text.replace(' . ', ' .\n')
