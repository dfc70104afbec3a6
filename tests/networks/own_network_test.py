# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network that the package does not know is target and draft like T5."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling
from tests import recurrent_network
from tests import tiny

NETWORK = recurrent_network.Recurrent(12)
# Two ends, no padding, and id 0 is a token like others.
IDS = contracts.SpecialIds(
    end=1, padding=contracts.NO_TOKEN, start=5, other_ends=(11,)
)
LENGTH = 10


def _params(scale: float = 1.0) -> contracts.Params:
  params = NETWORK.init(jax.random.key(0))
  return jax.tree.map(lambda x: scale * x, params)


@functools.cache
def _decoder() -> token_decoder.TokenDecoder:
  target, draft = (
      models.make_model(NETWORK, _params(scale), special_ids=IDS)
      for scale in (1.0, 1.05)
  )
  return token_decoder.TokenDecoder(
      target, draft_model_source.from_model(draft), gamma=3, length=LENGTH
  )


def _request(temperature: float) -> requests_lib.Request:
  rows = [[0, 4, 0, 1], [5, 1], [7, 7, 2, 1], [3, 0, 1], [9, 1], [6, 6, 1]]
  (request,) = tiny.requests(
      rows, length=LENGTH, sampling=sampling.Sampling(temperature)
  )
  return request


def test_greedy_outputs_are_those_of_plain_decoding():
  plain, speculative = (
      jax.device_get(run(_request(0.0)))
      for run in (_decoder().plain, _decoder().speculative)
  )
  np.testing.assert_array_equal(speculative.sequences, plain.sequences)
  assert speculative.num_calls.sum() < plain.num_calls.sum()


def _next(params, inputs: list[int], output: list[int]) -> np.ndarray:
  """Returns the logits after an output, position by position, in numpy."""
  state = np.mean([params['embed'][i] for i in inputs], axis=0)
  for token in [IDS.start, *output]:
    state = np.tanh(state @ params['mix'] + params['embed'][token])
  return state @ params['head']


def test_outputs_end_at_the_first_of_several_ends():
  params = jax.tree.map(np.asarray, _params())
  decoded = jax.device_get(_decoder().plain(_request(0.0)))
  tokens = np.asarray(_request(0.0).inputs)
  last = []
  for row, inputs in enumerate(tokens):
    output = []
    while len(output) < LENGTH and not set(output) & {1, 11}:
      logits = _next(params, inputs[inputs >= 0].tolist(), output)
      output.append(int(np.argmax(logits)))
    count = decoded.num_tokens[row]
    assert decoded.sequences[row, :count].tolist() == output
    assert (decoded.sequences[row, count:] == contracts.NO_TOKEN).all()
    last.append(output[-1])
  assert 11 in last


def test_without_the_layers_that_a_drafter_asks_for():
  with pytest.raises(ValueError, match='first_layers'):
    early_exit_source.OfTarget(1).find(models.ModelSource(None, NETWORK), None)


_GIN = """
from __gin__ import dynamic_registration

from tests import recurrent_network

include 'configs/runs/{job}.gin'

TARGET_CONFIG = @recurrent_network.Recurrent()
DRAFT_CONFIG = @recurrent_network.Recurrent()
recurrent_network.Recurrent.vocab_size = 2048
TASK_FEATURE_LENGTHS = {{'inputs': 24, 'targets': 8}}
"""


@pytest.mark.parametrize(
    ('job', 'flags'),
    [
        ('demo', ['eval', '--gin.NUM_EXAMPLES=3', '--gin.GAMMA=2']),
        ('infer_bulletins', ['infer', '--gin.GAMMA=2']),
    ],
)
def test_by_gin_alone(tmp_path, job, flags):
  """Jobs take it as target and as draft."""
  own = dataclasses.replace(NETWORK, vocab_size=2048)
  params = own.init(jax.random.key(0))
  for role in ('target', 'draft'):
    checkpoints.save(tmp_path / role, 1, params)
  inputs = tmp_path / 'inputs.txt'
  inputs.write_text('The train is late.\nIt rains.\n')
  (tmp_path / 'own.gin').write_text(_GIN.format(job=job))
  status = main.main([
      *flags,
      f'--gin_file={tmp_path}/own.gin',
      f'--gin.CHECKPOINT_PATH="{tmp_path}/target"',
      f'--gin.DRAFT_CHECKPOINT_PATH="{tmp_path}/draft"',
      *([f'--gin.INPUTS="{inputs}"'] if 'infer' in flags else []),
      f'--output_dir={tmp_path}/out',
  ])
  assert status == 0
  rows = (tmp_path / 'out/predictions.jsonl').read_text().splitlines()
  assert len(rows) == {'demo': 6, 'infer_bulletins': 2}[job]
