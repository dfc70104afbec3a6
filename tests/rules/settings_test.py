# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that every way to decode takes a rule, and says which one it was."""

import json

import jax
import numpy as np
import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.drafters import source
from speculative_t5x.rules import block
from speculative_t5x.rules import description
from speculative_t5x.rules import lenience
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from tests import repeat_last
from tests import tiny
from tests import workloads

TEXTS = ['The train from Bonn is late.', 'It will rain in Turin today.']
LENIENCE = 'lenience(lenience=0.0)'

_GIN = """
from __gin__ import dynamic_registration

from speculative_t5x.loading.drafters import source
from speculative_t5x.tasks import ende
from tests import repeat_last

include 'configs/runs/eval.gin'
include 'configs/rules/{rule}.gin'

MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {{'inputs': 24, 'targets': 12}}
NUM_EXAMPLES = 4
BATCH_SIZE = 2
GAMMA = 3

DRAFTER = @source.WithoutParameters()
source.WithoutParameters:
  make = @repeat_last.RepeatLast
  kind = 'repeat_last'
"""


@pytest.fixture
def run_eval(tmp_path):
  """Returns a function that runs the eval job with the gin file of a rule."""

  def run(rule, *flags):
    gin_file, output = tmp_path / 'job.gin', tmp_path / 'output'
    gin_file.write_text(_GIN.format(rule=rule))
    checkpoints.save(tmp_path / 'target', 1, tiny.params(workloads.CONFIG))
    status = main.main(
        [
            'eval',
            f'--gin_file={gin_file}',
            f'--gin.CHECKPOINT_PATH={tmp_path / "target"}',
            f'--output_dir={output}',
            *flags,
        ]
    )
    assert status == 0
    lines = (output / 'results.jsonl').read_text().splitlines()
    return output, [json.loads(line) for line in lines]

  return run


class TestJobs:

  def test_eval_with_lenience(self, run_eval, capsys):
    """Its greedy outputs differ, and need not equal those of plain decoding."""
    _, records = run_eval(
        'lenience', '--gin.LENIENCE=0.0', '--gin.TEMPERATURE=(0.0, 1.0)'
    )
    for record in records:
      assert record['verification'] == {'rule': LENIENCE, 'lenience': 0.0}
      assert record['lossless'] is False
      assert record['greedy'] is None
      assert record['accepted_per_tested'] == 1
    shown = ' '.join(capsys.readouterr().out.split())
    assert f'rule {LENIENCE}, not lossless' in shown

  def test_compare_refuses_a_rule_that_it_cannot_explain(
      self, run_eval, capsys
  ):
    output, _ = run_eval('block', '--gin.TEMPERATURE=1.0')
    status = main.main(['compare', f'--first={output}', f'--second={output}'])
    assert status != 0
    message = 'samples of the rule block'
    assert message in ' '.join(capsys.readouterr().err.split())


@pytest.fixture(scope='module')
def decoder():
  return make_decoder(rescale_log_probs=False)


def make_decoder(**options):
  drafter = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
  return workloads.text_decoder(
      drafter.load(), gamma=3, matmul_precision='highest', **options
  )


class TestPython:

  def test_outputs_that_have_no_score(self):
    with pytest.raises(ValueError, match='lenience may .* rescale_log_probs=F'):
      make_decoder().decode(TEXTS, rule=lenience.make_rule(0.5))

  def test_option_of_decode(self, decoder):
    found = decoder.decode(TEXTS, rule=lenience.make_rule(0.0))
    assert found.statistics['accepted'] == found.statistics['tested'] > 0
    plain = decoder.decode_plain(TEXTS)
    for rule in (verification.TOKENWISE, block.BlockVerification()):
      found = decoder.decode(TEXTS, rule=rule)
      np.testing.assert_array_equal(found.sequences, plain.sequences)

  def test_scores_are_those_of_the_model(self, decoder):
    """Under a rule that accepts what the model finds unlikely, too."""
    found = decoder.decode(
        TEXTS,
        sampling=sampling.Sampling(1.5),
        rule=lenience.make_rule(0.01),
        seed=7,
    )
    tokens = found.sequences[:, -1]
    # `score` takes id 0 for padding.
    assert found.statistics['accepted'] and np.all(tokens > 0)
    inputs = [[*decoder.vocabulary.encode(text), 1] for text in TEXTS]
    inputs = np.array([np.pad(ids, (0, 24 - len(ids))) for ids in inputs])
    log_probs = jax.nn.log_softmax(
        workloads.CONFIG.score(tiny.params(workloads.CONFIG), inputs, tokens)
    )
    own = np.take_along_axis(np.asarray(log_probs), tokens[..., None], axis=-1)
    expected = np.sum(own[..., 0], axis=-1)
    np.testing.assert_allclose(found.scores[:, -1], expected, rtol=1e-4)

  def test_what_is_no_rule(self, decoder):
    with pytest.raises(ValueError, match='A rule must be an object with name'):
      decoder.decode(TEXTS, rule='block')


class TestDescription:

  def test_a_rule_that_is_no_dataclass(self):
    class Own:
      name = 'own'

    assert description.describe(Own()) == 'own'
