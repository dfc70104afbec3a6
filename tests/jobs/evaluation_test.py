# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job on a tiny pair and six examples of the embedded corpus."""

import collections
import contextlib
import functools
import io
import types

import pytest
import seqio

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import evaluation
from speculative_t5x.loading import vocabularies
from speculative_t5x.policies import confidence
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import greedy
from speculative_t5x.rules import exact_match
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import metrics
from tests import workloads

_NUM_EXAMPLES, _BATCH_SIZE, _GAMMA = 6, 4, 3


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
  return workloads.save_pair(tmp_path_factory.mktemp('pair'))


def _evaluate(paths, output_dir, **changes):
  arguments = {
      'checkpoint_path': paths.target,
      'drafter': workloads.drafter(paths.draft, workloads.CONFIG),
      'output_dir': str(output_dir),
      'gamma': _GAMMA,
      'num_examples': _NUM_EXAMPLES,
      'temperature': (0.0, 1.0),
      'batch_size': _BATCH_SIZE,
      'seed': 5,
      'mask_padded_ids': True,  # there are none
  }
  return evaluation.evaluate(
      workloads.eval_setup(**{**arguments, **changes})
  )


@pytest.fixture(scope='module')
def ran(paths, tmp_path_factory):
  """Run one job; return its records, folder, decoder and what it printed."""
  folder = tmp_path_factory.mktemp('output') / 'new' / 'folder'
  decoders = []
  make = token_decoder.TokenDecoder

  def make_and_keep(*args, **options):
    decoders.append(make(*args, **options).loaded())
    return decoders[-1]

  with (
      contextlib.redirect_stdout(io.StringIO()) as out,
      pytest.MonkeyPatch.context() as patch,
  ):
    patch.setattr(token_decoder, 'TokenDecoder', make_and_keep)
    records = _evaluate(paths, folder)
  return types.SimpleNamespace(
      records=records, folder=folder, decoder=decoders[0], out=out.getvalue()
  )


@pytest.fixture
def again(ran, paths, tmp_path, monkeypatch):
  """Run the job with changes, by the decoder that is compiled already."""
  monkeypatch.setattr(
      token_decoder, 'TokenDecoder', lambda *_, **__: ran.decoder
  )
  return lambda **changes: _evaluate(paths, tmp_path, **changes)


class TestRecord:

  def test_rates(self, ran):
    for record in ran.records:
      fast = record.speculative
      calls = fast.target_calls
      assert record.tokens_per_target_call == fast.tokens / calls
      # Two rows of the last batch are padding, so it is not 0.
      row_steps = _BATCH_SIZE * fast.loop_steps
      assert record.padded_share == 1 - calls / row_steps > 0
      for run in (record.baseline, fast):
        assert run.tokens_per_s == run.tokens / run.walltime_s
      assert record.speedup == record.baseline.walltime_s / fast.walltime_s
      assert record.speedup_ci95 is None  # of two batches

  def test_repeats_and_draft_temperature(self, ran, again, monkeypatch):
    calls = []
    decode = whole_batches.decode

    def watched(pair, batch):
      if pair is ran.decoder.alone:
        calls.append(batch)
      return decode(pair, batch)

    monkeypatch.setattr(whole_batches, 'decode', watched)
    (record,) = again(temperature=1.0, repeats=3, draft_temperature=0.25)
    assert record.repeats == 3
    assert len(calls) == record.warmup + 3 * 2  # two batches
    # Repeats are timed, not counted.
    assert record.baseline.tokens == ran.records[1].baseline.tokens
    assert record.drafter.temperature == 0.25
    assert record.speculative.accepted != ran.records[1].speculative.accepted


