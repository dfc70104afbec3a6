# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check-pair job on checkpoints: what passes, and what does not and why."""

import json
import shutil

import jax.numpy as jnp
import pytest

from speculative_t5x import checkpoints
from speculative_t5x import embedded
from speculative_t5x import loading
from speculative_t5x import vocabularies
from speculative_t5x.compatibility import facts
from speculative_t5x.compatibility import pairing
from speculative_t5x.jobs import check_pair
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins
from tests import shared
from tests import tiny
from tests import vocabulary_files

_TARGET = tiny.config(vocab_size=2048)
_DRAFT = tiny.config(vocab_size=2048, num_decoder_layers=1, emb_dim=16)
_SHARED = shared.shared_folder()
_ORACLE = _SHARED and _SHARED / 't5x_oracle'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Two checkpoints; not to be written to."""
  folder = tmp_path_factory.mktemp('pair')
  checkpoints.save(folder / 'target', 1, tiny.params(_TARGET))
  checkpoints.save(folder / 'draft', 1, tiny.params(_DRAFT))
  return folder


@pytest.fixture
def run(folder):
  """Runs the job on the tiny pair, with arguments to change."""

  def run(**changes):
    arguments = dict(
        checkpoint_path=str(folder / 'target'),
        draft_checkpoint_path=str(folder / 'draft'),
        vocabulary_file=bulletins.VOCABULARY_FILE,
        task_feature_lengths={'inputs': 16, 'targets': 16},
        gamma=3,
        batch_size=2,
    )
    return check_pair.check_pair(**(arguments | changes))

  return run


@pytest.fixture
def fails(run, capsys):
  """Runs a job that finds one reason to fail; what it says of it."""

  def fails(**changes):
    with pytest.raises(check_pair.PairError) as error:
      run(**changes)
    shown = capsys.readouterr().out
    message = str(error.value)
    assert message.startswith('The pair cannot work. ')
    assert 'The pair can work' not in shown
    reason = message.removeprefix('The pair cannot work. ')
    assert reason.split()[0] in shown and 'error' in shown
    return reason

  return fails


class TestGoodPairs:

  def test_report(self, run, capsys):
    report = run(device_memory_gib=1.0)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == 'The pair can work.'
    assert not report.errors
    rows = {line[:26].strip(): line for line in shown}
    assert rows['emb_dim'].split() == ['emb_dim', '32', '16']
    assert max(len(line) for line in rows.values() if 'emb_dim' in line) <= 80

  def test_embedded_pair(self, run):
    report = run(
        checkpoint_path=embedded.target_checkpoint(),
        draft_checkpoint_path=embedded.draft_checkpoint(),
        target_config=embedded.target_config(),
        draft_config=embedded.draft_config(),
        draft_vocabulary_file=bulletins.VOCABULARY_FILE,
    )
    assert {f.verdict for f in report.findings} == {'ok', 'note'}
    (found,) = [f for f in report.findings if f.name == 'parameters']
    assert (found.target, found.draft) == ('10,574,208', '918,528')

  def test_warnings_are_counted(self, folder, run, capsys):
    run(
        checkpoint_path=str(folder / 'draft'),
        draft_checkpoint_path=str(folder / 'target'),
        vocabulary_file=None,
    )
    shown = capsys.readouterr().out
    assert shown.endswith('The pair can work; warnings: 2.\n')

  def test_a_vocabulary_of_the_target_alone_is_said_to_be_assumed(self, run):
    (found,) = [
        finding
        for finding in run(draft_vocabulary_file=None).findings
        if finding.name == 'vocabulary: SHA-256'
    ]
    assert (found.verdict, found.draft) == ('note', 'assumed equal')

  def test_vocabulary_of_a_task(self, run):
    from speculative_t5x.tasks import ende

    del ende  # registers it
    report = run(vocabulary_file=None, mixture_or_task_name='bulletins_ende')
    assert 'vocabulary: SHA-256' in {f.name for f in report.findings}

  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_vocabulary_beside_the_weights(self, folder, tmp_path, run, role):
    """A spiece.model, as Hugging Face's library writes it."""
    copy = tmp_path / role
    shutil.copytree(folder / role, copy)
    shutil.copy(bulletins.VOCABULARY_FILE, copy / 'spiece.model')
    path = 'checkpoint_path' if role == 'target' else 'draft_checkpoint_path'
    given = None if role == 'target' else bulletins.VOCABULARY_FILE
    report = run(**{path: str(copy)}, vocabulary_file=given)
    assert 'vocabulary: SHA-256' in {f.name for f in report.findings}
    (copy / 'spiece.model').write_bytes(b'nothing')
    with pytest.raises(check_pair.PairError, match='spiece.model is not'):
      run(**{path: str(copy)}, vocabulary_file=given)

  @pytest.mark.skipif(
      not (_ORACLE and _ORACLE.is_dir()), reason='needs the shared T5X oracle'
  )
  @pytest.mark.parametrize(
      'layouts', [('t5x_orbax', 't5x_legacy'), ('hf', 'hf')]
  )
  def test_oracle_pair(self, run, layouts):
    configs = []
    for role in ('target', 'draft'):
      text = (_ORACLE / role / 'oracle.json').read_text()
      configs.append(t5.T5Config(**json.loads(text)['config']))
    arguments = dict(
        checkpoint_path=str(_ORACLE / 'target' / layouts[0]),
        draft_checkpoint_path=str(_ORACLE / 'draft' / layouts[1]),
        vocabulary_file=str(_SHARED / 'data' / 'multi30k' / 'ende4k.model'),
    )
    alone = run(**arguments)
    held = run(**arguments, target_config=configs[0], draft_config=configs[1])
    read, said = (
        {f.name: (f.target, f.draft) for f in report.findings}
        for report in (alone, held)
    )
    assert said['vocabulary: ids'] == ('4000', '4000')
    assert said['logits'] == ('4096', '4096')
    assert said.pop('sizes from') == ('TARGET_CONFIG', 'DRAFT_CONFIG')
    source = 'config.json' if 'hf' in layouts else facts.FROM_PARAMETERS
    assert read.pop('sizes from') == (source, source)
    # What a checkpoint tells is what the configs say.
    assert read == said


