# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every setting of sampling reaches the requests of each job, and its record.

Nothing is compiled. The compare job makes its requests from a record alone, so
that it is right only if the record has all settings.
"""

import types

import numpy as np
import pytest

from speculative_t5x.jobs import compare
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.rules import block
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from tests import tiny

_RULE = block.BlockVerification()
_OWN = sampling.Sampling(0.7, topk=7, topp=0.9, minp=0.05, typicalp=0.8)
_DRAFTS = sampling.Sampling(0.4, topk=7, topp=0.5, minp=0.05, typicalp=0.0)
_SEED, _LENGTH = 11, 6
_TOKENS = np.array([[5, 6, 1], [7, 1, -1]], np.int32)
_EXAMPLES = types.SimpleNamespace(
    rows=[
        types.SimpleNamespace(tokens=tokens, example_id=i, hints=hints)
        for tokens, i, hints in (([5, 6, 1], 3, [[8, 1]]), ([7, 1], 9, []))
    ]
)


@pytest.fixture(scope='module')
def workload():
  return workload_lib.Workload(
      mixture_or_task_name='a task',
      split='validation',
      task_feature_lengths={'inputs': 3, 'targets': _LENGTH},
      checkpoint_path='a target',
      seed=_SEED,
      rule=_RULE,
  )


def _of_workload(workload):
  rows = workload_lib.request_rows(_EXAMPLES)
  return workload.requests(2, _OWN, _DRAFTS).of(rows)


def _of_compare(workload):
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
  decoder = tiny.decoder(config, gamma=3, length=_LENGTH)
  record = workload.new_record('eval', decoder, _OWN, _DRAFTS, batch_size=2)
  rows = [
      {'example_id': x.example_id, 'input_tokens': x.tokens,
       'hint_tokens': x.hints}
      for x in _EXAMPLES.rows
  ]  # fmt: skip
  run = compare._Run(record, 'speculative', rows, [[[1]]] * len(rows))
  return [compare._request(run, 1)]


@pytest.mark.parametrize(
    ('make', 'rule'),
    [(_of_workload, _RULE), (_of_compare, verification.TOKENWISE)],
)
def test_settings_reach_the_requests(workload, make, rule):
  (request,) = make(workload)
  assert request.sampling == _OWN.as_arrays()
  assert request.draft_sampling == _DRAFTS.as_arrays()
  assert (int(request.seed), request.rule) == (_SEED, rule)
  assert request.inputs.tolist() == _TOKENS.tolist()
  assert request.example_ids.tolist() == [3, 9]
  assert request.limits.tolist() == [_LENGTH] * 2
  assert request.hints[:, :2].tolist() == [[8, 1], [-1, -1]]
