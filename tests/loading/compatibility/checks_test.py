# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading a pair without its weights, and of the findings about it."""

import dataclasses
import pathlib
import shutil
import tempfile
import types

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import candidates
from speculative_t5x.loading.compatibility import checks
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.tasks import bulletins
from tests import recurrent_network
from tests import tiny
from tests import vocabulary_files
from tests.loading.compatibility import saved_pair

_WORKLOAD = memory.Workload(
    batch_size=2, num_decodes=1, inputs_length=16, targets_length=16, gamma=3
)


def _vocabulary(text='ein Mann geht', has_sentinels=False):
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'a.model'
    vocabulary = vocabularies.load(vocabulary_files.train(path, text=text))
  return vocabulary if has_sentinels else vocabulary.within(0)


@pytest.fixture(scope='module')
def vocabulary():
  return _vocabulary()


def _candidate(vocabulary, specs=None, **overrides):
  config = tiny.config(**overrides)
  checkpoint = types.SimpleNamespace(
      layout=checkpoints.Layout.ORBAX,
      specs=specs or checkpoints.flatten(models.abstract_params(config)),
  )
  return candidates.Candidate(
      'a folder',
      models.ModelSource(checkpoint, config),
      'TARGET_CONFIG',
      vocabulary,
  )


@pytest.fixture(scope='module')
def pair(vocabulary):
  return (
      _candidate(vocabulary),
      _candidate(vocabulary, num_decoder_layers=1),
  )


def _finding(report, name):
  (found,) = [f for f in report.findings if f.name == name]
  return found


def _verdicts(report):
  return {f.name: f.verdict for f in report.findings if f.verdict != 'ok'}


def _check(target, draft, device_memory_gib=1.0, **changes):
  workload = dataclasses.replace(_WORKLOAD, **changes)
  return checks.check(target, draft, workload, device_memory_gib)


def test_a_good_pair(pair):
  report = _check(*pair)
  assert not report.errors
  assert _verdicts(report) == {'memory per device': 'note'}
  assert _finding(report, 'layers: encoder + decoder').draft == '2 + 1'
  assert _finding(report, 'relative positions').target == (
      '2 heads, 32 buckets up to 128'
  )
  counts = _finding(report, 'parameters')
  assert int(counts.target.replace(',', '')) == sum(
      x.size for x in pair[0].model.checkpoint.specs.values()
  )


class TestVocabularies:

  def test_another_piece(self, pair):
    other = _vocabulary('ein Mann gehr')
    draft = dataclasses.replace(pair[1], vocabulary=other)
    (found,) = _check(pair[0], draft).errors
    assert found.name == 'vocabulary: SHA-256'
    assert found.target != found.draft
    assert "vocabulary has the piece 't' for id " in found.remedy

  @pytest.mark.parametrize(
      ('target', 'draft', 'verdicts'),
      [
          ({}, {'is_assumed': True}, {'vocabulary: SHA-256': 'note'}),
          ({'vocabulary': None}, {}, {'vocabulary': 'warning'}),
          ({}, {'vocabulary': None}, {'vocabulary': 'warning'}),
      ],
  )
  def test_not_compared(self, pair, target, draft, verdicts):
    pair = [
        dataclasses.replace(each, **changes)
        for each, changes in zip(pair, (target, draft))
    ]
    verdicts = {'memory per device': 'note'} | verdicts
    assert _verdicts(_check(*pair)) == verdicts

  @pytest.mark.parametrize(
      ('missing', 'narrow'),
      [((1, 0), 'target'), ((0, 1), 'draft'), ((0, 0), '')],
  )
  def test_pieces_without_a_logit(self, vocabulary, missing, narrow):
    widths = [vocabulary.num_pieces - n for n in missing]
    pair = [
        _candidate(vocabulary, vocab_size=widths[0]),
        _candidate(vocabulary, vocab_size=widths[1], num_decoder_layers=1),
    ]
    errors = _check(*pair).errors
    assert [f.name for f in errors] == ['vocabulary: ids'] * bool(narrow)
    if narrow:
      assert f'the {narrow} only {min(widths)} logits' in errors[0].remedy

  def test_draft_without_logits_for_sentinels(self):
    vocabulary = _vocabulary(has_sentinels=True)
    target = _candidate(vocabulary, vocab_size=vocabulary.num_ids)
    draft = _candidate(
        vocabulary, vocab_size=vocabulary.num_pieces, num_decoder_layers=1
    )
    assert not _check(target, draft).errors


