# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests against T5X's results for two trained checkpoints (shared data)."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research import whole_batches
from speculative_t5x.tasks import metrics
from tests import exhaustive
from tests import shared
from tests import tiny
from tests import workloads

FOLDER = shared.shared_folder()
ORACLE = FOLDER and FOLDER / 't5x_oracle'
pytestmark = pytest.mark.skipif(
    not (ORACLE and ORACLE.is_dir()), reason='needs the shared T5X oracle'
)
LENGTH = 64
ATOL = 1e-4
STORED = [
    ('draft', 't5x_orbax'), ('draft', 't5x_legacy'), ('draft', 'hf'),
    ('target', 't5x_orbax'), ('target', 'hf'),
]  # fmt: skip


class Oracle:
  """A model, and what T5X computed with it."""

  def __init__(self, name: str, layout: str = 't5x_orbax'):
    self.folder = ORACLE / name
    sizes = json.loads((self.folder / 'oracle.json').read_text())['config']
    assert not sizes.pop('logits_via_embedding')
    sizes['dtype'] = jnp.dtype(sizes['dtype'])
    self.config = t5.T5Config(**sizes)
    with np.load(self.folder / 'oracle.npz') as arrays:
      self.arrays = dict(arrays)
    self.checkpoint = checkpoints.open(self.folder / layout)
    self.params = self.checkpoint.restore_params(
        models.abstract_params(self.config)
    )
    self.model = models.make_model(self.config, self.params)

  def logits(self, rows, targets):
    """Return teacher-forced logits of the network of a checkpoint's tree."""
    targets = jnp.asarray(targets)
    apply = functools.partial(
        tiny.Transformer(self.config).apply, enable_dropout=False
    )
    return jax.jit(apply)(
        {'params': self.params},
        self.arrays['encoder_input_tokens'][rows],
        jnp.pad(targets[:, :-1], ((0, 0), (1, 0))),
        targets,
    )


@pytest.fixture(scope='module', autouse=True)
def exact_products():
  with jax.default_matmul_precision('highest'):
    yield


@pytest.fixture(scope='module')
def oracles():
  return {name: Oracle(name) for name in ('draft', 'target')}


@pytest.fixture(scope='module')
def decoded(oracles):
  """Decode all 64 rows greedily: by the draft model alone, and by both."""
  target, draft = oracles['target'], oracles['draft']
  request = tiny.batch(target.arrays['encoder_input_tokens'], LENGTH)
  make = lambda model: token_decoder.TokenDecoder(
      model.model,
      model_drafting.of_model(draft.model),
      gamma=5,
      max_tokens=LENGTH,
      rescale_log_probs=False,
      matmul_precision='highest',
  )
  return {
      'draft': whole_batches.decode(make(draft).alone, request),
      'speculative': whole_batches.decode(make(target), request),
  }


@pytest.mark.parametrize(('name', 'layout'), STORED)
def test_teacher_forced_logits(oracles, name, layout):
  """In each layout, whose parameters, specs, step and sizes are the same."""
  oracle, orbax = Oracle(name, layout), oracles[name]
  jax.tree.map(np.testing.assert_array_equal, oracle.params, orbax.params)
  assert oracle.checkpoint.specs == orbax.checkpoint.specs
  assert oracle.checkpoint.network('float32') == oracle.config
  step = orbax.checkpoint.step if layout != 'hf' else 0
  assert oracle.checkpoint.step == step
  targets = oracle.arrays['decoder_target_tokens'][:4]
  logits = np.asarray(oracle.logits(slice(4), targets))
  is_target = targets > 0
  np.testing.assert_allclose(
      logits[is_target], oracle.arrays['logits'][is_target], atol=ATOL
  )


