# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of decoding texts, with a tiny T5 and a tiny vocabulary."""

import functools
import pathlib
import shutil
import tempfile
import warnings

import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models as loading_models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.rules import exact_match
from speculative_t5x.speculation import sampling
from tests import compilation
from tests import tiny
from tests import vocabulary_files

pytestmark = [
    pytest.mark.long, pytest.mark.filterwarnings('ignore:Input .* tokens')
]

CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
INPUTS_LENGTH, LENGTH, GAMMA = 14, 10, 2
SETTINGS = dict(
    gamma=GAMMA,
    inputs_length=INPUTS_LENGTH,
    max_tokens=LENGTH,
    matmul_precision='highest',
)
TEXTS = ['a red bell', 'the big bell is old', 'it is red']


@functools.cache
def vocabulary_file() -> pathlib.Path:
  """Write a vocabulary of about 25 pieces."""
  path = pathlib.Path(tempfile.mkdtemp()) / 'spiece.model'
  text = 'a red bell\nthe big bell is old\nit is red\nthe bell is big'
  return vocabulary_files.train(path, text=text)


@functools.cache
def vocabulary() -> vocabularies.Vocabulary:
  """Return a vocabulary of fewer pieces than there are logits, 64."""
  return vocabularies.load(vocabulary_file()).within(CONFIG.vocab_size)


@functools.cache
def models():
  draft = tiny.model(CONFIG, noise=0.15)
  return tiny.model(CONFIG), model_drafting.of_model(draft)


@functools.cache
def pair(**options) -> text_decoder.TextDecoder:
  return text_decoder.TextDecoder(
      *models(), vocabulary(), **(SETTINGS | options)
  )


def text_of(ids) -> str:
  """Detokenize by hand."""
  ids = ids.tolist()
  ids = ids[: ids.index(1)] if 1 in ids else ids
  return vocabulary().decode([i for i in ids if i > 0])


class TestDecode:

  def test_greedy_equals_plain(self):
    found, expected = pair().decode(TEXTS), pair().decode_plain(TEXTS)
    assert found.texts == expected.texts
    assert found.tokens == expected.tokens
    np.testing.assert_array_equal(found.scores, np.zeros((3, 1)))
    calls = [x.statistics['target_calls'] for x in (found, expected)]
    assert calls[0] < calls[1]
    assert found.best[0][:9] in repr(found) and len(repr(found)) < 200

  def test_one_text(self):
    """It is the result of a list of one."""
    for way in (pair().decode, pair().decode_plain):
      one, several = way(TEXTS[1]), way(TEXTS[1:2])
      assert one.text == several.best[0] == one.texts[-1]
      assert one.statistics['target_calls'] == (
          several.statistics['target_calls']
      )
      assert one.text[:9] in repr(one)

  def test_any_iterable_of_texts(self):
    expected = pair().decode(TEXTS)
    found = pair().decode(iter(TEXTS), example_ids=iter([0, 1, 2]))
    assert found.best == expected.best and len(found) == len(TEXTS)
    assert found[1].text == expected.best[1] and found[-1] in found
    assert [x.text for x in found[:2]] == expected.best[:2]
    assert [x.text for x in reversed(found)] == expected.best[::-1]
    with pytest.raises(IndexError):
      found[3]

  def test_statistics_are_sums_over_the_results(self):
    found = pair().decode(TEXTS, batch_size=1)
    for name in ('tokens', 'target_calls', 'drafted', 'accepted', 'tested'):
      counts = [result.statistics[name] for result in found]
      assert sum(counts) == found.statistics[name] > 0
    # The end of sequence is counted.
    assert [x.statistics['tokens'] for x in found] == [
        min(len(x.tokens[0]) + 1, LENGTH) for x in found
    ]

  def test_samples_depend_on_example_id_and_seed(self):
    own = sampling.Sampling(1.0)
    run = lambda **options: pair().decode(TEXTS, sampling=own, **options)
    first = run(example_ids=[7, 8, 9], seed=3)
    assert first.tokens == run(example_ids=[7, 8, 9], seed=3).tokens
    default = run(seed=3).tokens
    assert default == run(example_ids=[0, 1, 2], seed=3).tokens
    for other in (run(seed=4).tokens, first.tokens):
      assert all(x != y for x, y in zip(default, other, strict=True))