@pytest.mark.parametrize(
    ('changes', 'name', 'shown', 'verdict'),
    [
        (dict(vocab_size=48), 'logits', '48', 'note'),
        (dict(vocab_size=80), 'logits', '80', 'note'),
        (dict(head_dim=8), 'heads', '2 x 8', 'ok'),
        (dict(logits_via_embedding=True), 'output head', 'the embedding', 'ok'),
        (dict(dtype=jnp.bfloat16), 'dtype to decode in', 'bfloat16', 'ok'),
        (dict(num_encoder_layers=3), 'parameters', None, 'warning'),
        (dict(), 'parameters', None, 'warning'),
    ],
)
def test_draft(vocabulary, pair, changes, name, shown, verdict):
  draft = _candidate(vocabulary, **changes)
  found = _finding(_check(pair[0], draft), name)
  assert found.verdict == verdict and shown in (None, found.draft)


def test_what_the_parameters_state(pair):
  specs = {'a': jax.ShapeDtypeStruct((2, 3), jnp.bfloat16)}
  draft = dataclasses.replace(
      _candidate(pair[1].vocabulary, specs),
      config_source=candidates.FROM_PARAMETERS,
  )
  report = _check(pair[0], draft)
  assert _finding(report, 'dtype stored').draft == 'bfloat16'
  assert _finding(report, 'sizes from').verdict == 'note'


def test_decoders_alone(vocabulary, pair):
  """They draft on the output of an encoder as wide as they read."""
  alone = _candidate(vocabulary, num_encoder_layers=0)
  found = _finding(_check(pair[0], alone), 'encoder')
  assert found.verdict == 'note' and 'shared_encoder.gin' in found.remedy
  (found,) = _check(alone, pair[1]).errors
  assert 'The target has no encoder' in found.remedy
  narrow = _candidate(vocabulary, num_encoder_layers=0, encoder_dim=16)
  (found,) = _check(pair[0], narrow).errors
  assert 'an encoder of width 16' in found.remedy


def test_a_network_that_names_no_sizes(vocabulary, pair):
  network = recurrent_network.Recurrent(vocabulary.num_ids)
  specs = checkpoints.flatten(models.abstract_params(network))
  checkpoint = types.SimpleNamespace(
      layout=checkpoints.Layout.ORBAX, specs=specs
  )
  draft = dataclasses.replace(
      pair[1], model=models.ModelSource(checkpoint, network)
  )
  report = _check(pair[0], draft)
  assert not report.errors
  assert _finding(report, 'emb_dim').draft == '-'


class TestProblems:

  def test_problems_are_errors(self, pair):
    target = pair[0].with_problem('Worn out.').with_problem('Bent.')
    report = _check(target, pair[1].with_problem('Lost.'))
    assert [(f.name, f.remedy) for f in report.errors] == [
        ('target', 'Worn out.'), ('target', 'Bent.'), ('draft', 'Lost.')
    ]  # fmt: skip

  def test_unreadable_model(self, pair):
    """The report still shows the other model."""
    lost = candidates.Candidate('nowhere').with_problem('Lost.')
    for report in (_check(pair[0], lost), _check(lost, pair[1])):
      (found,) = report.errors
      assert found.remedy == 'Lost.'
      found = _finding(report, 'emb_dim')
      assert sorted([found.target, found.draft]) == ['32', '?']
      assert 'memory per device' not in {f.name for f in report.findings}
      assert not report.assumptions