@pytest.mark.parametrize('name', ['draft', 'speculative'])
def test_greedy_tokens_and_scores(oracles, decoded, name):
  """Rows are equal or differ at a near tie, and hardly any differ."""
  oracle = oracles['draft' if name == 'draft' else 'target']
  tokens = np.asarray(decoded[name].sequences)
  expected = oracle.arrays['greedy_tokens']
  is_other = np.any(tokens != expected, axis=1)
  assert is_other.sum() <= 2
  np.testing.assert_allclose(
      np.asarray(decoded[name].log_probs)[~is_other],
      oracle.arrays['greedy_log_probs'][~is_other],
      atol=1e-3,
  )
  for row in np.flatnonzero(is_other):
    margin = oracle_margin(oracle, row, tokens[row], expected[row])
    assert margin <= 2 * ATOL, f'row {row} differs by {margin}'


@pytest.mark.parametrize('rows', exhaustive.all_but([16], [16, 64]))
def test_beam_search(oracles, rows):
  """All hypotheses, in T5X's order, with its scores."""
  oracle = oracles['target']
  decoder = token_decoder.TokenDecoder(
      oracle.model, max_tokens=LENGTH, matmul_precision='highest'
  )
  batch = tiny.batch(oracle.arrays['encoder_input_tokens'][:rows], LENGTH)
  search = beam_search.BeamSearch(beams=4)
  found = jax.device_get(whole_batches.search_for(decoder.alone, batch, search))
  tokens, scores = (
      oracle.arrays[f'beam4_{name}'][:rows] for name in ('tokens', 'scores')
  )
  found_tokens, found_scores = found.hypotheses(4)
  is_other = np.any(found_tokens != tokens, axis=(1, 2))
  # Two hypotheses of nearly equal scores may change their places.
  assert is_other.sum() <= 2
  np.testing.assert_allclose(found_scores, scores, atol=1e-3)


def oracle_margin(oracle, row, tokens, expected):
  """Return the difference of logits where two greedy rows diverge."""
  first = np.flatnonzero(tokens != expected)[0]
  logits = oracle.logits(slice(row, row + 1), expected[None])[0, first]
  return float(abs(logits[tokens[first]] - logits[expected[first]]))


def _eval(output, num_examples):
  """Run the command and return its one record and its predictions."""
  data = FOLDER / 'data' / 'multi30k'
  status = main.main(
      [
          'eval',
          '--gin_file=configs/runs/eval_multi30k.gin',
          f'--gin.MULTI30K_DIR={data}',
          f'--gin.CHECKPOINT_PATH={ORACLE / "target" / "t5x_orbax"}',
          f'--gin.DRAFT_CHECKPOINT_PATH={ORACLE / "draft" / "t5x_orbax"}',
          f'--gin.EVAL_OUTPUT_DIR={output}',
          '--gin.BATCH_SIZE=16',
          f'--gin.NUM_EXAMPLES={num_examples}',
      ]
  )
  assert status == 0
  (record,) = workloads.read(output / 'results.jsonl')
  return record, workloads.read(output / 'predictions.jsonl')


def _texts_of_t5x(oracles):
  """Return the texts of T5X's greedy tokens."""
  vocabulary = vocabularies.load(FOLDER / 'data' / 'multi30k' / 'ende4k.model')
  return [
      vocabulary.decode(batching.text_ids(ids.tolist(), t5.SPECIAL_IDS))
      for ids in oracles['target'].arrays['greedy_tokens']
  ]


@pytest.mark.parametrize('num_examples', exhaustive.all_but([16], [16, 64]))
def test_eval_command(tmp_path, oracles, num_examples):
  """Texts and BLEU are those of T5X, whose agreement gives the rate."""
  record, rows = _eval(tmp_path, num_examples)
  oracle = json.loads((ORACLE / 'target' / 'oracle.json').read_text())
  texts = _texts_of_t5x(oracles)
  targets = [row['target'] for row in rows]
  expected = metrics.bleu(targets, texts[:num_examples])['bleu']
  if num_examples == oracle['num_examples']:
    assert expected == pytest.approx(oracle['greedy_bleu'], abs=0.01)
  for side in ('baseline', 'speculative'):
    assert record['quality'][side]['bleu'] == pytest.approx(expected)
    assert [row[side] for row in rows] == texts[:num_examples]
  greedy = record['greedy']
  assert greedy['identical'] == num_examples
  assert record['gamma'] == 5
  # 2.32 on 300 rows.
  assert record['tokens_per_target_call'] == pytest.approx(2.32, abs=0.2)