class TestBeams:

  def test_each_text_has_its_hypotheses_alone(self):
    found = pair().decode_plain(TEXTS, beams=3)
    assert all(len({*result.texts}) == 3 for result in found)
    assert np.all(np.diff(found.scores) >= 0)
    alone = pair().decode_plain(TEXTS[1], beams=3)
    assert alone.tokens == found.results[1].tokens
    np.testing.assert_allclose(alone.scores, found.scores[1], atol=1e-5)
    for name, value in found.statistics.items():
      assert value == sum(each.statistics[name] for each in found) > 0

  def test_drafts_change_nothing(self):
    found, expected = (
        way(TEXTS, beams=2) for way in (pair().decode, pair().decode_plain)
    )
    assert found.tokens == expected.tokens
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    names = 'beam_steps', 'target_calls'
    steps, calls = (found.statistics[name] for name in names)
    assert steps == expected.statistics['target_calls'] > calls

  def test_streams_and_token_ids_are_searched_too(self):
    expected = pair().decode_plain(TEXTS, beams=2, draft_beams=2)
    found = pair().stream(TEXTS, batch_size=4, beams=2)
    assert [result.tokens for result in found] == expected.tokens
    inputs = [
        pair().tokenized(request_lib.Request(text), 0).request.inputs
        for text in TEXTS
    ]
    best = [tokens[-1] for tokens in expected.tokens]
    assert pair().generate(inputs, beams=2) == best
    with pytest.raises(ValueError, match='sampling'):
      pair().stream(TEXTS, beams=2, sampling=sampling.Sampling(1.0))

  def test_a_drafter_of_candidates_drafts_for_a_search_too(self):
    target, draft = models()
    tree = tree_drafting.CandidateTree(draft, nodes=5)
    decoder = text_decoder.TextDecoder(
        target, tree, vocabulary(), **(SETTINGS | {'gamma': 2})
    )
    with warnings.catch_warnings():
      warnings.simplefilter('error')  # of a drafter without trees
      found = decoder.decode(TEXTS, beams=2)
    assert found.tokens == pair().decode_plain(TEXTS, beams=2).tokens
    name = decoder.tokens.loaded_drafter.description.candidates
    assert f'tree {name}' in repr(decoder)

  def test_limits_and_penalties_are_those_of_the_call(self):
    short = pair().decode_plain(TEXTS[0], beams=2, max_tokens=3)
    assert all(len(tokens) <= 3 for tokens in short.tokens)
    # Among so many candidates some end.
    scores = [
        pair().decode_plain(TEXTS, beams=20, brevity_penalty=x).scores
        for x in (0.0, 1.0)
    ]
    assert np.any(scores[0] < scores[1])

  @pytest.mark.parametrize(
      ('arguments', 'named'),
      [
          ({'beams': 0}, 'beams'),
          ({'beams': 65}, 'beams'),
          ({'beams': 2, 'brevity_penalty': -0.1}, 'brevity_penalty'),
          ({'beams': 1, 'brevity_penalty': 0.7}, 'brevity_penalty'),
          ({'length_penalty': 1.0}, 'length_penalty'),
          ({'draft_beams': 4}, 'draft_beams'),
          ({'beams': 2, 'sampling': sampling.Sampling(1.0)}, 'sampling'),
          ({'beams': 2, 'rule': exact_match.ExactMatch()}, 'rule'),
          ({'beams': 2, 'draft_beams': 1}, 'draft_beams'),
          ({'beams': 2, 'draft_beams': 128}, '258 nodes'),
      ],
  )
  def test_bad_arguments(self, arguments, named):
    with pytest.raises(ValueError, match=named):
      pair().decode(TEXTS, **arguments)

  def test_samples_of_the_decoder_are_refused(self):
    several = pair(num_decodes=2)
    for way in (several.decode, several.decode_plain, several.stream):
      with pytest.raises(ValueError, match='num_decodes'):
        way(TEXTS, beams=2)
    with pytest.raises(ValueError, match='num_decodes'):
      several.generate([[5, 6, 1]], beams=2)

  def test_chains_change_nothing(self):
    """Of lookup, in hints too, and of layers of the target."""
    expected = pair().decode_plain(TEXTS, beams=2)
    hints = expected.best
    found = TestHints.looking_up().decode(TEXTS, beams=2, hints=hints)
    assert found.tokens == expected.tokens
    exits = text_decoder.TextDecoder(
        models()[0], exit_drafting.EarlyExit(1), vocabulary(), **SETTINGS
    )
    with pytest.warns(UserWarning, match='makes no trees'):
      found = exits.decode(TEXTS, beams=2)
    assert found.tokens == expected.tokens