class TestFiles:

  def test_predictions(self, ran):
    rows = workloads.read(ran.folder / 'predictions.jsonl')
    assert [r['temperature'] for r in rows] == 6 * [0.0] + 6 * [1.0]
    assert [r['example_id'] for r in rows] == 2 * list(range(6))
    pairs = bulletins.read_pairs('validation')[:_NUM_EXAMPLES]
    assert [(r['input'], r['target']) for r in rows] == 2 * pairs
    for row in rows[:6]:
      assert row['baseline'] == row['speculative'] != ''
      # At temperature 0 the argmax has probability 1.
      assert row['baseline_score'] == row['speculative_score'] == 0
    for row in rows[6:]:
      assert row['baseline_score'] < 0 and row['speculative_score'] < 0
    assert any(r['baseline'] != r['speculative'] for r in rows[6:])

  def test_tokens_are_those_of_the_predictions(self, ran):
    vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
    text = lambda tokens: vocabulary.decode([t for t in tokens if t != 1])
    rows = workloads.read(ran.folder / 'predictions.jsonl')
    for row in rows:
      assert row['input'].startswith(text(row['input_tokens']))
      for side in ('baseline', 'speculative'):
        assert text(row[f'{side}_tokens']) == row[side]
    for record in ran.records:
      own = [r for r in rows if r['temperature'] == record.temperature]
      for side in ('baseline', 'speculative'):
        total = sum(len(row[f'{side}_tokens']) for row in own)
        assert total == getattr(record, side).tokens

  def test_loggers_get_what_was_decoded_once(
      self, ran, again, tmp_path, monkeypatch
  ):
    """The rates are those of the record, and the text metrics its quality."""
    decode, calls = whole_batches.decode, collections.Counter()

    def watched(pair, batch):
      calls[pair] += 1
      return decode(pair, batch)

    monkeypatch.setattr(whole_batches, 'decode', watched)
    loggers = [seqio.TensorBoardLogger, seqio.JSONLogger]
    (record,) = again(temperature=1.0, loggers=loggers)
    again(temperature=1.0, loggers=loggers)  # from the chunks
    assert [*calls.values()] == [record.warmup + 2] * 2  # two batches
    rates = {
        'baseline': {'tokens_per_target_call': 1},
        'speculative': {
            'tokens_per_target_call': record.tokens_per_target_call,
            'acceptance_rate': record.accepted_per_tested,
        },
    }
    for side, expected in rates.items():
      folder = tmp_path / 'metrics' / 'temperature_1' / side
      first, second = workloads.read(folder / f'{ende.BULLETINS}-metrics.jsonl')
      assert first == second
      positions = {k: first.pop(k) for k in list(first) if '/' in k}
      assert first == {'step': 1, **getattr(record.quality, side), **expected}
      assert len(positions) == (_GAMMA if side == 'speculative' else 0)
      assert len(list((folder / ende.BULLETINS).iterdir())) == 2
    # The first draft token of every block is tested.
    first_position = record.speculative.per_position_acceptance[0]
    assert positions['acceptance_rate/position_1'] == first_position

  def test_order_is_that_of_the_temperatures(self, again, tmp_path):
    again(temperature=(1.0, 0.5, 0.0, 0.5))
    with pytest.raises(ValueError, match='holds results with another seed'):
      again(temperature=1.0, seed=6)
    for name, copies in (('results', 1), ('predictions', 6)):
      rows = workloads.read(tmp_path / f'{name}.jsonl')
      assert [r['temperature'] for r in rows] == [
          value for value in (1.0, 0.5, 0.0) for _ in range(copies)
      ]


