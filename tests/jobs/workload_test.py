# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the requests of jobs hold."""

import dataclasses
import types

import numpy as np
import pytest

from speculative_t5x import policies
from speculative_t5x import rules
from speculative_t5x.jobs import compare
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.rules import block
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from tests import tiny

_RULE = block.BlockVerification()
_OWN = sampling.Sampling(0.7, top_k=7, top_p=0.9, min_p=0.05, typical_p=0.8)
_DRAFTS = sampling.Sampling(0.4, top_k=7, top_p=0.5, min_p=0.05, typical_p=0.0)
_SEED, _LENGTH = 11, 6
_TOKENS = np.array([[5, 6, 1], [7, 1, -1]], np.int32)
_EXAMPLES = types.SimpleNamespace(
    rows=[
        types.SimpleNamespace(tokens=tokens, example_id=i, hints=hints)
        for tokens, i, hints in (([5, 6, 1], 3, [[8, 1]]), ([7, 1], 9, []))
    ]
)


@pytest.fixture(scope='module')
def made():
  return workload_lib.Workload(
      mixture_or_task_name='a task',
      split='validation',
      task_feature_lengths={'inputs': 3, 'targets': _LENGTH},
      checkpoint_path='a target',
      seed=_SEED,
      rule=_RULE,
  )


def _of_workload(made):
  settings = made.settings(_OWN, _DRAFTS)
  requests = workload_lib.requests_of(_EXAMPLES, settings)
  return made.batches(requests, settings, 2)


def _of_compare(made):
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
  decoder = tiny.decoder(config, gamma=3, length=_LENGTH)
  record = made.new_record('eval', decoder, _OWN, _DRAFTS, batch_size=2)
  rows = [
      {'example_id': x.example_id, 'input_tokens': x.tokens}
      for x in _EXAMPLES.rows
  ]
  run = compare._Run(record, 'speculative', rows, [[[1]]] * len(rows))
  return [compare._batch(run, 1)]


@pytest.mark.parametrize(
    ('make', 'draft_sampling', 'rule', 'has_hints'),
    [
        (_of_workload, _DRAFTS, _RULE, True),
        (_of_compare, _OWN, verification.TOKENWISE, False),  # decodes plainly
    ],
)
def test_settings_reach_the_batches(
    made, make, draft_sampling, rule, has_hints
):
  (batch,) = make(made)
  assert batch.sampling == _OWN.as_arrays()
  assert batch.draft_sampling == draft_sampling.as_arrays()
  assert (int(batch.seed), batch.rule) == (_SEED, rule)
  assert batch.inputs.tolist() == _TOKENS.tolist()
  assert batch.example_ids.tolist() == [3, 9]
  assert batch.limits.tolist() == [_LENGTH] * 2
  assert (batch.hints is not None) == has_hints
  if has_hints:
    assert batch.hints[:, :2].tolist() == [[8, 1], [-1, -1]]


def test_gamma_by_load(made):
  """It is a policy and a coupled rule, and no longer than outputs."""
  plain = dataclasses.replace(made, rule=verification.TOKENWISE)
  found, gamma = workload_lib.by_load(plain)
  assert isinstance(found.policy, policies.ByLoad)
  assert isinstance(found.rule, rules.Coupled) and gamma == _LENGTH
  kept = dataclasses.replace(made, rule=rules.CoupledGumbel())
  assert isinstance(workload_lib.by_load(kept)[0].rule, rules.CoupledGumbel)
  with pytest.raises(ValueError, match='coupled rule'):
    workload_lib.by_load(made)
