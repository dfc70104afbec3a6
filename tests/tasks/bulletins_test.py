# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the embedded corpus and its generator."""

import datetime
import hashlib
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest
import sentencepiece

from speculative_t5x.tasks import bulletins

_MAX_TOKENS = 96  # EOS included.
_SIZES = {'train': 80_000, 'validation': 500, 'test': 500}


@pytest.fixture(scope='module')
def pairs():
  return {split: bulletins.read_pairs(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def reports():
  return {split: bulletins.read_reports(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def paraphrases():
  return bulletins.read_paraphrases()


@pytest.fixture(scope='module')
def generated():
  """Returns the splits of the generator, with their skeletons."""
  pytest.importorskip('babel')
  pytest.importorskip('num2words')
  from scripts.bulletins import corpus

  return corpus.bulletins()


def _joined(en: str) -> str:
  """Returns a frame as its statements and the words that join them."""
  en = re.sub(r'\{source\d*', '{source', en.replace('^', ''))
  en = re.sub(r'\s+([,.])', r'\1', re.sub(r'\s+', ' ', en).strip())
  return en.removesuffix('.')


def _shape(joined: str) -> str:
  """Returns what `_joined` returns for statements of any kind."""
  return re.sub(r'\{(FACT|OTHER|REASON|SEQUEL)\}', '{S}', joined)


def _words(texts) -> set[str]:
  return {word for text in texts for word in re.findall(r'[^\W\d_]+', text)}


class TestShippedText:

  def test_sizes(self, pairs):
    assert {split: len(read) for split, read in pairs.items()} == _SIZES

  @pytest.mark.parametrize('side', [0, 1])
  def test_no_text_occurs_twice(self, pairs, side):
    texts = [pair[side] for read in pairs.values() for pair in read]
    assert len(set(texts)) == len(texts)

  def test_plain_spaces_and_punctuation(self, pairs):
    wrong = re.compile(r'[^\S ]|  | [.,]|[,.][,.]|,[^\d ]|[][{}@^/|+]|^ | $')
    for read in pairs.values():
      for pair in read:
        for text in pair:
          assert not wrong.search(text), text
          assert text.endswith('.') and not text[0].islower(), text

  def test_same_digits_on_both_sides(self, pairs):
    # Except for times of day, which English counts to twelve.
    clock = re.compile(r'\d+:\d\d( [AP]M)?')
    for read in pairs.values():
      for pair in read:
        english, german = (clock.sub('', text) for text in pair)
        assert sorted(re.findall(r'\d', english)) == sorted(
            re.findall(r'\d', german)
        ), pair

  def test_hash_mismatch(self, tmp_path, monkeypatch):
    folder = pathlib.Path(bulletins.VOCABULARY_FILE).parent
    shutil.copy(folder / 'SHA256SUMS', tmp_path)
    shutil.copy(folder / 'test.tsv.gz', tmp_path / 'validation.tsv.gz')
    monkeypatch.setattr(bulletins, '_FOLDER', tmp_path)
    with pytest.raises(ValueError, match='validation.tsv.gz has SHA-256'):
      bulletins.read_pairs('validation')

  def test_unknown_split(self):
    with pytest.raises(ValueError, match="Got 'dev'"):
      bulletins.read_pairs('dev')

  def test_reads_without_tensorflow(self):
    code = (
        'import sys; from speculative_t5x.tasks import bulletins, multi30k;'
        'bulletins.read_pairs("test");'
        'assert not {"tensorflow", "seqio"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


class TestShippedReports:

  def test_sizes(self, reports):
    found = {split: len(read) for split, read in reports.items()}
    assert found == {'train': 16_000, 'validation': 500, 'test': 500}

  @pytest.mark.parametrize('side', [0, 1])
  def test_no_text_occurs_twice(self, reports, side):
    texts = [pair[side] for read in reports.values() for pair in read]
    assert len(set(texts)) == len(texts)

  def test_sentences(self, reports):
    wrong = re.compile(r'[^\S ]|  | [.,]|[,.][,.]|,[^\d ]|[][{}@^/|+]|^ | $')
    for read in reports.values():
      for pair in read:
        for text in pair:
          assert not wrong.search(text), text
          assert text.endswith('.') and not text[0].islower(), text
        report, summary = (re.findall(r'\D\.(?: |$)', t) for t in pair)
        assert 3 <= len(report) <= 5, pair
        assert 1 <= len(summary) <= 2, pair

  def test_summaries_copy_their_reports(self, reports):
    # Nothing but the first letter of a sentence, 'weil' and a verb whose prefix
    # is separated may be new: all numbers, names and times are copied.
    for read in reports.values():
      for report, summary in read:
        known = re.findall(r'[\w:.,€%-]*\d[\w:.,€%-]*', report)
        for number in re.findall(r'\d[\d.,:]*', summary):
          assert any(number.strip('.,:') in word for word in known), summary
        names = re.findall(r'(?<=[a-zäöüß] )[A-ZÄÖÜ][a-zäöüß]+', summary)
        assert set(names) <= _words([report]), (report, summary)

  def test_lengths_and_round_trip(self, reports):
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    for read in reports.values():
      for texts, longest in zip(zip(*read), (160, 64), strict=True):
        encoded = vocabulary.encode(list(texts))
        assert max(map(len, encoded)) + 1 <= longest
        assert all(vocabulary.unk_id() not in ids for ids in encoded)
        assert vocabulary.decode(encoded) == list(texts)

  def test_unknown_split(self):
    with pytest.raises(ValueError, match="Got 'dev'"):
      bulletins.read_reports('dev')

  def test_task(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import bulletin_summaries

    task = seqio.get_mixture_or_task(bulletin_summaries.BULLETINS_SUMMARY)
    dataset = task.get_dataset(
        {'inputs': 160, 'targets': 64}, 'test', shuffle=False
    )
    example = next(dataset.as_numpy_iterator())
    report, summary = bulletins.read_reports('test')[0]
    assert example['inputs_pretokenized'].decode() == report
    assert example['targets_pretokenized'].decode() == summary
    assert example['targets'][-1] == 1


class TestShippedParaphrases:

  def test_sizes(self, paraphrases):
    assert len(paraphrases) == 200
    assert len({each.topic for each in paraphrases}) == 12

  def test_no_text_is_in_another_split(self, paraphrases, pairs):
    texts = [t for each in paraphrases for t in (*each.first, *each.second)]
    assert len(set(texts)) == len(texts)
    known = {text for read in pairs.values() for pair in read for text in pair}
    assert not known & set(texts)

  def test_both_state_the_same_facts(self, paraphrases):
    for each in paraphrases:
      for first, second in zip(each.first, each.second, strict=True):
        digits = [sorted(re.findall(r'\d', text)) for text in (first, second)]
        assert digits[0] == digits[1], each
        assert first != second

  def test_vocabulary_and_lengths(self, paraphrases):
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    texts = [t for each in paraphrases for t in (*each.first, *each.second)]
    encoded = vocabulary.encode(texts)
    assert max(map(len, encoded)) + 1 <= _MAX_TOKENS
    assert vocabulary.decode(encoded) == texts


class TestVocabulary:

  @pytest.fixture
  def vocabulary(self):
    return sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )

  def test_hash(self):
    path = pathlib.Path(bulletins.VOCABULARY_FILE)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f'{found}  {path.name}\n' in (
        path.with_name('SHA256SUMS').read_text()
    )

  def test_special_pieces(self, vocabulary):
    assert vocabulary.get_piece_size() == 2048
    assert vocabulary.pad_id() == 0
    assert vocabulary.eos_id() == 1
    assert vocabulary.unk_id() == 2
    assert vocabulary.bos_id() == -1

  def test_lengths_and_round_trip(self, vocabulary, pairs):
    for read in pairs.values():
      texts = [text for pair in read for text in pair]
      encoded = vocabulary.encode(texts)
      assert max(map(len, encoded)) + 1 <= _MAX_TOKENS
      assert all(vocabulary.unk_id() not in ids for ids in encoded)
      assert vocabulary.decode(encoded) == texts


class TestGenerator:

  def test_generates_the_shipped_text(self, generated, pairs):
    for split, made in generated.items():
      assert [b.texts for b in made] == pairs[split]

  def test_generates_the_shipped_vocabulary(self, pairs):
    pytest.importorskip('babel')
    from scripts.bulletins import corpus
    from scripts.bulletins import vocabulary

    listed = pairs['train'][: corpus.NUM_LISTED]
    texts = (text for pair in listed for text in pair)
    shipped = pathlib.Path(bulletins.VOCABULARY_FILE).read_bytes()
    model = sentencepiece.SentencePieceProcessor(
        model_proto=vocabulary.train(texts)
    )
    expected = sentencepiece.SentencePieceProcessor(model_proto=shipped)
    size = expected.get_piece_size()
    # Sets, because the order of pieces with equal scores may differ.
    assert {model.id_to_piece(i) for i in range(size)} == {
        expected.id_to_piece(i) for i in range(size)
    }

  def test_test_skeletons_are_not_in_training(self, generated):
    for known in ('train', 'validation'):
      for part in ('name', 'en', 'de'):
        seen = {getattr(b.skeleton, part) for b in generated[known]}
        new = {getattr(b.skeleton, part) for b in generated['test']}
        assert not seen & new

  def test_test_frames_are_no_part_of_training_frames(self, generated):
    from scripts.bulletins import skeletons

    frames = skeletons.read_frames('frames', skeletons.Frame)
    listed = {frame.name: frame.en for frame in frames['train']}
    names = {b.skeleton.name.split(' | ')[0] for b in generated['train']}
    seen = {listed.get(name, name) for name in names}
    assert len(seen) >= 3000
    shapes = {_shape(_joined(en)) for en in seen}
    # These join statements as a listed frame does, and have other ones.
    shared = {
        'fact and that sequel', 'sequel because fact', 'because fact, sequel',
        'fact, so sequel',
    }
    for frame in frames['test']:
      held_out = _joined(frame.en)
      assert not any(held_out in _joined(en) for en in seen), frame.name
      known = any(_shape(held_out) in shape for shape in shapes)
      assert known == (frame.name in shared), frame.name

  def test_held_out_facts_are_not_in_training(self, generated):
    from scripts.bulletins import topics

    facts = [fact for topic in topics.read_topics() for fact in topic.facts]
    held_out = {topics.canonical(fact.en) for fact in facts if fact.held_out}
    assert len(held_out) == 36
    stated = {
        split: {
            topics.canonical(clause)
            for bulletin in generated[split]
            for clause in bulletin.skeleton.name.split(' | ')[1:]
        }
        for split in generated
    }
    assert stated['test'] & held_out
    assert not (stated['train'] | stated['validation']) & held_out

  def test_generates_the_shipped_paraphrases(self, generated):
    pytest.importorskip('babel')
    from scripts.bulletins import paraphrases

    made = paraphrases.paraphrases()['test']
    assert [each.texts for each in made] == [
        (each.topic, *each.first, *each.second)
        for each in bulletins.read_paraphrases()
    ]
    # Their patterns are new, like those of the test split.
    for part in ('name', 'en', 'de'):
      new = {getattr(s, part) for each in made for s in each.skeletons}
      known = {getattr(b.skeleton, part) for b in generated['train']}
      assert not new & known

  def test_generates_the_shipped_reports(self, reports):
    pytest.importorskip('babel')
    from scripts.bulletins import reports as generator

    made = generator.reports()
    for split in bulletins.SPLITS:
      assert [report.texts for report in made[split]] == reports[split]
    seen = {r.frame.report for s in ('train', 'validation') for r in made[s]}
    new = {r.frame.report for r in made['test']}
    assert len(seen) >= 16 and len(new) >= 8
    assert not seen & new

  def test_number_of_skeletons(self, generated):
    names = {s: {b.skeleton.name for b in generated[s]} for s in generated}
    frames = {s: {n.split(' | ')[0] for n in names[s]} for s in names}
    clauses = {
        s: {c for n in names[s] for c in n.split(' | ')[1:]} for s in names
    }
    assert len(names['train']) >= 40_000 and len(names['test']) >= 15
    assert len(frames['train']) >= 3000 and len(frames['test']) >= 15
    assert not frames['train'] & frames['test']
    assert len(clauses['train']) >= 600
    assert len(clauses['test'] - clauses['train']) >= 15

  def test_every_test_word_is_in_training(self, pairs):
    pytest.importorskip('num2words')
    from scripts.bulletins import forms

    for side, locale in ((0, forms.ENGLISH), (1, forms.GERMAN)):
      numbers = [forms.cardinal(n, locale) for n in range(101)]
      numbers += [forms.ordinal(n, locale) for n in range(101)]
      numbers += [number + 'n' for number in numbers]
      numbers += [number.capitalize() for number in numbers]
      known = _words(pair[side] for pair in pairs['train'])
      new = _words(pair[side] for pair in pairs['test']) - known
      assert new <= _words(numbers)


class TestForms:

  @pytest.fixture(autouse=True)
  def _forms(self):
    pytest.importorskip('babel')
    pytest.importorskip('num2words')
    from scripts.bulletins import forms

    self.forms = forms

  @pytest.mark.parametrize(
      'locale, expected',
      [
          (
              'en_US',
              [
                  '€1,234.50',
                  '1.09 US dollars',
                  '20 British pounds',
                  '1 Swiss franc',
                  '3.5 million',
                  '12,345.5',
              ],
          ),
          (
              'de',
              [
                  '1.234,50 €',
                  '1,09 US-Dollar',
                  '20 britische Pfund',
                  '1 Schweizer Franken',
                  '3,5 Millionen',
                  '12.345,5',
              ],
          ),
      ],
  )
  def test_numbers_and_money(self, locale, expected):
    forms = self.forms
    assert [
        forms.money(1234.5, 'EUR', locale),
        forms.named_money(1.09, 'USD', locale),
        forms.named_money(20, 'GBP', locale),
        forms.named_money(1, 'CHF', locale),
        forms.millions(3.5, locale),
        forms.number(12345.5, locale),
    ] == expected

  def test_dates_and_times(self):
    forms = self.forms
    day = datetime.date(2025, 3, 3)
    assert forms.date(day, 'long', 'en_US') == 'March 3, 2025'
    assert forms.date(day, 'long', 'de') == '3. März 2025'
    assert forms.date(day, forms.MONTH_AND_DAY, 'de') == '3. März'
    assert forms.date(day, 'EEEE', 'de') == 'Montag'
    assert forms.clock(14, 5, 'en_US') == '2:05 PM'
    assert forms.clock(14, 5, 'de') == '14:05'

  def test_number_words(self):
    forms = self.forms
    assert forms.cardinal(21, 'de') == 'einundzwanzig'
    assert forms.cardinal(37, 'de') == 'siebenunddreißig'
    assert forms.cardinal(16, 'de') == 'sechzehn'
    assert forms.ordinal(3, 'de') == 'dritte'
    assert forms.ordinal(7, 'de') == 'siebte'

  @pytest.mark.parametrize(
      'value, unit, text, dative',
      [
          (2, 'temperature-celsius', '2 Grad Celsius', '2 Grad Celsius'),
          (
              80,
              'speed-kilometer-per-hour',
              '80 Kilometer pro Stunde',
              '80 Kilometern pro Stunde',
          ),
          (1, 'length-meter', '1 Meter', '1 Meter'),
          (3.5, 'length-meter', '3,5 Meter', '3,5 Metern'),
          (2, 'duration-hour', '2 Stunden', '2 Stunden'),
          (41.3, 'duration-year', '41,3 Jahre', '41,3 Jahren'),
          (5, 'mass-tonne', '5 Tonnen', '5 Tonnen'),
      ],
  )
  def test_units(self, value, unit, text, dative):
    assert self.forms.measure(value, unit, 'de') == text
    assert self.forms.dative_measure(text) == dative


class TestGrammar:

  @pytest.fixture(autouse=True)
  def _grammar(self):
    pytest.importorskip('babel')
    from scripts.bulletins import grammar

    self.grammar = grammar

  @pytest.mark.parametrize(
      'word, article, definite, indefinite',
      [
          (
              'Tisch',
              'der',
              [
                  'der alte Tisch',
                  'den alten Tisch',
                  'dem alten Tisch',
                  'des alten Tischs',
              ],
              [
                  'ein alter Tisch',
                  'einen alten Tisch',
                  'einem alten Tisch',
                  'eines alten Tischs',
              ],
          ),
          (
              'Lampe',
              'die',
              [
                  'die alte Lampe',
                  'die alte Lampe',
                  'der alten Lampe',
                  'der alten Lampe',
              ],
              [
                  'eine alte Lampe',
                  'eine alte Lampe',
                  'einer alten Lampe',
                  'einer alten Lampe',
              ],
          ),
          (
              'Klavier',
              'das',
              [
                  'das alte Klavier',
                  'das alte Klavier',
                  'dem alten Klavier',
                  'des alten Klaviers',
              ],
              [
                  'ein altes Klavier',
                  'ein altes Klavier',
                  'einem alten Klavier',
                  'eines alten Klaviers',
              ],
          ),
      ],
  )
  def test_declension(self, word, article, definite, indefinite):
    grammar = self.grammar
    noun = grammar.Noun(word, article)
    cases = grammar.CASES
    for kind, expected in (('definite', definite), ('indefinite', indefinite)):
      found = [grammar.noun_phrase(noun, c, 'alt', kind) for c in cases]
      assert found == expected

  def test_contractions(self):
    assert self.grammar.contracted('in', 'dem Dom') == 'im Dom'
    assert self.grammar.contracted('zu', 'der Messe') == 'zur Messe'
    assert self.grammar.contracted('in', 'der Oper') == 'in der Oper'

  def test_dative_plural(self):
    plurals = ['Pferde', 'Löwen', 'Zebras', 'Tiger']
    assert [self.grammar.dative_plural(p) for p in plurals] == [
        'Pferden',
        'Löwen',
        'Zebras',
        'Tigern',
    ]

  @pytest.mark.parametrize(
      'fields, main, inv, sub',
      [
          (
              'der Zug / fällt / heute / aus+',
              'der Zug fällt heute aus',
              'fällt der Zug heute aus',
              'der Zug heute ausfällt',
          ),
          (
              'es / wird / heute / regnen',
              'es wird heute regnen',
              'wird es heute regnen',
              'es heute regnen wird',
          ),
          (
              'das Signal / ist / defekt /',
              'das Signal ist defekt',
              'ist das Signal defekt',
              'das Signal defekt ist',
          ),
      ],
  )
  def test_word_order(self, fields, main, inv, sub):
    orders = [self.grammar.ordered(fields, o) for o in ('main', 'inv', 'sub')]
    assert orders == [main, inv, sub]

  def test_unknown_order(self):
    with pytest.raises(ValueError, match="Got 'last'"):
      self.grammar.ordered('a / b / c / d', 'last')


def _one_of(*pairs):
  from scripts.bulletins import phrases
  from scripts.bulletins import topics

  return topics.one_of([phrases.phrase(*pair) for pair in pairs])


def _fill(skeleton, fillers, seed) -> tuple[str, str]:
  from scripts.bulletins import skeletons

  drawn = skeletons.draw(skeleton.en, fillers, random.Random(seed))
  return (
      skeletons.fill(skeleton.en, drawn, 'en'),
      skeletons.fill(skeleton.de, drawn, 'de'),
  )


class TestSkeletons:

  @pytest.fixture(autouse=True)
  def _modules(self):
    pytest.importorskip('babel')
    pytest.importorskip('num2words')

  def test_fills_both_sides_with_the_same_facts(self):
    from scripts.bulletins import skeletons
    from scripts.bulletins import topics

    clause = topics.Clause(
        'the train to {city} will be canceled @',
        'der Zug nach {city} / fällt / @ / aus+',
        'future',
    )
    frame = skeletons.Frame('f', '^{WHEN}, {FACT}.', '^{WHEN} {FACT.inv}.')
    skeleton = skeletons.compose(frame, {'FACT': clause}, tell_when=False)
    fillers = {
        'city': _one_of(('Cologne', 'Köln')),
        'future': _one_of(('on Monday, March 3,', 'am Montag, dem 3. März,')),
    }
    assert _fill(skeleton, fillers, 0) == (
        'On Monday, March 3, the train to Cologne will be canceled.',
        'Am Montag, dem 3. März, fällt der Zug nach Köln aus.',
    )

  def test_other_facts_have_other_phrases(self):
    from scripts.bulletins import skeletons
    from scripts.bulletins import topics

    clause = topics.Clause('it rains in {city}', 'es / regnet / in {city} /')
    frame = skeletons.Frame(
        'f', '^{FACT}, but {OTHER}.', '^{FACT.main}, aber {OTHER.main}.'
    )
    skeleton = skeletons.compose(
        frame, {'FACT': clause, 'OTHER': clause}, tell_when=False
    )
    fillers = {'city': _one_of(('Rome', 'Rom'), ('Milan', 'Mailand'))}
    for seed in range(10):
      en, de = _fill(skeleton, fillers, seed)
      assert {en, de} in (
          {
              'It rains in Rome, but it rains in Milan.',
              'Es regnet in Rom, aber es regnet in Mailand.',
          },
          {
              'It rains in Milan, but it rains in Rome.',
              'Es regnet in Mailand, aber es regnet in Rom.',
          },
      )

  def test_tidy(self):
    from scripts.bulletins import skeletons

    tidy = skeletons.tidy
    assert tidy('^es regnet am 3. März,  .') == 'Es regnet am 3. März.'
    assert tidy('^on March 3, , it') == 'On March 3, it'


class TestComposer:

  @pytest.fixture(autouse=True)
  def _composed(self):
    pytest.importorskip('babel')
    from scripts.bulletins import composed
    from scripts.bulletins import skeletons

    self.composed = composed
    self.frames = skeletons.read_frames('frames', skeletons.Frame)

  def _frames(self, openings, endings, test=(), train=()):
    """Returns the frames composed of pieces, as English and German texts."""
    from scripts.bulletins import skeletons

    frames = {
        split: [skeletons.Frame('', en, '') for en in listed]
        for split, listed in (('test', test), ('train', train))
    }
    composer = self.composed.Composer(
        {'openings': openings, 'endings': endings}, frames
    )
    rng = random.Random(0)
    return {composer.draw(rng) for _ in range(500)}

  def test_statements_are_put_in_german_order(self):
    found = self._frames(
        [
            {
                'en': 'because {X},', 'de': 'weil {X.sub},', 'order': 'inv',
                'core': 'SEQUEL', 'x': 'REASON',
            }
        ],
        [{'en': ', but {X}', 'de': ', aber {X.main}', 'x': 'FACT'}],
    )
    assert {(f.en, f.de) for f in found} == {
        (
            '^because {REASON}, {SEQUEL} , but {FACT}.',
            '^weil {REASON.sub}, {SEQUEL.inv} , aber {FACT.main}.',
        )
    }

  def test_pieces_fit_each_other(self):
    pieces = (
        [
            {'en': '', 'de': '', 'order': 'main'},
            {'en': '{WHEN},', 'de': '{WHEN}', 'order': 'inv', 'core': 'FACT'},
            {'en': 'so', 'de': 'so', 'order': 'inv', 'later': True},
            {
                'en': '{source.says} that', 'de': '{source.says}, dass',
                'order': 'sub', 'about_future': True,
            },
        ],
        [
            {'en': '', 'de': ''},
            {'en': 'and that {X}', 'de': 'und dass {X.sub}', 'after': 'sub'},
        ],
    )
    found = self._frames(*pieces)
    assert len(found) > 50
    for frame in found:
      first, *second = frame.en.split('. ')
      assert first.startswith(('^ {', '^{WHEN}, {FACT}', '^{source.says} that'))
      assert len(second) <= 1
      # No statement is repeated, and no opening.
      statements = re.findall(r'\{([A-Z]+)\}', frame.en)
      assert len(set(statements)) == len(statements)
      assert frame.en.count('{source') <= 1
      assert ('and that' not in frame.en) or '{source.says}' in frame.en
      assert frame.about_future == ('{source.says}' in frame.en)
      if {'OTHER', 'WHEN'} & set(statements):
        assert 'FACT' in statements

  def test_second_source_is_another_one(self):
    found = self._frames(
        [{'en': '{source} says:', 'de': '{source} sagt:', 'order': 'main'}],
        [{'en': ', {source}: {X}', 'de': ', {source}: {X.main}'}],
    )
    assert found
    for frame in found:
      assert re.findall(r'\{source\d*', frame.en) == ['{source', '{source2']
      assert re.findall(r'\{source\d*', frame.de) == ['{source', '{source2']

  @pytest.mark.parametrize(
      'train, allowed',
      [
          # The shape of the test frame is new: it occurs with no statements.
          ((), set()),
          # A listed frame has it: only its statements are held out.
          (
              ('^{REASON} because {SEQUEL}.',),
              {
                  f'^ {{{a}}} because {{{b}}}.'
                  for a in ('FACT', 'REASON', 'SEQUEL')
                  for b in ('FACT', 'REASON', 'SEQUEL')
                  if a != b and (a, b) != ('SEQUEL', 'FACT')
              },
          ),
      ],
  )
  def test_test_frames_are_not_composed(self, train, allowed):
    roles = 'FACT REASON SEQUEL'
    found = self._frames(
        [{'en': '', 'de': '', 'order': 'main', 'core': roles}],
        [
            {'en': 'because {X}', 'de': ', weil {X.sub}', 'x': roles},
            {'en': 'while {X}', 'de': ', während {X.sub}', 'x': roles},
        ],
        test=('^{SEQUEL} because {FACT}.',),
        train=train,
    )
    single = {f.en for f in found if '. ' not in f.en}
    assert {en for en in single if 'because' in en} == allowed
    assert len({en for en in single if 'while' in en}) == 6

  def test_composed_frames_differ(self):
    composer = self.composed.Composer.of_data(self.frames)
    rng = random.Random(0)
    assert len({composer.draw(rng).en for _ in range(1000)}) > 500


class TestTopics:

  @pytest.fixture(autouse=True)
  def _topics(self):
    pytest.importorskip('babel')
    from scripts.bulletins import topics

    self.topics = topics

  def test_alternatives_of_one_name_are_chosen_together(self):
    patterns = {'<v=a|b> <w=x|y> {city2}': '<w=X|Y> <v=A|B> {city2.dat}'}
    assert self.topics.alternatives(patterns) == [
        ('a x {city2}', 'X A {city2.dat}'),
        ('a y {city2}', 'Y A {city2.dat}'),
        ('b x {city2}', 'X B {city2.dat}'),
        ('b y {city2}', 'Y B {city2.dat}'),
    ]

  def test_training_topics(self):
    known, more = self.topics.read_topics(), self.topics.read_training_topics()
    for topic, training in zip(known, more, strict=True):
      held_out = {fact.en for fact in topic.facts if fact.held_out}
      facts = {fact.en for fact in training.facts}
      assert {fact.en for fact in topic.facts} - facts == held_out
      assert len(facts) >= 40
      clauses = [*training.facts, *training.reasons, *training.sequels]
      known = {self.topics.canonical(clause.en) for clause in clauses}
      assert len(known) == len(clauses)
      for clause in clauses:
        assert clause.de.count('/') == 3, clause
        marks = int(bool(clause.tense))
        assert clause.en.count('@') == clause.de.count('@') == marks, clause
        slots = [
            sorted(re.findall(r'\{([a-z_]+\d*)', text))
            for text in (clause.en, clause.de)
        ]
        assert slots[0] == slots[1], clause
      # Clauses of a bulletin are about different things.
      for kind, suffix in (('reasons', '3'), ('sequels', '4')):
        for clause in set(getattr(training, kind)) - set(getattr(topic, kind)):
          slots = re.findall(r'\{([a-z_]+\d*)', clause.en)
          assert all(slot.endswith(suffix) for slot in slots), clause


class TestTask:

  def test_examples(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import ende

    task = seqio.get_mixture_or_task(ende.BULLETINS)
    dataset = task.get_dataset(
        {'inputs': _MAX_TOKENS, 'targets': _MAX_TOKENS}, 'test', shuffle=False
    )
    examples = list(dataset.as_numpy_iterator())
    pairs = bulletins.read_pairs('test')
    assert [e['example_id'] for e in examples] == list(range(len(pairs)))
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    for example, pair in zip(examples, pairs, strict=True):
      for side, text in zip(('inputs', 'targets'), pair, strict=True):
        assert example[f'{side}_pretokenized'].decode() == text
        assert example[side].tolist() == [*vocabulary.encode(text), 1]

  def test_metrics_use_auxiliary_values(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import ende

    task = seqio.get_mixture_or_task(ende.BULLETINS)
    assert not task.predict_metric_fns
    counts = {'tokens': [6], 'target_calls': [2]}
    found = {}
    for metric in task.predict_with_aux_metric_fns:
      found |= metric(['ein Zug nach Köln'], ['ein Zug nach Köln'], counts)
    assert found == {
        'bleu': pytest.approx(100),
        'tokens_per_target_call': 3,
    }
