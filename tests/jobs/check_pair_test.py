# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check-pair job: its report, its errors and its file."""

import pytest

from speculative_t5x import embedded
from speculative_t5x.jobs import check_pair
from speculative_t5x.tasks import bulletins
from tests import vocabulary_files
from tests.loading.compatibility import saved_pair


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a folder of two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  saved_pair.save(folder)
  return folder


@pytest.fixture
def run(folder):
  """Return a function that runs the job on the tiny pair, with changes."""

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

  def test_first_reason_is_the_error(self, folder, run, tmp_path, capsys):
    """The report is printed and written before."""
    other = str(vocabulary_files.train(tmp_path / 'b.model', pad_id=-1))
    draft_for_both = {
        'checkpoint_path': str(folder / 'draft'),
        'target_config': saved_pair.TARGET,
        'draft_config': saved_pair.DRAFT,
    }
    swapped = {'draft_checkpoint_path': str(folder / 'target')}
    for changes, reason in (
        ({'draft_vocabulary_file': other}, 'b.model has no pad_token'),
        ({'checkpoint_path': '/x'}, '(CHECKPOINT_PATH): No checkpoint at /x'),
        ({'device_memory_gib': 0.001}, 'MiB in total, of 0.001 GiB. '),
        (draft_for_both, 'It fits DRAFT_CONFIG.'),
        (draft_for_both | swapped, 'look swapped. The report names 1 more.'),
    ):
      with pytest.raises(check_pair.PairError) as error:
        run(**changes, output_dir=str(tmp_path))
      message, shown = str(error.value), capsys.readouterr().out
      assert message.startswith('The pair cannot work. ')
      assert reason in message and 'The pair can work' not in shown
      text = (tmp_path / 'check_pair.txt').read_text()
      assert text == f'{shown}{message}\n'

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'gamma': 0}, 'gamma must be'),
          ({'mesh_shape': (1, -1)}, 'model must be'),
          ({'mesh_shape': (2, 1), 'batch_size': 3}, 'batch_size 3'),
          ({'task_feature_lengths': {'inputs': 16}}, 'targets_length must be'),
          ({'dtype': 'float16'}, 'dtype must be'),
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
