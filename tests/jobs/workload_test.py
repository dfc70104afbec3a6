# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What jobs say of a drafter and a policy that do not go together."""

import types

import pytest

from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import nothing
from speculative_t5x.jobs import workload
from speculative_t5x.policies import confidence
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling
from tests import tiny_drafters

_LOOKUP = tiny_drafters.make_lookup(2)
_MODEL = tiny_drafters.of_model(tiny_drafters.TARGET, 2, None).drafter
_BOTH = in_order.InOrder((_LOOKUP, _MODEL), tiny_drafters.TARGET)


def _decoder(drafter, policy=None):
  """Returns what the notes read of a decoder."""
  name = None if isinstance(drafter, nothing.Nothing) else 'the drafter'
  description = types.SimpleNamespace(name=name)
  loaded = types.SimpleNamespace(description=description)
  return types.SimpleNamespace(
      drafter=drafter, policy=policy, loaded_drafter=loaded
  )


@pytest.mark.parametrize(
    ('drafter', 'draft_topk', 'is_said'),
    [
        (_LOOKUP, 3, True),
        (_LOOKUP, 2, False),
        (_BOTH, 3, False),
        (_MODEL, 3, False),
        (nothing.Nothing(2), 3, False),
    ],
)
def test_sampling_of_a_drafter_that_samples_nothing(
    capsys, drafter, draft_topk, is_said
):
  both = sampling.Sampling(topk=2), sampling.Sampling(topk=draft_topk)
  workload.note_unread_sampling(_decoder(drafter), [sampling.Pair(*both)])
  said = capsys.readouterr().err
  assert ('DRAFT_TOPK' in said and 'the drafter' in said) == is_said
  assert said.count('\n') == is_said


@pytest.mark.parametrize(
    ('drafter', 'policy', 'is_said'),
    [
        (_LOOKUP, confidence.Confidence(), True),
        (_LOOKUP, confidence.Entropy(), True),
        (_LOOKUP, draft_length.Fixed(), False),
        (_BOTH, confidence.Confidence(), True),
        (_MODEL, confidence.Confidence(), False),
        (nothing.Nothing(2), confidence.Confidence(), False),
    ],
)
def test_policy_that_cannot_stop_drafts(capsys, drafter, policy, is_said):
  workload.note_unstopped_drafts(_decoder(drafter, policy))
  said = capsys.readouterr().err
  assert (policy.name in said and 'the drafter' in said) == is_said
  assert said.count('\n') == is_said