class TestBatches:
  """Texts are decoded in batches of few shapes, and lazily."""

  def test_any_number_of_texts_compiles_few_shapes(self):
    """One per power of two below the batch size, and one for all above."""
    decoder, num_compiled = pair(max_tokens=5), []
    for count in (1, 2, 3, 4, 5, 9, *range(1, 12)):
      options = dict(batch_size=4, max_tokens=1 + count % 5)
      assert len(decoder.decode(['a red bell'] * count, **options)) == count
      num_compiled.append(compilation.count())
    one, two, *others = num_compiled
    assert one < two < others[0] and len({*others}) == 1

  def test_nothing_to_decode(self):
    assert list(pair().stream([])) == []
    for empty in ([], iter([])):
      with pytest.raises(ValueError, match='nothing to decode'):
        pair().decode(empty)
      with pytest.raises(ValueError, match='nothing to decode'):
        pair().generate(empty)

  def test_a_stream_checks_its_arguments_at_once(self):
    for wrong in ({'batch_size': 0}, {'max_tokens': LENGTH + 1}, {'rule': 3}):
      with pytest.raises(ValueError, match=next(iter(wrong))):
        pair().stream(TEXTS, **wrong)


def test_outputs_are_cut_to_max_tokens():
  whole = pair().decode(TEXTS).tokens
  for count in (1, 3, LENGTH):
    for way in (pair().decode, pair().decode_plain):
      found = way(TEXTS, max_tokens=count)
      for (own,), (full,) in zip(found.tokens, whole, strict=True):
        assert own == full[:count]
      assert max(x.statistics['tokens'] for x in found) <= count
  ids = [[*vocabulary().encode(text), 1] for text in TEXTS]
  assert pair().generate(ids, max_tokens=3) == [x[:3] for (x,) in whole]


def test_order_and_texts_of_several_decodes():
  """The best is last, and scores, texts and tokens go together."""
  own = sampling.Sampling(1.0)
  several = pair(num_decodes=2).decode_plain(TEXTS, sampling=own, seed=5)
  assert several.scores.shape == (3, 2)
  assert np.all(np.diff(several.scores, axis=1) >= 0)
  assert np.any(np.diff(several.scores, axis=1) > 0)
  batch, _ = whole_batches.make_batch(pair(), TEXTS, sampling=own, seed=5)
  decoded = whole_batches.decode(pair(num_decodes=2).tokens.alone, batch)
  scores = np.asarray(decoded.log_probs).reshape(3, 2)
  sequences = np.asarray(decoded.sequences).reshape(3, 2, LENGTH)
  np.testing.assert_allclose(several.scores, np.sort(scores), atol=1e-4)
  for number, order in enumerate(np.argsort(scores)):
    expected = [text_of(sequences[number, i]) for i in order]
    assert several.texts[number] == expected
  assert several.best == [texts[1] for texts in several.texts]


class TestPaddedIds:

  def test_masked_ids_are_never_written(self):
    """All 64 ids are about equally likely, and about 25 are pieces."""
    num_pieces = vocabulary().num_pieces
    assert num_pieces < CONFIG.vocab_size
    hot = sampling.Sampling(8.0)
    run = lambda pair: max(
        max(ids) for (ids,) in pair.decode_plain(TEXTS, sampling=hot).tokens
    )
    assert run(pair()) >= num_pieces
    assert run(pair(mask_padded_ids=True)) < num_pieces

  def test_unknown_text_is_counted(self):
    assert pair().decode_plain(TEXTS).num_unknown == 0
    texts = ['a red bell', 'the <extra_id_0> bell', 'the bell 漢']
    assert pair().decode(texts).num_unknown == 2