class TestFailures:

  def test_other_vocabulary(self, fails, tmp_path):
    path = vocabulary_files.train(tmp_path / 'other.model')
    reason = fails(draft_vocabulary_file=str(path))
    assert "target's vocabulary has 2048 pieces, the draft's" in reason

  def test_other_special_ids(self, fails, tmp_path):
    path = vocabulary_files.train(tmp_path / 'b.model', pad_id=-1)
    reason = fails(draft_vocabulary_file=str(path))
    assert 'b.model has no pad_token' in reason

  def test_missing_vocabulary(self, fails, tmp_path):
    reason = fails(vocabulary_file=str(tmp_path / 'no.model'))
    assert f'There is no vocabulary at {tmp_path / "no.model"}' in reason

  def test_pieces_without_a_logit(self, fails, tmp_path):
    config = tiny.config(vocab_size=2000, num_decoder_layers=1)
    checkpoints.save(tmp_path, 1, tiny.params(config))
    reason = fails(draft_checkpoint_path=str(tmp_path))
    assert 'The draft has only 2000 logits' in reason

  @pytest.mark.parametrize('name', ['checkpoint_path', 'draft_checkpoint_path'])
  def test_missing_checkpoint(self, fails, tmp_path, name):
    path = tmp_path / 'mistyped'
    reason = fails(**{name: str(path)})
    assert reason.startswith(f'{name.upper()}: No checkpoint at {path}')
    assert list(tmp_path.iterdir()) == []

  def test_damaged_checkpoint(self, fails, folder, tmp_path):
    shutil.copytree(folder / 'draft', tmp_path / 'draft')
    (tmp_path / 'draft/checkpoint_1/state/manifest.ocdbt').unlink()
    reason = fails(draft_checkpoint_path=str(tmp_path / 'draft'))
    assert reason.startswith('DRAFT_CHECKPOINT_PATH: ') and 'damaged' in reason

  def test_another_network_than_the_config(self, fails):
    config = tiny.config(vocab_size=2048, emb_dim=48)
    reason = fails(target_config=config)
    assert reason.startswith('CHECKPOINT_PATH: ')
    assert 'is of another network' in reason and 'swapped' not in reason

  def test_swapped(self, folder, fails):
    reason = fails(
        checkpoint_path=str(folder / 'draft'),
        draft_checkpoint_path=str(folder / 'target'),
        target_config=_TARGET,
        draft_config=_DRAFT,
    )
    path = folder / 'draft' / 'checkpoint_1'
    assert reason == (
        f'CHECKPOINT_PATH: {path} holds the network of DRAFT_CONFIG, not that'
        ' of TARGET_CONFIG: CHECKPOINT_PATH and DRAFT_CHECKPOINT_PATH look'
        ' swapped. The report names 1 more.'
    )

  def test_scanned_layers(self, fails, tmp_path):
    params = tiny.params(_TARGET)
    decoder = params['decoder']
    decoder['decoder'] = decoder.pop('layers_0')
    checkpoints.save(tmp_path, 1, params)
    reason = fails(checkpoint_path=str(tmp_path))
    assert reason.startswith(f'CHECKPOINT_PATH: {tmp_path}')
    assert 'The layers are scanned' in reason

  def test_parameters_that_no_t5_has(self, fails, tmp_path):
    params = tiny.params(_DRAFT)
    params['adapter'] = {'kernel': jnp.ones((2, 2))}
    checkpoints.save(tmp_path, 1, params)
    reason = fails(draft_checkpoint_path=str(tmp_path))
    assert 'it also holds adapter/kernel' in reason

  def test_other_buckets(self, fails, tmp_path):
    params = tiny.params(_DRAFT)
    params['decoder']['relpos_bias']['rel_embedding'] = jnp.ones((2, 16))
    checkpoints.save(tmp_path, 1, params)
    reason = fails(draft_checkpoint_path=str(tmp_path))
    assert 'rel_embedding (2, 16) instead of (2, 32)' in reason

  def test_too_little_memory(self, fails):
    reason = fails(device_memory_gib=0.001)
    assert 'MiB in total, of 0.001 GiB. Lower BATCH_SIZE' in reason

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'gamma': 0}, 'gamma must be'),
          ({'task_feature_lengths': {'inputs': 16}}, 'targets_length must be'),
          ({'dtype': 'float16'}, 'dtype must be'),
          ({'mesh_shape': 2}, 'mesh_shape must be'),
          ({'device_memory_gib': '16'}, 'device_memory_gib must be'),
          (
              {'vocabulary_file': None, 'mixture_or_task_name': 'wmt'},
              'There is no task named wmt. A gin file',
          ),
      ],
  )
  def test_what_cannot_be_asked(self, run, capsys, changes, message):
    with pytest.raises(ValueError, match=message):
      run(**changes)
    assert capsys.readouterr().out == ''


