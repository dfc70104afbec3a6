# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network that the package does not know is target and draft like T5."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import distill
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling
from speculative_t5x.training import origins
from tests import exhaustive
from tests import recurrent_network
from tests import tiny

pytestmark = pytest.mark.long

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
      target, model_drafting.of_model(draft), gamma=3, max_tokens=LENGTH
  )


def _batch(temperature: float) -> input_batch.InputBatch:
  rows = [[0, 4, 0, 1], [5, 1], [7, 7, 2, 1], [3, 0, 1], [9, 1], [6, 6, 1]]
  (batch,) = tiny.batches(
      rows, length=LENGTH, sampling=sampling.Sampling(temperature)
  )
  return batch


def test_greedy_outputs_are_those_of_plain_decoding():
  plain, speculative = (
      jax.device_get(run(_batch(0.0)))
      for run in whole_batches.ways(_decoder())
  )
  np.testing.assert_array_equal(speculative.sequences, plain.sequences)
  assert speculative.num_calls.sum() < plain.num_calls.sum()


def _next(params, inputs: list[int], output: list[int]) -> np.ndarray:
  """Return the logits after an output, position by position, in numpy."""
  state = np.mean([params['embed'][i] for i in inputs], axis=0)
  for token in [IDS.start, *output]:
    state = np.tanh(state @ params['mix'] + params['embed'][token])
  return state @ params['head']


def test_outputs_end_at_the_first_of_several_ends():
  params = jax.tree.map(np.asarray, _params())
  decoded = tiny.decoded(_decoder().alone, _batch(0.0))
  tokens = np.asarray(_batch(0.0).inputs)
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


@dataclasses.dataclass(frozen=True)
class _Prompted(recurrent_network.Recurrent):
  """A network that begins with its first input, at position 1."""

  def start(self, params, inputs, rows, slots, features=None):
    started = super().start(params, inputs, rows, slots + 1)
    first = started.memory @ params['mix']
    return started._replace(
        cache=started.cache.at[:, 0].set(first),
        offsets=jnp.ones((rows,), jnp.int32),
        first_tokens=inputs[:, 0],
    )


@pytest.mark.parametrize('block', [1, 3])
def test_near_ties_are_judged_from_the_first_tokens_on(block):
  network = _Prompted(12)
  ids = dataclasses.replace(IDS, start=None)
  target = models.make_model(network, _params(), special_ids=ids)
  decoder = token_decoder.TokenDecoder(target, gamma=2, max_tokens=LENGTH)
  decoded = tiny.decoded(decoder.alone, _batch(0.0))
  row = near_ties.BatchRow(decoder, _batch(0.0), 2, False)
  for position in range(decoded.num_tokens[2]):
    sequence = decoded.sequences[2]
    logits = near_ties.logits_at(row, sequence, position, block)
    assert np.argmax(logits) == sequence[position]


class _Layered(_Prompted):
  """Its first layers are all that it has."""

  def first_layers(self, count):
    return self

  decoder_alone = lambda self: self
  take_first_layers = staticmethod(lambda memory, cache: (memory, cache))
  put_first_layers = staticmethod(lambda first, cache: first)