class TestRequest:

  def test_tokens(self):
    batch, rows = whole_batches.make_batch(pair(), TEXTS)
    assert not any(row.is_truncated or row.is_unknown for row in rows)
    for text, row in zip(TEXTS, batch.inputs.tolist()):
      ids = vocabulary().encode(text)
      padding = [-1] * (INPUTS_LENGTH - len(ids) - 1)
      assert row == [*ids, 1, *padding]
    assert batch.limits.tolist() == [LENGTH] * 3
    assert batch.example_ids.tolist() == [0, 1, 2]

  def test_long_input_is_cut_and_ends_with_eos(self):
    long = 'the big bell is old it is a big red bell it is red'
    batch, rows = whole_batches.make_batch(pair(), ['a red bell', long, long])
    ids = vocabulary().encode(long)
    assert [row.is_truncated for row in rows] == [False, True, True]
    assert len(ids) >= INPUTS_LENGTH
    assert batch.inputs[1].tolist() == [*ids[: INPUTS_LENGTH - 1], 1]
    # An input that just fits with its end is not cut.
    for room, expected in ((1, False), (0, True)):
      length = len(vocabulary().encode('a red bell')) + room
      own = pair(inputs_length=length)
      _, (row,) = whole_batches.make_batch(own, ['a red bell'])
      assert row.is_truncated == expected
    assert pair().decode_plain([*TEXTS[:2], long]).num_truncated == 1


class TestHints:

  @staticmethod
  def looking_up(**options):
    drafter = lookup_drafting.Lookup()
    return text_decoder.TextDecoder(
        models()[0], drafter, vocabulary(), **(SETTINGS | options)
    )

  def test_outputs_are_those_without_hints(self):
    found = self.looking_up()
    plain = pair().decode_plain(TEXTS)
    hints = [plain.texts[0][-1], None, ['a bell', plain.texts[2][-1]]]
    right = found.decode(TEXTS, hints=hints)
    wrong = found.decode(TEXTS, hints=['it is old', None, None])
    for each in (right, wrong):
      assert each.tokens == plain.tokens
    calls = [x.statistics['target_calls'] for x in (right, wrong)]
    assert calls[0] < calls[1]
    alone = found.decode(TEXTS[2], hints=['a bell', plain.best[2]])
    assert alone.text == plain.best[2]
    assert alone.statistics['target_calls'] == (
        right.results[2].statistics['target_calls']
    )

  def test_drafter_that_does_not_read_them(self):
    with pytest.raises(ValueError, match='does not read hints.*Lookup'):
      pair().decode(TEXTS, hints=['a', None, None])
    pair().decode(TEXTS, hints=[None, None, None])

  def test_are_cut_to_their_length(self):
    found = self.looking_up(hints_length=3)
    hints = ['the big bell is old'] * 3
    batch, _ = whole_batches.make_batch(found, TEXTS, hints=hints)
    assert (batch.hints[:, :3] > 1).all() and (batch.hints[:, 3:] < 0).all()


def test_cut_texts_are_warned_of_once():
  """Where the call is made."""
  long = [TEXTS[0], ' '.join(TEXTS), ' '.join(TEXTS)]
  for way, others in (
      (lambda: pair().decode(long), ' and 1 more'),
      (lambda: [*pair().stream(long)], ''),
  ):
    with pytest.warns(UserWarning) as caught:
      way()
    (warning,) = caught
    assert f'Input 1{others} exceeded 14 tokens' in str(warning.message)
    assert warning.filename == __file__


