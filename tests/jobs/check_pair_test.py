# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check-pair job."""

import pathlib

import pytest

from speculative_t5x import embedded
from speculative_t5x.jobs import check_pair
from speculative_t5x.jobs import workload
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.tasks import bulletins
from tests import workloads

_CONFIGS = pathlib.Path(__file__).parents[2] / 'configs'


@pytest.fixture
def run(monkeypatch):
  """Return a function that runs the job on the embedded pair, with changes."""
  monkeypatch.setattr(models.Found, 'load', None)  # nothing is read

  def run(
      target=embedded.target_checkpoint,
      max_padded_ids=models.MAX_PADDED_IDS,
      **changes,
  ):
    arguments = {
        'workload': workload.Workload(
            None,
            '',
            workloads.LENGTHS,
            target(),
            max_padded_ids=max_padded_ids,
        ),
        'drafter': embedded.draft_checkpoint(),
        'vocabulary_file': bulletins.VOCABULARY_FILE,
        'gamma': 3,
    }
    return check_pair.check_pair(**(arguments | changes))

  return run


def test_says_what_was_found(run, capsys):
  placed = run()
  shown = capsys.readouterr()
  assert shown.err == f'{placed.line}\n'
  target, drafter = shown.out.splitlines()
  assert target.startswith('target: ') and 'parameters' in target
  assert drafter == f'drafter: {placed.drafters[0].description}'


def test_pair_that_does_not_fit(run, tmp_path, monkeypatch, capsys):
  narrow = workloads.save_pair(tmp_path / 'narrow', vocab_size=1024)
  with pytest.raises(ValueError, match='only 1024 logits'):
    run(drafter=narrow.draft)
  wide = workloads.save_pair(tmp_path / 'wide', vocab_size=4096)
  for changes in ({'drafter': wide.draft}, {'target': lambda: wide.target}):
    with pytest.raises(ValueError, match='2[01]48 pieces, .* 4096 logits'):
      run(**changes)
    run(**changes, max_padded_ids=2048)
  capsys.readouterr()
  machine = placement.Machine('tpu', 'a chip', 1, 1000)
  monkeypatch.setattr(placement, 'this_machine', lambda: machine)
  with pytest.raises(placement.DoesNotFitError):
    run()
  assert capsys.readouterr().out == ''


def test_missing_checkpoint_and_vocabulary(run, tmp_path):
  """A mistyped path is not said to lack a vocabulary."""
  with pytest.raises(ValueError, match='The target: No checkpoint at .*nope'):
    run(target=lambda: str(tmp_path / 'nope'), vocabulary_file=None)
  with pytest.raises(ValueError, match='no vocabulary.*VOCABULARY_FILE'):
    run(vocabulary_file=None)


@pytest.mark.parametrize('file', ['decoding/workload', 't5x/speculation'])
def test_padded_ids_are_as_many_in_gin_as_in_python(file):
  text = (_CONFIGS / f'{file}.gin').read_text()
  assert f'MAX_PADDED_IDS = {models.MAX_PADDED_IDS} ' in text
