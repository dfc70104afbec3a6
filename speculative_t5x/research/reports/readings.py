# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values that reports derive from a run record."""

from collections.abc import Iterable

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import verification as tokenwise

_HARDLY_ANY = 0.005  # shown as 0% of draft tokens accepted

Model = descriptions.ModelDescription | descriptions.DrafterDescription


def alpha(record: run_record.RunRecord) -> float | None:
  """Return the rate of simulated acceptance, or alpha by Corollary 3.6."""
  if is_simulated(record):
    return record.simulated_acceptance
  return record.alpha and record.alpha.value


def is_simulated(record: run_record.RunRecord) -> bool:
  """Return whether draft tokens were accepted at a given rate."""
  return record.simulated_acceptance is not None


def rule(record: run_record.RunRecord) -> str:
  """Return the rule of a run, and whether it is not lossless."""
  if record.verification is None:
    return tokenwise.TOKENWISE.name
  lossy = ', not lossless' if record.lossless is False else ''
  return f'{record.verification.rule}{lossy}'


def policy(record: run_record.RunRecord) -> str:
  """Return the draft length policy of a run, with its numbers."""
  return record.gamma_policy or draft_length.Fixed.name


def input_notes(records: Iterable[run_record.RunRecord]) -> list[str]:
  """Return sentences on inputs that were truncated or are in part unknown."""
  records = [*records]
  notes = [
      f'{record.truncated_inputs} of {record.num_examples} inputs were'
      f' truncated to {record.inputs_length} tokens. Larger'
      ' task_feature_lengths keep them whole.'
      for record in records
      if record.truncated_inputs
  ]
  notes += [
      f'{record.unknown_inputs} of {record.num_examples} inputs have text that'
      ' the vocabulary does not know: unknown pieces, or control tokens such as'
      ' <2de> that it splits.'
      for record in records
      if record.unknown_inputs
  ]
  return list(dict.fromkeys(notes))


def draft_notes(record: run_record.RunRecord) -> list[str]:
  """Return a sentence on drafts of which almost nothing was accepted."""
  accepted = record.draft_acceptance_rate
  if accepted is None or accepted >= _HARDLY_ANY:
    return []
  return [
      'Hardly any draft token was accepted: this draft does not pay, as after'
      ' too short a training. Train it longer, give another draft, or'
      ' decode without it.'
  ]


def interleaving_factor(record: run_record.RunRecord) -> float | None:
  """Return the time of a speculative step over the sum of its parts' times.

  It is above 1 if draft and target evict each other from the caches.
  """
  if record.t_call_ms is None:
    return None
  later_ms = (record.gamma - 1) * record.t_draft_ms
  parts_ms = record.t_draft2_ms + later_ms + record.t_verify_ms
  return record.t_call_ms / parts_ms


def per_target_call(record: run_record.RunRecord) -> tuple[str, float | None]:
  """Return what a target call makes, and how many.

  Steps of a beam search, each a token of every hypothesis: its outputs are not
  all that it writes.
  """
  if record.beams is not None:
    return 'steps', record.mean_acceptance_length
  return 'tokens', record.tokens_per_target_call


def method(record: run_record.RunRecord) -> str:
  """Return the drafter, and rule and policy if they are not the paper's."""
  name = model_name(record.drafter)
  if record.drafter.candidates is not None:
    name += f', tree {record.drafter.candidates}'
  return ', '.join([name, *rule_and_policy(record)])


def rule_and_policy(record: run_record.RunRecord) -> list[str]:
  """Return the rule and the policy if they are not those of the paper."""
  words = []
  if not is_simulated(record) and rule(record) != tokenwise.TOKENWISE.name:
    words.append(f'rule {rule(record)}')
  if policy(record) != draft_length.Fixed.name:
    words.append(policy(record))
  return words


def model_name(model: Model) -> str:
  """Return the name of a checkpoint, or the kind and size of its model."""
  if model.name:
    return model.name
  kind = getattr(model, 'kind', None) or 'no checkpoint'
  count = model.num_params
  return kind if count is None else f'{kind} {size(count)}'


def size(num_params: float) -> str:
  """Return a number of parameters in millions or billions, with 3 digits."""
  if num_params >= 999.5e6:
    return f'{num_params / 1e9:.3g}B'
  return f'{num_params / 1e6:.3g}M'
