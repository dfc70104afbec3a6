# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of plain and speculative decoding of given texts.

The walltime job measures the examples of a task in the same way, and resumes
after an interruption.
"""

from collections.abc import Sequence
import dataclasses
import math

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification


def measure(
    decoder: text_decoder.TextDecoder,
    texts: Sequence[str],
    gammas: int | Sequence[int],
    *,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
    seed: int = 0,
    rule: contracts.Rule = verification.TOKENWISE,
    repeats: int = 3,
    rounds: int = walltimes.ROUNDS,
) -> list[run_record.RunRecord]:
  """Measure speedup, alpha, c and the bound of the speedup, at batch size 1.

  Args:
    decoder: Target, drafter and vocabulary.
    texts: Inputs, decoded one at a time.
    gammas: Draft tokens per target call, one or several.
    sampling: Sampling of target and drafter.
    seed: Seed of samples; a text draws from it and its own position.
    rule: Which draft tokens are accepted.
    repeats: How often each text is timed; the median counts.
    rounds: How often the parts are timed.
  Returns:
    One record per gamma, as the walltime job writes it, without a task and its
    metrics.
  Raises:
    ValueError: for a value out of range, or an empty input.
    greedy.MismatchError: if greedy outputs differ by more than rounding.
  """
  if isinstance(texts, str) or not texts:
    raise ValueError(
        f'texts must be a list of at least one input, got {texts!r}.'
    )
  ranges.check_settings(ranges.COUNT, repeats=repeats, rounds=rounds)
  gammas = arguments.several_counts('gammas', gammas)
  arguments.check_gammas(gammas, decoder.tokens.options.max_tokens)
  options = {'sampling': sampling, 'seed': seed, 'rule': rule}
  made = [
      whole_batches.make_batch(decoder, [text], example_ids=[number], **options)
      for number, text in enumerate(texts)
  ]
  rows = [row for _, (row,) in made]
  batches = [decoder.tokens.place(batch) for batch, _ in made]
  written = acceptance.write(
      decoder.tokens,
      [row.request for row in rows],
      request_lib.Settings(**options),
      math.inf,
      batch_size=1,
  )
  scored = acceptance.collect(decoder.tokens, written)
  settings = provenance.new_record(
      'walltime',
      num_examples=len(texts),
      truncated_inputs=sum(row.is_truncated for row in rows),
      unknown_inputs=sum(row.is_unknown for row in rows),
      seed=seed,
      batch_size=1,
      inputs_length=decoder.options.inputs_length,
      repeats=repeats,
      rounds=rounds,
      alpha=intervals.estimate_alpha([text.betas for text in scored]),
  )
  records = []
  for gamma in gammas:
    tokens = decoder.tokens.with_drafter(decoder.tokens.loaded_drafter, gamma)
    described = provenance.describe_decoding(tokens, rule, sampling)
    record, plain, speculative = walltimes.measure(
        part_programs.PartPrograms(tokens),
        batches,
        dataclasses.replace(settings, **described),
        f'gamma {gamma}',
    )
    record = walltimes.add_alpha(record, record.alpha, rule)
    counted = greedy.compare(tokens, batches, plain, speculative)
    records.append(dataclasses.replace(record, greedy=counted))
  greedy.check(records)
  return records
