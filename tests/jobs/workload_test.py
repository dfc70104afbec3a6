# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What jobs say of a drafter and a policy, and what their requests hold."""

import dataclasses
import types

import numpy as np
import pytest

from speculative_t5x import policies
from speculative_t5x import rules
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import nothing
from speculative_t5x.jobs import compare
from speculative_t5x.jobs import workload
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.policies import confidence
from speculative_t5x.rules import block
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from tests import tiny
from tests import tiny_drafters

_LOOKUP = tiny_drafters.make_lookup(2)
_MODEL = tiny_drafters.of_model(tiny_drafters.TARGET, 2, None).drafter
_BOTH = in_order.DraftersInOrder((_LOOKUP, _MODEL), tiny_drafters.TARGET)


def _decoder(drafter, policy=draft_length.Fixed()):  # noqa: B008
  """Return what the notes read of a decoder."""
  name = None if isinstance(drafter, nothing.NoDrafter) else 'the drafter'
  description = types.SimpleNamespace(name=name)
  loaded = types.SimpleNamespace(description=description)
  return types.SimpleNamespace(
      drafter=drafter,
      options=options_lib.Options(policy=policy),
      loaded_drafter=loaded,
  )


@pytest.mark.parametrize(
    ('drafter', 'samples', 'stops'),
    [
        (_LOOKUP, False, False),
        (_BOTH, True, True),
        (_MODEL, True, True),
        (nothing.NoDrafter(2), True, True),  # there is nothing to say of it
    ],
)
def test_settings_without_an_effect(capsys, drafter, samples, stops):
  """A line each names the setting and the drafter."""
  own, other = sampling.Sampling(top_k=2), sampling.Sampling(top_k=3)
  decoder = _decoder(drafter, confidence.Confidence())
  workload.note_unread_sampling(decoder, [sampling.Pair(own, other)])
  said = capsys.readouterr().err
  assert ('DRAFT_TOPK' in said and 'the drafter' in said) != samples
  workload.note_unstopped_drafts(decoder)
  said = capsys.readouterr().err
  assert ('confidence(' in said and 'the drafter' in said) != stops
  workload.note_unread_sampling(decoder, [sampling.Pair(own, own)])
  workload.note_unstopped_drafts(_decoder(drafter))
  assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ('lengths', 'most'),
    [("{'inputs': 9, 'targets': 12}", 12), ('%LENGTHS', None), (None, None)],
)
def test_outputs_beyond_those_of_a_training(lengths, most, tmp_path, capsys):
  """The draft is named, whose training says how long its outputs were."""
  settings = {} if lengths is None else {'TASK_FEATURE_LENGTHS': lengths}
  training_settings.keep_settings(tmp_path / 'draft', settings, ())
  checkpoint = str(tmp_path / 'draft/checkpoint_5')
  named = descriptions.DrafterDescription(checkpoint=checkpoint)
  found = drafting.Drafting(description=named)
  workload.note_longer_outputs(found, 12)
  assert not capsys.readouterr().err
  workload.note_longer_outputs(found, 13)
  said = capsys.readouterr().err
  assert (f'{checkpoint} was' in said and 'up to 12 tokens' in said) == bool(
      most
  )


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
