# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of translations, of summaries and of speculative decoding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sacrebleu

# Names of the metrics of `speculation`, up to the first slash.
SPECULATION = ('tokens_per_target_call', 'acceptance_rate')
_CALLS = 'tokens', 'target_calls'
_TESTS = (
    'accepted', 'tested', 'accepted_per_position', 'tested_per_position',
)  # fmt: skip


def bleu(
    targets: Sequence[str],
    predictions: Sequence[str],
    *,
    tokenize: str = '13a',
) -> dict[str, float]:
  """Compute `bleu`, case-sensitive over the corpus with exponential smoothing.

  It is from 0 to 100. Targets are one reference per example. The default
  tokenization is mteval-v13a, which is also sacrebleu's. The T5 library's
  metric uses 'intl', as do the tasks that follow it; on German Multi30k the two
  differ by about one point.

  Reference: Papineni et al. (2002), "BLEU: a Method for Automatic Evaluation of
  Machine Translation", Section 2; Post (2018), arXiv:1804.08771, Section 3.
  """
  # sacrebleu itself would score as many as the shorter list has.
  references = [x for x, _ in zip(targets, predictions, strict=True)]
  score = sacrebleu.corpus_bleu(
      list(predictions),
      [references],
      force=True,
      tokenize=tokenize,
  )
  # The exponential of a logarithm, which is above 100 for equal texts.
  return {'bleu': min(score.score, 100.0)}


def rouge(
    targets: Sequence[str],
    predictions: Sequence[str],
) -> dict[str, float]:
  """Compute ROUGE as the T5 library does, without its bootstrap.

  Words are lower case and not stemmed. ROUGE-Lsum splits a text into sentences
  at newlines and at full stops between spaces. The values, F1 of `rouge1`,
  `rouge2` and `rougeLsum` from 0 to 100, are means over the examples, which
  have one reference each. The T5 library reports the medians of 1,000 bootstrap
  samples of these means, drawn without a seed, which differ from the means by
  sampling noise.

  Reference: Lin (2004), "ROUGE: A Package for Automatic Evaluation of
  Summaries", Sections 2 and 3.
  """
  from rouge_score import rouge_scorer  # loads nltk, which takes a second

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


def speculation(aux_values: Mapping[str, Any]) -> dict[str, float]:
  """Compute rates of speculative decoding from counts per example.

  Args:
    aux_values: `tokens` and `target_calls`, [examples, ...]; of a speculative
      run also `tested` and `accepted` draft tokens, [examples, ...], and
      `tested_per_position` and `accepted_per_position`, [examples, ..., gamma].
      Of `scores`, [examples, ...], it is checked that they are finite. Other
      values are ignored.
  Returns:
    `tokens_per_target_call`; of a speculative run also `acceptance_rate`,
    accepted over tested draft tokens, and the same for each position of a block
    from 1 on, as `acceptance_rate/position_1`. Rates of no calls or of no
    tested tokens are left out, as are those whose counts are missing.
  Raises:
    ValueError: for a score that is not finite, which NaN among logits leaves.
      T5X decodes within a compiled function, which cannot raise.
  Reference: Leviathan et al. (2023), Definition 3.1, arXiv:2211.17192v2.
  """
  is_finite = np.isfinite(aux_values.get('scores', ()))
  if not np.all(is_finite):
    example = np.argwhere(~is_finite)[0, 0]
    raise ValueError(
        f'The score of output {example} is not finite, and neither are the'
        " model's logits. Decode in float32, or use another checkpoint."
    )
  counts = {
      name: np.asarray(x)
      for name, x in aux_values.items()
      if name in {*_CALLS, *_TESTS}
  }
  rates = {}
  if counts.keys() >= set(_CALLS):
    rates['tokens_per_target_call'] = [counts[x].sum() for x in _CALLS]
  if counts.keys() >= set(_TESTS):
    accepted, tested, *columns = (counts[name] for name in _TESTS)
    rates['acceptance_rate'] = accepted.sum(), tested.sum()
    sums = [x.reshape(-1, x.shape[-1]).sum(axis=0) for x in columns]
    for number, pair in enumerate(zip(*sums, strict=True), start=1):
      rates[f'acceptance_rate/position_{number}'] = pair
  return {
      name: float(numerator) / float(denominator)
      for name, (numerator, denominator) in rates.items()
      if denominator
  }


def _split_sentences(text: str) -> str:
  """Return a text with a newline after each full stop between spaces."""
  return text.replace(' . ', ' .\n')