def test_layers_of_the_target_draft_from_its_first_tokens_on():
  ids = dataclasses.replace(IDS, start=None)
  target = models.make_model(_Layered(12), _params(), special_ids=ids)
  decoder = token_decoder.TokenDecoder(
      target,
      tiny.early_exit(target.config, 1),
      gamma=3,
      max_tokens=LENGTH,
  )
  plain, speculative = (
      jax.device_get(run(_batch(0.0)))
      for run in whole_batches.ways(decoder)
  )
  np.testing.assert_array_equal(speculative.sequences, plain.sequences)
  # The layers are the whole target: all that they draft is accepted.
  count = -(-speculative.num_tokens // 4)
  np.testing.assert_array_equal(speculative.num_calls, count)


class _Sharing(recurrent_network.Recurrent):
  """A network whose start has features, without an `encode`."""

  def start(self, params, inputs, rows, slots, features=None):
    started = super().start(params, inputs, rows, slots)
    return started._replace(features=started.memory + 1)


class _Reading(recurrent_network.Recurrent):
  """A network that begins from the features of another one."""

  reads_features = True

  @property
  def width_of_inputs(self):
    return self.width

  def start(self, params, inputs, rows, slots, features=None):
    started = super().start(params, inputs, rows, slots)
    return started._replace(memory=features - 1)


def _on_features_of(network) -> token_decoder.TokenDecoder:
  draft = models.make_model(_Reading(12), _params(), special_ids=IDS)
  return token_decoder.TokenDecoder(
      models.make_model(network, _params(), special_ids=IDS),
      model_drafting.of_model(draft),
      gamma=3,
      max_tokens=LENGTH,
  )


def test_features_are_read_without_an_encode():
  decoder = _on_features_of(_Sharing(12))
  decoded = tiny.decoded(decoder, _batch(0.0))
  count = -(-decoded.num_tokens // 4)
  np.testing.assert_array_equal(decoded.num_calls, count)


def test_features_of_a_network_that_computes_none():
  with pytest.raises(ValueError, match='`start` returns features'):
    _on_features_of(NETWORK)


class _HalfLayered(recurrent_network.Recurrent):
  """A network with one of the parts that early exit needs."""

  def first_layers(self, count):
    return self


def test_all_that_is_missing_of_an_optional_part_is_named():
  with pytest.raises(ValueError, match='decoder_alone`, `take_first') as error:
    tiny.early_exit(_HalfLayered(12), 1)
  assert '`first_layers`' not in str(error.value)
  assert '\n' not in str(error.value)


class _Unread:
  """A checkpoint whose parameters nobody may read."""

  def restore_params(self, *arguments):
    raise AssertionError('read')


@dataclasses.dataclass(frozen=True)
class _Untrained(recurrent_network.Recurrent):
  """A network that decodes and does not learn."""

  @property
  def score(self):
    raise AttributeError


@pytest.mark.parametrize(
    ('origin', 'missing'),
    [
        (origins.ExitHead(1), 'first_layers'),
        (origins.FromTarget([0]), 'cut'),
        (origins.Scratch(tiny.config(num_encoder_layers=0)), 'encoder'),
        (origins.Scratch(_Untrained(12)), 'score'),
    ],
)
def test_without_what_a_draft_in_training_asks_for(origin, missing):
  """Nothing is read."""
  with pytest.raises(ValueError, match=f'{missing}.*, which .*recurrent does'):
    origin.make(origins.Stored(_Unread(), NETWORK), 0)


def test_dropout_that_a_network_does_not_have():
  assert distill.with_dropout(NETWORK, 0.0) == NETWORK
  with pytest.raises(ValueError, match='dropout_rate'):
    distill.with_dropout(NETWORK, 0.1)


_GIN = """
from __gin__ import dynamic_registration

from tests import recurrent_network

include 'configs/runs/{run}.gin'

TARGET_CONFIG = @recurrent_network.Recurrent()
DRAFT_CONFIG = @recurrent_network.Recurrent()
recurrent_network.Recurrent.vocab_size = 2048
TASK_FEATURE_LENGTHS = {{'inputs': 24, 'targets': 8}}
CHECKPOINT_PATH = '{folder}/target'
"""
_DRAFT = 'DRAFT_CHECKPOINT_PATH = %CHECKPOINT_PATH\n'
_SIZES = {
    'infer': {'GAMMA': 2, 'INPUTS': '{folder}/inputs.txt'},
    'eval': {'GAMMA': 2, 'NUM_EXAMPLES': 3},
    'distill': {
        'MODEL_DIR': '{folder}/model',
        'DECODES_DIR': '{folder}/decodes',
        'DECODES_EXAMPLES': 8,
        'VALIDATION_EXAMPLES': 8,
        'REFERENCES': [],  # 80,000 rows
        'TRAIN_STEPS': 2,
        'WARMUP_STEPS': 1,
        'BATCH_SIZE': 8,
        'DECODES_BATCH_SIZE': 8,
        'ON_POLICY_SHARE': 0.5,
        'ON_POLICY_PERIOD': 1,
        'CHECKPOINT_PERIOD': 2,
    },
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a folder with the target's checkpoint, and texts to decode."""
  made = tmp_path_factory.mktemp('own')
  own = dataclasses.replace(NETWORK, vocab_size=2048)
  checkpoints.save(made / 'target', 1, own.init(jax.random.key(0)))
  (made / 'inputs.txt').write_text('The train is late.\nIt rains.\n')
  return made


def _run(folder, job, run):
  """Run a job with the network by gin alone, and return its output."""
  text = _GIN.format(run=run, folder=folder)
  path = folder / f'{job}.gin'
  path.write_text(text + (_DRAFT if job != 'distill' else ''))
  sizes = {
      name: str(value).format(folder=folder)
      for name, value in _SIZES[job].items()
  }
  status = main.main([
      job,
      f'--gin_file={path}',
      *(f'--gin.{name}={value}' for name, value in sizes.items()),
      *([f'--output_dir={folder}/{job}'] if job != 'distill' else []),
  ])
  assert status == 0
  return folder / job


@pytest.mark.parametrize(
    ('job', 'run', 'count'),
    exhaustive.all_but(
        [('infer', 'infer_bulletins', 2)],
        [('eval', 'demo', 6), ('infer', 'infer_bulletins', 2)],
    ),
)
def test_decoded_by_gin_alone(folder, job, run, count):
  """Jobs take it as target and as draft."""
  rows = (_run(folder, job, run) / 'predictions.jsonl').read_text()
  assert len(rows.splitlines()) == count


def test_distilled_by_gin_alone(folder):
  """A random draft comes nearer to the target."""
  _run(folder, 'distill', 'distill_bulletins')
  points = json.loads((folder / 'model/history.json').read_text())
  assert [point['step'] for point in points] == [2]
  trained = checkpoints.open(folder / 'model').restore_params(
      models.abstract_params(dataclasses.replace(NETWORK, vocab_size=2048))
  )
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(trained))
