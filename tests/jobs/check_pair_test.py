# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check-pair job: its report, its errors and its file."""

import pytest

from speculative_t5x import embedded
from speculative_t5x.jobs import check_pair
from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests import vocabulary_files
from tests.loading.compatibility import saved_pair


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Returns a folder of two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  saved_pair.save(folder)
  return folder


@pytest.fixture
def run(folder):
  """Returns a function that runs the job on the tiny pair, with changes."""

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
  """Returns a runner of failing jobs, which returns the reason."""

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
        target_config=None,
        draft_config=None,
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

  @pytest.mark.parametrize('extra_ids', [0, 1])
  def test_vocabulary_of_a_task(self, run, extra_ids):
    """It includes the ids that the task adds."""
    import seqio

    vocabulary = seqio.SentencePieceVocabulary(
        bulletins.VOCABULARY_FILE, extra_ids=extra_ids
    )
    seqio.TaskRegistry.add(
        'check_pair_test',
        source=seqio.FunctionDataSource(
            lambda split, shuffle_files: None, splits=['test']
        ),
        output_features={'targets': seqio.Feature(vocabulary)},
    )
    changes = dict(vocabulary_file=None, mixture_or_task_name='check_pair_test')
    try:
      if not extra_ids:
        report = run(**changes)
        assert 'vocabulary: SHA-256' in {f.name for f in report.findings}
        return
      with pytest.raises(check_pair.PairError, match='only 2048 logits'):
        run(**changes)
    finally:
      seqio.TaskRegistry.remove('check_pair_test')

  def test_output_folder(self, run, tmp_path, capsys):
    run(output_dir=str(tmp_path / 'new'))
    text = (tmp_path / 'new' / 'check_pair.txt').read_text()
    assert text == capsys.readouterr().out


class TestFailures:

  def test_other_vocabulary(self, fails, tmp_path):
    path = vocabulary_files.train(tmp_path / 'other.model')
    reason = fails(draft_vocabulary_file=str(path))
    assert "target's vocabulary has 2048 pieces, the draft's" in reason

  def test_other_special_ids(self, fails, tmp_path):
    path = vocabulary_files.train(tmp_path / 'b.model', pad_id=-1)
    reason = fails(draft_vocabulary_file=str(path))
    assert 'b.model has no pad_token' in reason

  def test_pieces_without_a_logit(self, fails, tmp_path):
    config = tiny.config(vocab_size=2000, num_decoder_layers=1)
    checkpoints.save(tmp_path, 1, tiny.params(config))
    reason = fails(draft_checkpoint_path=str(tmp_path))
    assert 'the draft only 2000 logits' in reason

  def test_problem_of_a_checkpoint(self, fails, tmp_path):
    path = tmp_path / 'mistyped'
    reason = fails(checkpoint_path=str(path))
    assert reason.startswith(f'CHECKPOINT_PATH: No checkpoint at {path}')

  def test_further_problems_are_counted(self, folder, fails):
    reason = fails(
        checkpoint_path=str(folder / 'draft'),
        draft_checkpoint_path=str(folder / 'target'),
        target_config=saved_pair.TARGET,
        draft_config=saved_pair.DRAFT,
    )
    assert reason.endswith('look swapped. The report names 1 more.')

  def test_report_is_written(self, run, tmp_path, capsys):
    with pytest.raises(check_pair.PairError) as error:
      run(device_memory_gib=0.001, output_dir=str(tmp_path))
    text = (tmp_path / 'check_pair.txt').read_text()
    assert text == f'{capsys.readouterr().out}{error.value}\n'

  def test_output_folder_that_is_a_file(self, run, tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(OSError, match='cannot be written to .*is a file'):
      run(output_dir=str(tmp_path / 'file'))

  def test_too_little_memory(self, fails):
    reason = fails(device_memory_gib=0.001)
    assert 'MiB in total, of 0.001 GiB. Decode in bfloat16' in reason

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
  def test_invalid_arguments(self, run, capsys, changes, message):
    with pytest.raises(ValueError, match=message):
      run(**changes)
    assert capsys.readouterr().out == ''