class TestMemory:

  @pytest.mark.parametrize('is_small', [False, True])
  def test_fits_to_the_byte(self, pair, is_small):
    """Loading needs more than decoding if little is decoded."""
    one = dict.fromkeys(
        ('batch_size', 'inputs_length', 'targets_length', 'gamma'), 1
    )
    changes = one if is_small else {}
    workload = dataclasses.replace(_WORKLOAD, **changes)
    target, draft = (candidate.config for candidate in pair)
    sizes = (
        memory.target_bytes(target, workload),
        memory.draft_bytes(draft, workload, 64),
    )
    total = sum(size.total for size in sizes)
    if is_small:  # query, key and value before they are merged
      total = sum(size.params for size in sizes) + 4 * 3 * 32 * 32
    assert not _check(*pair, total / 2**30, **changes).errors
    (found,) = _check(*pair, (total - 1) / 2**30, **changes).errors
    assert found.name == 'memory per device'
    assert 'lower BATCH_SIZE' in found.remedy

  def test_no_memory_given(self, pair):
    report = _check(*pair, None)
    assert not report.errors
    assert 'not compared' in _finding(report, 'memory per device').remedy

  def test_assumptions(self, pair):
    counted = _check(*pair).assumptions
    *same, mesh = _check(*pair, mesh_shape=(2, 2)).assumptions
    assert tuple(same) == counted
    assert 'A mesh of 2 (data) by 2 (model)' in mesh

  def test_units(self):
    assert memory.text(3 * 2**19) == '1.50 MiB'
    assert memory.text(5 * 2**38) == '1,280.00 GiB'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a folder of two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  saved_pair.save(folder)
  return folder


@pytest.fixture
def read(folder):
  """Return a function that reads the tiny pair, with changes per model."""

  def read(target=None, draft=None, **options):
    given = (
        {'checkpoint_path': str(folder / 'target'), **(target or {})},
        {'checkpoint_path': str(folder / 'draft'), **(draft or {})},
    )
    return candidates.read_pair(
        *(candidates.Given(**each) for each in given), **options
    )

  return read


def _problem(candidate):
  (problem,) = candidate.problems
  return problem


class TestModels:

  def test_sizes_come_from_the_parameters(self, read, folder):
    target, draft = read()
    assert target.config == saved_pair.TARGET
    assert draft.config == saved_pair.DRAFT
    for candidate, name in ((target, 'target'), (draft, 'draft')):
      assert candidate.path == str(folder / name)
      assert candidate.config_source == candidates.FROM_PARAMETERS
      assert candidate.model.checkpoint.specs and not candidate.problems

  def test_given_config(self, read):
    config = tiny.config(vocab_size=2048, dtype='float32')
    target, draft = read(target={'config': config}, dtype='bfloat16')
    assert target.config_source == 'TARGET_CONFIG'
    assert draft.config_source == candidates.FROM_PARAMETERS
    assert jnp.dtype(target.config.dtype) == jnp.float32
    assert jnp.dtype(draft.config.dtype) == jnp.bfloat16


class TestGivenVocabularies:

  GIVEN = {'vocabulary': bulletins.VOCABULARY_FILE}

  def test_given(self, read):
    target, draft = read(target=self.GIVEN, draft=self.GIVEN)
    assert target.vocabulary.num_ids == draft.vocabulary.num_ids == 2048
    assert not draft.is_assumed
    target, draft = read(target=self.GIVEN)
    assert not target.is_assumed and draft.is_assumed
    assert draft.vocabulary is target.vocabulary

  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_beside_the_weights(self, folder, tmp_path, read, role):
    """The folder has a spiece.model, as Hugging Face's library writes it."""
    copy = tmp_path / role
    shutil.copytree(folder / role, copy)
    shutil.copy(bulletins.VOCABULARY_FILE, copy / 'spiece.model')
    given = {role: {'checkpoint_path': str(copy)}}
    found = dict(zip(('target', 'draft'), read(**given), strict=True))
    assert found[role].vocabulary.num_ids == 2048
    assert not found[role].is_assumed
    (copy / 'spiece.model').write_bytes(b'nothing')
    found = dict(zip(('target', 'draft'), read(**given), strict=True))
    assert 'spiece.model cannot be read' in _problem(found[role])

  def test_missing_file(self, read, tmp_path):
    path = tmp_path / 'no.model'
    target, draft = read(target={'vocabulary': str(path)})
    assert f'There is no vocabulary at {path}' in _problem(target)
    assert draft.vocabulary is None and not draft.problems