class TestTasks:

  @pytest.fixture
  def task(self):
    """Registers a task by its vocabulary; its name."""
    import seqio

    name = 'check_pair_test'

    def add(vocabulary):
      seqio.TaskRegistry.add(
          name,
          source=seqio.FunctionDataSource(
              lambda split, shuffle_files: None, splits=['test']
          ),
          output_features={'targets': seqio.Feature(vocabulary(seqio))},
      )
      return name

    yield add
    seqio.TaskRegistry.remove(name)

  @pytest.mark.parametrize(('extra_ids', 'fits'), [(0, True), (1, False)])
  def test_ids_beside_the_pieces(self, run, task, extra_ids, fits):
    """They want logits as the pieces do."""
    name = task(
        lambda seqio: seqio.SentencePieceVocabulary(
            bulletins.VOCABULARY_FILE, extra_ids=extra_ids
        )
    )
    arguments = dict(vocabulary_file=None, mixture_or_task_name=name)
    if fits:
      run(**arguments)
      return
    with pytest.raises(check_pair.PairError, match='has only 2048 logits'):
      run(**arguments)

  def test_another_kind_of_vocabulary(self, run, task):
    name = task(lambda seqio: seqio.ByteVocabulary())
    with pytest.raises(
        vocabularies.VocabularyError, match='is a ByteVocabulary'
    ):
      run(vocabulary_file=None, mixture_or_task_name=name)


class TestCheckNetworks:

  def check(
      self,
      folder,
      target='target',
      draft='draft',
      target_config=_TARGET,
      draft_config=_DRAFT,
  ):
    found = [
        loading.find_model(pairing.open_checkpoint(name, folder / path), config)
        for name, path, config in (
            (pairing.TARGET_PATH, target, target_config),
            (pairing.DRAFT_PATH, draft, draft_config),
        )
    ]
    pairing.check_networks(*found)

  def test_passes(self, folder):
    self.check(folder)

  def test_names_the_macro(self, folder):
    with pytest.raises(
        checkpoints.CheckpointError, match='^DRAFT_CHECKPOINT_PATH: No check'
    ):
      self.check(folder, draft='no')

  def test_swapped(self, folder):
    with pytest.raises(checkpoints.CheckpointError, match='look swapped'):
      self.check(folder, target_config=_DRAFT, draft_config=_TARGET)

  def test_one_for_both(self, folder):
    with pytest.raises(
        checkpoints.CheckpointError, match=r'It fits DRAFT_CONFIG\.$'
    ) as error:
      self.check(folder, target='draft')
    assert 'is of another network' in str(error.value)
    assert 'swapped' not in str(error.value)
