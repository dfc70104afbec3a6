# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a pair and of the eval and infer commands on a mesh."""

import json
import pathlib

import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from tests import tiny


@pytest.fixture(scope='module')
def wide_pair(tmp_path_factory):
  """Returns checkpoints with a logit for each embedded piece."""
  folder = tmp_path_factory.mktemp('wide')
  config = tiny.config(
      vocab_size=2048, num_heads=4, num_encoder_layers=1, num_decoder_layers=1
  )
  checkpoints.save(folder / 'target', 1, tiny.params(config))
  checkpoints.save(folder / 'draft', 1, tiny.params(config, noise=0.1))
  return folder, config


class TestCommands:

  def run(self, wide_pair, output, *flags, job='eval'):
    folder, config = wide_pair
    sizes = (
        'vocab_size', 'emb_dim', 'num_heads', 'num_encoder_layers',
        'num_decoder_layers', 'head_dim', 'mlp_dim',
    )  # fmt: skip
    gin_file = pathlib.Path(output).with_suffix('.gin')
    gin_file.write_text(
        '\n'.join(
            [
                'from __gin__ import dynamic_registration',
                'from speculative_t5x.networks import t5',
                'from speculative_t5x.tasks import ende',
                "include 'configs/drafters/draft_model.gin'",
                f"include 'configs/runs/{job}.gin'",
                'TARGET_CONFIG = @t5.T5Config()',
                'DRAFT_CONFIG = @t5.T5Config()',
                "MIXTURE_OR_TASK_NAME = 'bulletins_ende'",
                "TASK_FEATURE_LENGTHS = {'inputs': 24, 'targets': 12}",
                'NUM_EXAMPLES = 6',
                'BATCH_SIZE = 4',
                'GAMMA = 2',
                *(
                    f't5.T5Config.{name} = {getattr(config, name)}'
                    for name in sizes
                ),
            ]
        )
    )
    status = main.main(
        [
            job,
            f'--gin_file={gin_file}',
            f'--gin.CHECKPOINT_PATH={folder / "target"}',
            f'--gin.DRAFT_CHECKPOINT_PATH={folder / "draft"}',
            f'--output_dir={output}',
            *flags,
        ]
    )
    assert status == 0
    record = json.loads((output / 'results.jsonl').read_text())
    return record, (output / 'predictions.jsonl').read_text()

  def test_eval_rounds_its_batches_up(self, wide_pair, tmp_path, capsys):
    record, _ = self.run(
        wide_pair,
        tmp_path / 'mesh',
        '--gin.MESH_SHAPE=(4, 2)',
        '--gin.BATCH_SIZE=3',
        '--gin.SHOWN_EXAMPLE=0',
    )
    shown = capsys.readouterr()
    assert 'one line per call' in shown.out
    assert 'Batches of 3 examples become batches of 4' in shown.out + shown.err
    assert record['mesh'] == {'data': 4, 'model': 2}
    assert record['greedy'] == {'identical': 6, 'near_tie': 0, 'mismatch': 0}

  def test_infer_resumes_on_another_mesh(self, wide_pair, tmp_path, capsys):
    """As the decodes of a training do, whose MESH_SHAPE may change."""
    run = lambda *flags: self.run(wide_pair, tmp_path, *flags, job='infer')
    record, predictions = run()
    capsys.readouterr()
    spread, again = run('--gin.MESH_SHAPE=(4, 2)')
    assert 'finished chunks are taken from' in capsys.readouterr().err
    assert predictions == again
    assert (record['mesh'], spread['mesh']) == ({}, {'data': 4, 'model': 2})


def test_walltime_refuses_a_batch_that_the_mesh_does_not_divide(
    tmp_path, capsys
):
  """A padded batch would take the time of another batch size."""
  flags = [
      'walltime',
      '--gin_file=configs/runs/walltime_bulletins.gin',
      '--gin.MESH_SHAPE=(8, 1)',
      '--gin.BATCH_SIZE=(8, 4)',
      f'--output_dir={tmp_path / "mesh"}',
  ]
  assert main.main(flags) == 1
  error = capsys.readouterr().err
  assert 'batch_size 4 cannot be split evenly' in error
  assert "{'data': 8, 'model': 1}" in error
  assert not (tmp_path / 'mesh').exists()