class TestArguments:
  """Each wrong argument is refused in one line that names it."""

  @pytest.mark.parametrize(
      ('texts', 'arguments', 'named'),
      [
          (['a red bell', ''], {}, r'texts\[1\] is empty'),
          (['a red bell', '\n\t'], {}, r'texts\[1\] is empty'),
          (['a red bell', 'a \ud800 bell'], {}, r'texts\[1\].*lone surrogate'),
          (TEXTS, {'hints': ['\udcff', None, None]}, 'hint.*lone surrogate'),
          (3, {}, 'texts must be'),
          ([{'text': 'a red bell'}], {}, r'texts\[0\] must be a string'),
          (TEXTS, {'hints': ['a']}, 'hints must have one entry'),
          (iter(TEXTS), {'hints': iter('abcd')}, 'hints must'),
          (TEXTS, {'example_ids': [1, 2]}, 'example_ids must'),
          (TEXTS, {'example_ids': [0, 2**31, 1]}, r'texts\[1\]: example_id'),
          (TEXTS, {'seed': 2**31}, 'seed'),
          (TEXTS, {'rule': 'block'}, 'rule must'),
          (TEXTS, {'sampling': 0.5}, 'sampling must be'),
          (TEXTS, {'max_tokens': LENGTH + 1}, f'max_tokens={LENGTH + 1}'),
          (TEXTS, {'batch_size': 0}, 'batch_size must be'),
      ],
  )
  def test_of_a_call(self, texts, arguments, named):
    with pytest.raises(ValueError, match=named) as error:
      TestHints.looking_up().decode(texts, **arguments)
    assert len(str(error.value).splitlines()) == 1

  @pytest.mark.parametrize(
      ('name', 'value'),
      [
          ('hints_length', 0), ('max_tokens', 2.0), ('gamma', LENGTH + 1),
          ('policy', sampling.Sampling), ('matmul_precision', 'most'),
      ],
  )  # fmt: skip
  def test_options_out_of_range(self, name, value):
    with pytest.raises(ValueError, match=name):
      pair(**{name: value})


def test_short_inputs_are_decoded_in_narrow_batches():
  """The outputs are those of the whole width."""
  wide = pair(inputs_length=4 * 32 * 4)
  assert [batching.input_width(n, 512) for n in (1, 32, 33, 129, 512)] == [
      32, 32, 128, 512, 512
  ]
  found = wide.decode_plain(TEXTS)
  expected = pair().decode_plain(TEXTS)
  assert found.tokens == expected.tokens
  # What times decoding compiles once.
  assert whole_batches.make_batch(wide, TEXTS)[0].inputs.shape == (3, 512)


def save(path, noise=0.0, has_vocabulary=True):
  """Write a checkpoint, with its vocabulary beside it or not."""
  checkpoints.save(path, 1, tiny.params(CONFIG, noise=noise))
  if has_vocabulary:
    shutil.copy(vocabulary_file(), path / 'spiece.model')
  return path


@pytest.fixture(scope='module')
def target(tmp_path_factory):
  return save(tmp_path_factory.mktemp('model') / 'target')


class TestLoad:

  def load(self, *args, **options):
    return text_decoder.load(*args, **(SETTINGS | options))

  def test_draft_as_path_model_choice_or_drafting(self, target, tmp_path):
    draft = save(tmp_path / 'draft', 0.15, has_vocabulary=False)
    model = loading_models.load_model(draft)
    expected = pair().decode(TEXTS)
    for each in (
        draft,
        str(draft),
        model,
        model_drafting.DraftModel(draft),
        model_drafting.of_model(model),
    ):
      made = self.load(target, each)
      assert made.tokens.loaded_drafter.description.kind == 'model'
    assert made.decode(TEXTS).tokens == expected.tokens

  def test_alone_it_drafts_by_lookup(self, target):
    made = self.load(target)
    assert 'lookup_1_3' in repr(made) and made.tokens.reads_hints
    assert made.options.gamma == GAMMA
    assert made.options.inputs_length == INPUTS_LENGTH

  def test_vocabulary_beside_the_checkpoint_of_its_step(self, tmp_path):
    target = save(tmp_path / 'target', has_vocabulary=False)
    with pytest.raises(vocabularies.VocabularyError) as error:
      self.load(target)
    (line,) = str(error.value).splitlines()
    assert str(target) in line
    shutil.copy(vocabulary_file(), target / 'checkpoint_1/spiece.model')
    assert self.load(target).vocabulary.num_pieces == vocabulary().num_pieces