def test_several_decodes(ran, paths, tmp_path):
  """The best is last and judged.

  The sample of one decode in a larger batch is among them.
  """
  (record,) = _evaluate(
      paths, tmp_path, temperature=1.0, num_decodes=2, batch_size=1
  )
  assert record.num_decodes == 2 and record.greedy is None
  low, high = record.speedup_ci95  # of enough batches
  assert low <= record.speedup <= high
  rows = workloads.read(tmp_path / 'predictions.jsonl')
  alone = workloads.read(ran.folder / 'predictions.jsonl')[_NUM_EXAMPLES:]
  for side in ('baseline', 'speculative'):
    for one, row in zip(alone, rows, strict=True):
      scores = row[f'{side}_score']
      assert scores[0] < scores[1]
      score = scores[row[side].index(one[side])]
      assert score == pytest.approx(one[f'{side}_score'], rel=1e-4)
    expected = metrics.bleu(
        [r['target'] for r in rows], [r[side][-1] for r in rows]
    )
    assert getattr(record.quality, side) == expected


def test_beams(paths, tmp_path, monkeypatch):
  """All hypotheses of both sides, and more wrong ones than rounding makes."""
  decoders, make = [], token_decoder.TokenDecoder

  def made_once(*args, **options):
    if not decoders:
      decoders.append(make(*args, **options).loaded())
    return decoders[0]

  monkeypatch.setattr(token_decoder, 'TokenDecoder', made_once)
  run = functools.partial(
      _evaluate, paths, temperature=0.0, gamma=2,
      search=beam_search.BeamSearch(beams=3, draft_beams=5),
  )  # fmt: skip
  (record,) = run(tmp_path / 'right')
  assert (record.beams, record.num_decodes, record.draft_beams) == (3, 3, 5)
  assert record.greedy == run_record.Greedy(_NUM_EXAMPLES, 0, 0)
  assert 1 <= record.mean_acceptance_length <= 3
  assert record.speculative.loop_steps <= record.baseline.loop_steps
  rows = workloads.read(tmp_path / 'right' / 'predictions.jsonl')
  for row in rows:
    assert len(row['baseline']) == len({*row['baseline']}) == 3
    assert row['baseline'] == row['speculative']
    assert row['baseline_score'] == sorted(row['baseline_score'])

  search = whole_batches.search_for

  def one_wrong_token(pair, batch, asked):
    found = search(pair, batch, asked)
    if pair is not decoders[0]:
      return found
    wrong = 3 + (found.sequences[0, 0] + 700) % 2000
    return found.replace(sequences=found.sequences.at[0, 0].set(wrong))

  monkeypatch.setattr(whole_batches, 'search_for', one_wrong_token)
  with pytest.raises(greedy.MismatchError, match='2 of . outputs'):
    run(tmp_path / 'wrong')


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'temperature': (0.0, 1.0)}, 'TEMPERATURE'),
        ({'draft_temperature': 1.0}, 'TEMPERATURE'),
        ({'rule': exact_match.ExactMatch()}, 'RULE'),
        ({'policy': confidence.Confidence()}, 'POLICY'),
        ({'num_decodes': 2}, 'num_decodes'),
    ],
)
def test_beams_that_are_refused(paths, tmp_path, changes, named):
  with pytest.raises(ValueError, match=named):
    search = beam_search.BeamSearch(beams=3)
    changes = {'temperature': 0.0, 'search': search} | changes
    _evaluate(paths, tmp_path, **changes)
  assert not list(tmp_path.iterdir())


class TestGreedy:

  def test_mismatch(self, ran, again, tmp_path, monkeypatch):
    """A wrong token is told apart from rounding, and the results are kept."""
    decode = whole_batches.decode

    def one_wrong_token(pair, batch):
      decoded = decode(pair, batch)
      if pair is not ran.decoder:
        return decoded
      wrong = 3 + (decoded.sequences[0, 2] + 700) % 2000
      return decoded.replace(sequences=decoded.sequences.at[0, 2].set(wrong))

    monkeypatch.setattr(whole_batches, 'decode', one_wrong_token)
    with pytest.raises(greedy.MismatchError, match='2 outputs'):
      again(temperature=0.0)
    (written,) = workloads.read(tmp_path / 'results.jsonl')
    counts = {'identical': 4, 'near_tie': 0, 'mismatch': 2, 'unexplained': 0}
    assert written['greedy'] == counts

