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
from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
from speculative_t5x.jobs import walltime
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.rules import block
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from speculative_t5x.tasks import inputs
from tests import tiny

_SETTINGS = {'topk': 7, 'topp': 0.9, 'minp': 0.05, 'typicalp': 0.8}
_RULE = block.BlockVerification()
_OWN, _DRAFTS, _SEED, _LENGTH = 0.7, 0.4, 11, 6
_TOKENS = np.array([[5, 6, 1], [7, 1, -1]], np.int32)
_EXAMPLES = types.SimpleNamespace(
    tokens=_TOKENS, example_ids=np.array([3, 9]), hints=[[[8, 1]], []],
    num_truncated=0, num_unknown=0,
)  # fmt: skip


@pytest.fixture(scope='module')
def setup():
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
  return types.SimpleNamespace(
      workload=workload_lib.Workload(
          mixture_or_task_name='a task',
          split='validation',
          task_feature_lengths={'inputs': 3, 'targets': _LENGTH},
          checkpoint_path='a target',
          seed=_SEED,
          rule=_RULE,
          **_SETTINGS,
      ),
      decoder=tiny.decoder(config, gamma=3, length=_LENGTH),
      examples=_EXAMPLES,
      batch_size=2,
      repeats=1,
      num_examples=2,
      temperature=_OWN,
      draft_temperature=_DRAFTS,
  )


def _of_eval(setup):
  return evaluation._requests(setup, _OWN, _DRAFTS)


def _of_walltime(setup):
  return walltime._requests(setup, setup.decoder, 2, _OWN)


def _of_infer(setup):
  made = [
      inputs.Input(
          int(i),
          text='',
          tokens=tuple(row[row >= 0].tolist()),
          is_truncated=False,
          is_known=True,
          hints=hints,
      )
      for i, row, hints in zip(
          _EXAMPLES.example_ids, _TOKENS, _EXAMPLES.hints, strict=True
      )
  ]
  return infer._requests(setup, made)


def _of_compare(setup):
  record = evaluation._settings(setup, _OWN, _DRAFTS)
  rows = [
      {'example_id': i, 'input_tokens': [*row[row >= 0]], 'hint_tokens': hints}
      for i, row, hints in zip(
          _EXAMPLES.example_ids, _TOKENS, _EXAMPLES.hints, strict=True
      )
  ]
  run = compare._Run(record, 'speculative', rows, [])
  return [compare._request(run, 1)]


@pytest.mark.parametrize(
    ('make', 'draft_temperature', 'rule'),
    [
        (_of_eval, _DRAFTS, _RULE),
        (_of_infer, _DRAFTS, _RULE),
        (_of_walltime, _OWN, _RULE),
        (_of_compare, _DRAFTS, verification.TOKENWISE),  # refuses others
    ],
)
def test_settings_reach_the_requests(setup, make, draft_temperature, rule):
  (request,) = make(setup)
  for found, temperature in (
      (request.sampling, _OWN),
      (request.draft_sampling, draft_temperature),
  ):
    assert found == sampling.make_sampling(temperature, *_SETTINGS.values())
  assert (int(request.seed), request.rule) == (_SEED, rule)
  assert request.encoder_input_tokens.tolist() == _TOKENS.tolist()
  assert request.example_ids.tolist() == [3, 9]
  assert request.limits.tolist() == [_LENGTH] * 2
  assert request.hints[:, :2].tolist() == [[8, 1], [-1, -1]]
