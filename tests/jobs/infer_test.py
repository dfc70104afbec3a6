# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job on a tiny pair, and on a decoder that repeats its inputs."""

import copy
import dataclasses
import io
import json
import pathlib
import shutil
import tracemalloc
import types

from etils import epath
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.networks import sharding
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.rules import coupled
from speculative_t5x.rules import lenience
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import tfds_tasks
from tests import memory_files
from tests import repeating_decoder
from tests import workloads

pytestmark = pytest.mark.long

_LOOKUP = {'drafter': lookup_drafting.Lookup(), 'tokens': True}
_TEXTS = [source for source, _ in bulletins.read_pairs('validation')[:7]]
_VOCABULARY = pathlib.Path(bulletins.VOCABULARY_FILE)
_SHORT = [' '.join(text.split()[:6]) for text in _TEXTS]  # none is truncated


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
  return workloads.save_pair(tmp_path_factory.mktemp('pair'))


def _arguments(paths, **changes):
  arguments = {
      'mixture_or_task_name': None,
      'checkpoint_path': paths.target,
      'drafter': workloads.drafter(paths.draft, workloads.CONFIG),
      'vocabulary_file': bulletins.VOCABULARY_FILE,
      'gamma': 3,
      'batch_size': 2,
      'chunk_batches': 1,
      'seed': 5,
  }
  return {**arguments, **changes}


def _setup(paths, **changes):
  return workloads.infer_setup(**_arguments(paths, **changes))


_load = workload_lib.Workload.find_decoder


@pytest.fixture(scope='module')
def decoders():
  """Return decoders of earlier jobs, by what they are compiled for."""
  return {}


@pytest.fixture
def run(paths, decoders, tmp_path, monkeypatch):
  """Return a function that runs the job in `out` and returns its rows."""

  def load(workload, target, drafter, **options):
    is_lossless, is_masked = workload.rule.is_lossless, workload.mask_padded_ids
    key = type(drafter), options['num_decodes'], is_lossless, is_masked
    key = *key, vocabularies.digest(target.vocabulary)
    if key not in decoders:
      decoder, _ = _load(workload, target, drafter, **options)
      # Or each job would compile.
      decoders[key] = workload_lib.loaded(decoder)
    return decoders[key], options['batch_size']

  monkeypatch.setattr(workload_lib.Workload, 'find_decoder', load)

  def run(lines=None, *, output_dir=tmp_path / 'out', **changes):
    if lines is not None:
      (tmp_path / 'in.txt').write_text(''.join(f'{x}\n' for x in lines))
      changes.setdefault('inputs', str(tmp_path / 'in.txt'))
    infer.infer(_setup(paths, output_dir=output_dir, **changes))
    return workloads.read(output_dir / 'predictions.jsonl')

  return run


def _text(tokens):
  """Return the text of tokens with an end of sequence or without."""
  ids = [token for token in tokens if token != 1]
  return vocabularies.load(bulletins.VOCABULARY_FILE).decode(ids)


def _record(folder):
  (record,) = workloads.read(folder / 'results.jsonl')
  return record


class TestPredictions:

  def test_beams(self, run, tmp_path):
    search = beam_search.BeamSearch(beams=2)
    options = {'search': search, 'scores': True, 'tokens': True}
    plain = run(_TEXTS, drafter=None, output_dir=tmp_path / 'plain', **options)
    rows = run(_TEXTS, **options)
    for one, other in zip(rows, plain, strict=True):
      assert one['prediction'] == other['prediction']
      assert len({*one['prediction']}) == 2
      assert one['score'] == sorted(one['score'])
      np.testing.assert_allclose(one['score'], other['score'], atol=1e-4)
      best, _ = map(_text, one['tokens'])  # by number
      assert best == one['prediction'][-1]
    record = _record(tmp_path / 'out')
    assert record['beams'] == 2 and record['brevity_penalty'] == 0.6
    steps = record['speculative']['loop_steps']
    assert steps < _record(tmp_path / 'plain')['baseline']['loop_steps']
    with pytest.raises(ValueError, match='beams'):  # nothing is mixed
      run(_TEXTS, search=beam_search.BeamSearch(beams=3))

  def test_speculative_and_plain_agree_at_temperature_0(self, run, tmp_path):
    plain = run(_TEXTS, drafter=None, output_dir=tmp_path / 'plain')
    rows = run(_TEXTS)
    assert rows == plain
    assert [tuple(row) for row in rows] == 7 * [
        ('example_id', 'input', 'prediction')
    ]
    assert [row['example_id'] for row in rows] == list(range(7))
    assert [row['input'] for row in rows] == _TEXTS
    record = _record(tmp_path / 'out')
    assert tuple(record) == run_record.KEYS
    assert record['job'] == 'infer' and record['num_examples'] == 7
    assert record['task'] == str(tmp_path / 'in.txt')
    assert record['baseline'] is None and record['speedup'] is None
    assert record['tokens_per_target_call'] > 1
    assert record['speculative']['walltime_s'] > 0
    record = _record(tmp_path / 'plain')
    assert record['drafter'] is record['gamma'] is record['speculative'] is None
    assert record['baseline']['tokens'] == record['baseline']['target_calls']

  def test_samples_depend_on_the_line_alone(self, run, tmp_path):
    """Neither on the batch and the chunk, nor on the file."""
    rows = run(_TEXTS, temperature=1.0)
    for i, text in enumerate(_TEXTS):
      (tmp_path / f'{i}.txt').write_text(text)  # without a newline
    assert rows == run(
        None,
        inputs=[str(tmp_path / f'{i}.txt') for i in range(7)],
        temperature=1.0,
        batch_size=3,
        chunk_batches=2,
        output_dir=tmp_path / 'other',
    )

  def test_scores_statistics_and_tokens(self, run, tmp_path):
    columns = {'scores': True, 'statistics': True, 'tokens': True}
    rows = run(_TEXTS[:3], temperature=1.0, num_decodes=2, **columns)
    record = _record(tmp_path / 'out')['speculative']
    for row in rows:
      assert len(row['prediction']) == len(row['score']) == 2
      assert row['score'] == sorted(row['score'])
      assert sum(map(len, row['tokens'])) == row['statistics']['tokens']
      texts = map(_text, row['tokens'])
      assert sorted(texts) == sorted(row['prediction'])
      assert row['input'].startswith(_text(row['input_tokens']))
    counts = [row['statistics'] for row in rows]
    for key in (
        'tokens', 'target_calls', 'drafted', 'drafted_computed', 'tested',
        'accepted',
    ):  # fmt: skip
      assert record[key] == sum(each[key] for each in counts) > 0
    for key in ('tested', 'accepted'):
      per_position = [each[f'{key}_per_position'] for each in counts]
      assert record[key] == np.sum(per_position)

  def test_inputs_of_a_task_are_those_of_the_eval_job(
      self, run, paths, tmp_path
  ):
    task = {'mixture_or_task_name': ende.BULLETINS, 'temperature': 1.0}
    rows = run(None, num_examples=5, **task)
    arguments = _arguments(paths, output_dir=str(tmp_path / 'eval'), **task)
    del arguments['vocabulary_file']
    evaluation.evaluate(workloads.eval_setup(**arguments, num_examples=5))
    expected = workloads.read(tmp_path / 'eval' / 'predictions.jsonl')
    assert [(r['example_id'], r['input'], r['prediction']) for r in rows] == [
        (r['example_id'], r['input'], r['speculative']) for r in expected
    ]

  def test_truncated_and_unknown_inputs_are_counted(
      self, run, tmp_path, capsys
  ):
    long = 'The train is late. ' * 1000
    rows = run([long, 'The train <2yue> is late.', 'It rains.', 'The 漢.'])
    assert rows[0]['input'] == long and rows[0]['prediction']
    record = _record(tmp_path / 'out')
    assert (record['truncated_inputs'], record['unknown_inputs']) == (1, 2)
    said = capsys.readouterr().out
    assert '2 of 4 inputs have text' in said


class TestHints:

  @pytest.fixture
  def write(self, tmp_path):
    """Return a function that writes inputs, each with its own fields."""

    def write(*fields):
      path = tmp_path / 'in.jsonl'
      rows = [{'inputs': t, **f} for t, f in zip(_TEXTS, fields)]
      path.write_text(''.join(f'{json.dumps(row)}\n' for row in rows))
      return str(path)

    return write

  def test_right_hints_save_target_calls(self, run, write, tmp_path):
    plain = run(_TEXTS, drafter=None, output_dir=tmp_path / 'plain')
    texts = [row['prediction'] for row in plain]
    path = write({'hints': texts[0]}, {}, {'hints': None}, {'hints': texts[3:]})
    rows = run(None, inputs=path, statistics=True, **_LOOKUP)
    assert [row['prediction'] for row in rows] == texts[:4]
    calls = [row['statistics']['target_calls'] for row in rows]
    assert max(calls[0], calls[3]) < min(calls[1], calls[2])
    assert [len(row.get('hint_tokens', [])) for row in rows] == [1, 0, 0, 4]

  def test_are_decoded_again_when_they_change(self, run, write, capsys):
    for text in ('one', 'one', 'two'):
      path = write({'hints': text}, {'hints': [text, 'three']})
      rows = run(None, inputs=path, **_LOOKUP)
      vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
      assert rows[0]['hint_tokens'] == [[*vocabulary.encode(text), 1]]
    assert capsys.readouterr().err.count('has other inputs') == 1

  def test_that_are_not_texts(self, run, write):
    for wrong in (7, ['a', None]):
      path = write({}, {'hints': wrong})
      with pytest.raises(ValueError, match="line 2: the field 'hints'"):
        run(None, inputs=path)


class TestJsonl:

  def test_fields(self, run, tmp_path):
    """One is decoded; its prediction has the others, changed ones too."""
    path = tmp_path / 'in.jsonl'
    expected = run(_TEXTS[:3], output_dir=tmp_path / 'text')
    for target in ('T\u00fcr', 'Tor'):
      others = [
          {'id': f'x{i}', 'target': target, 'hints': None, 'a': {'b': [i, 0.5]}}
          for i in range(3)
      ]
      objects = [{'source': x, **y} for x, y in zip(_TEXTS, others)]
      path.write_text('\n'.join(map(json.dumps, objects)))
      rows = run(None, inputs=str(path), input_field='source')
      assert rows == [
          row | each for row, each in zip(expected, others, strict=True)
      ]

  def test_lines_without_text(self, run, tmp_path):
    texts = [_TEXTS[0], '', _TEXTS[1], ' ', '\t', _TEXTS[2]]
    path = tmp_path / 'in.jsonl'
    path.write_text(
        ''.join(f'{json.dumps({"inputs": x}) if x else x}\n' for x in texts)
    )
    options = {
        'temperature': 1.0, 'scores': True, 'tokens': True, 'statistics': True
    }  # fmt: skip
    skipped, passed = (
        run(
            None,
            inputs=str(path),
            on_empty=way,
            output_dir=tmp_path / way,
            **options,
        )
        for way in ('skip', 'pass')
    )
    expected = run([x if x.strip() else 'rain' for x in texts], **options)
    assert skipped == [expected[i] for i in (0, 2, 5)]
    for row, want, text in zip(passed, expected, texts, strict=True):
      if text.strip():
        assert row == want
      else:
        assert row['prediction'] == '' and row['score'] == 0
        assert row['input'] == text and row['tokens'] == []
        assert row['statistics'].keys() == want['statistics'].keys()
    none = {'inputs': str(path), 'drafter': None, 'statistics': True}
    plain = run(None, on_empty='pass', output_dir=tmp_path / 'plain', **none)
    assert len({tuple(row['statistics']) for row in plain}) == 1
    path.write_text('\n\n')
    with pytest.raises(ValueError, match='No line of the input has text'):
      run(None, inputs=str(path), on_empty='skip', output_dir=tmp_path / 'none')

  def test_standard_input_to_standard_output(
      self, run, paths, monkeypatch, capsys
  ):
    texts = [*_TEXTS[:2], 'The <2yue> train is late.']
    expected = run(texts)
    text = ''.join(f'{json.dumps({"inputs": text})}\n' for text in texts)
    stdin = types.SimpleNamespace(buffer=io.BytesIO(text.encode()))
    monkeypatch.setattr('sys.stdin', stdin)
    capsys.readouterr()
    infer.infer(_setup(paths, inputs='-', input_format='jsonl'))
    printed = capsys.readouterr()
    assert [json.loads(row) for row in printed.out.splitlines()] == expected
    assert '1 of 3 inputs have text' in printed.err
    assert printed.err.splitlines()[-1].startswith('3 inputs, ')


def _fail_at(monkeypatch, number, error):
  """Make the writing of a chunk fail; return the numbers of those written."""
  put, numbers = chunks.Chunks.put, []

  def fail(self, first, digest, content):
    numbers.append(first)
    if len(numbers) == number + 1:
      raise error
    return put(self, first, digest, content)

  monkeypatch.setattr(chunks.Chunks, 'put', fail)
  return numbers


class TestBatch:
  """A batch of OpenAI's; `tests/serving/batch_lines_test.py` has its lines."""

  @pytest.fixture
  def decode(self, paths, decoders, run, tmp_path):
    """Return a function that runs the job, and returns its files' lines."""

    def decode(bodies, name='out', **changes):
      lines = [
          {'custom_id': f'line {i}', 'method': 'POST',
           'url': '/v1/completions', 'body': {'model': 'target', **body}}
          for i, body in enumerate(bodies)
      ]  # fmt: skip
      path = tmp_path / 'in.jsonl'
      path.write_text(''.join(f'{json.dumps(line)}\n' for line in lines))
      arguments = {'inputs': str(path), 'input_format': 'batch', **changes}
      folder = tmp_path / name
      infer.infer(_setup(paths, output_dir=str(folder), **arguments))
      assert not (folder / 'predictions.jsonl').exists()
      return [
          (folder / name).read_text().splitlines()
          for name in ('output.jsonl', 'errors.jsonl')
      ]

    return decode

  def test_texts_are_those_of_lines_of_text(self, run, decode, tmp_path):
    bodies = [
        {'prompt': x, 'max_tokens': 16, 'temperature': 0} for x in _SHORT
    ]
    answers, errors = decode([*bodies, {'prompt': 'a', 'max_tokens': 17}])
    rows = run(_SHORT, output_dir=tmp_path / 'texts')
    answers = list(map(json.loads, answers))
    texts = [x['response']['body']['choices'][0]['text'] for x in answers]
    assert texts == [row['prediction'] for row in rows]
    assert [x['custom_id'] for x in answers] == [f'line {i}' for i in range(7)]
    (error,) = map(json.loads, errors)
    assert error['response']['status_code'] == 400
    assert error['response']['body']['error']['param'] == 'max_tokens'
    record = _record(tmp_path / 'out')
    assert record['num_examples'] == 8 and record['temperature'] is None
    metrics = [x['response']['body']['metrics'] for x in answers]
    accepted = [
        x['speculative_decoding']['num_accepted_draft_tokens'] for x in metrics
    ]
    assert record['speculative']['accepted'] == sum(accepted)

  def test_resumes(self, decode, monkeypatch, capsys):
    bodies = [
        {'prompt': x, 'temperature': i % 2, **({'n': 0} if i == 3 else {})}
        for i, x in enumerate(_SHORT)
    ]
    expected = decode(bodies, 'whole')
    assert list(map(len, expected)) == [6, 1]
    firsts = _fail_at(monkeypatch, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
      decode(bodies)
    for _ in range(2):
      assert decode(bodies) == expected
      assert firsts == [0, 1, 2, 2, 3]
    said = capsys.readouterr().out
    assert said.count('1 of 7 requests have errors.') == 3
    decode(bodies[:6])
    assert firsts == [0, 1, 2, 2, 3]

  def test_replaced_vocabulary(self, decode, tmp_path):
    """What it makes of ids has changed, and its path has not."""
    file, data = tmp_path / 'spiece.model', _VOCABULARY.read_bytes()
    bodies = [{'prompt': x, 'temperature': 0} for x in _SHORT]
    found = []
    for text in (data, data.replace(b'\n\x06\xe2\x96\x81der', b'\n\x06xxxder')):
      file.write_bytes(text)
      found.append(decode(bodies, vocabulary_file=str(file)))
    assert found[0] != found[1]
    assert found[1] == decode(bodies, 'new', vocabulary_file=str(file))

  @pytest.mark.parametrize(
      ('changes', 'name'),
      [
          ({'temperature': 1.0}, 'TEMPERATURE'),
          ({'num_decodes': 2}, 'NUM_DECODES'),
          ({'scores': True}, 'SCORES'),
          ({'seed': -1}, 'seed'),
          ({'cluster': object()}, 'CLUSTER'),
      ],
  )
  def test_settings_that_requests_have(self, decode, changes, name):
    with pytest.raises(ValueError, match=name):
      decode([{'prompt': 'a'}], **changes)

  def test_without_a_batch(self, run, tmp_path):
    (tmp_path / 'in.jsonl').write_text('\n')
    with pytest.raises(ValueError, match='no request'):
      run(None, inputs=str(tmp_path / 'in.jsonl'), input_format='batch')
    (tmp_path / 'in.jsonl').write_text('{"custom_id": "a", "body": {}}\n')
    with pytest.raises(ValueError, match="input_format to 'batch'"):
      run(None, inputs=str(tmp_path / 'in.jsonl'))


class TestResume:

  def test_finished_chunks_are_not_decoded_again(
      self, run, tmp_path, monkeypatch
  ):
    options = {'temperature': 1.0, 'statistics': True}
    expected = run(_TEXTS, output_dir=tmp_path / 'whole', **options)
    firsts = _fail_at(monkeypatch, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
      run(_TEXTS, **options)
    assert not (tmp_path / 'out' / 'results.jsonl').exists()
    for _ in range(2):
      assert run(_TEXTS, **options) == expected
      assert firsts == [0, 1, 2, 2, 3]
    records = [_record(tmp_path / name) for name in ('whole', 'out')]
    assert len({x['speculative']['target_calls'] for x in records}) == 1

  def test_changed_lines_are_decoded_again(self, run, tmp_path, monkeypatch):
    run(_TEXTS)
    firsts = _fail_at(monkeypatch, 9, None)
    changed = [*_TEXTS[:4], 'Something else.', *_TEXTS[5:], 'One more.']
    rows = run(changed)
    assert [row['input'] for row in rows] == changed
    assert firsts == [2, 3]
    assert rows == run(changed, output_dir=tmp_path / 'new')

  def test_on_another_machine(self, run, decoders, monkeypatch):
    """Of another processor, or of several that hold the target otherwise."""
    expected = run(_TEXTS)
    firsts = _fail_at(monkeypatch, 9, None)
    host = run_record.Host('another processor', 3)
    monkeypatch.setattr(provenance, 'describe_host', lambda: host)
    monkeypatch.setattr(sharding, 'describe', lambda mesh: {'data': 2})
    config = dataclasses.replace(workloads.CONFIG, min_block=4)
    for decoder in decoders.values():
      target = copy.copy(decoder.target)
      vars(target).update(config=config)
      monkeypatch.setattr(decoder, 'target', target)
    assert run(_TEXTS) == expected and not firsts

  def test_another_configuration_is_refused(self, run, tmp_path):
    expected = run(_TEXTS[:2])
    for changes, names in (
        ({'temperature': 1.0}, r'drafter, temperature \(0.0\)'),
        ({'scores': True, 'seed': 6}, r'scores \(False\), seed \(5\)'),
    ):
      with pytest.raises(ValueError, match=f'results with another {names}. Gi'):
        run(_TEXTS[:2], **changes)
    assert workloads.read(tmp_path / 'out' / 'predictions.jsonl') == expected


@pytest.fixture
def copied(paths, tmp_path):
  """Return the models at another path."""
  root = pathlib.Path(paths.target).parent
  folder = pathlib.Path(shutil.copytree(root, tmp_path / 'copy'))
  return workloads.Pair(str(folder / 'target'), str(folder / 'draft'))


def test_finished_folder_reads_no_weights(
    paths, copied, tmp_path, monkeypatch, capsys
):
  """Models, vocabulary and inputs may lie at other paths meanwhile."""
  vocabulary = shutil.copy(_VOCABULARY, tmp_path / 'copy/other.model')
  for name in ('in.txt', 'other.txt'):
    (tmp_path / name).write_text('\n'.join(_SHORT))
  arguments = dict(inputs=str(tmp_path / 'in.txt'), output_dir=tmp_path / 'out')
  infer.infer(_setup(paths, **arguments))
  expected = (tmp_path / 'out/predictions.jsonl').read_bytes()
  capsys.readouterr()
  monkeypatch.setattr(models_lib.Found, 'load', None)
  arguments |= {'inputs': str(tmp_path / 'other.txt')}
  infer.infer(_setup(copied, vocabulary_file=vocabulary, **arguments))
  assert (tmp_path / 'out/predictions.jsonl').read_bytes() == expected
  said = capsys.readouterr().err
  assert 'finished chunks are taken' in said and 'loading' not in said
  (tmp_path / 'other.txt').write_text('Something else.')
  with pytest.raises(ValueError, match='other inputs'):
    infer.infer(_setup(paths, **arguments))


def test_fingerprint(paths, copied, tmp_path):
  """It has what samples depend on by its contents."""

  def of(pair=paths, file=_VOCABULARY, begin_ids=(), **changes):
    setup = _setup(pair, inputs='-', **changes)
    vocabulary = vocabularies.load(file)
    vocabulary.begin_ids = begin_ids
    workload = setup.workload
    decoder, _ = _load(
        workload, workload.find_target(vocabulary), setup.drafter,
        gamma=3, num_decodes=1, batch_size=1,
    )  # fmt: skip
    texts = workload_lib.text_decoder(decoder)
    return workload.fingerprint(texts)

  file = tmp_path / 'other.model'
  file.write_bytes(_VOCABULARY.read_bytes())
  found = [of()]
  assert found == [of(copied, file)]
  file.write_bytes(_VOCABULARY.read_bytes().replace(b'a', b'b', 1))
  found += [
      of(file=file),
      of(begin_ids=(5,)),
      of(workloads.Pair(paths.draft, paths.draft)),
      of(workloads.Pair(paths.target, paths.target)),
      of(rule=lenience.make_rule(1e-3)),
  ]
  assert len({*found}) == len(found)
  # A coupled rule's samples do not depend on drafts.
  other = workloads.Pair(paths.target, paths.target)
  assert of(rule=coupled.Coupled()) == of(other, rule=coupled.Coupled())


def test_memory_folder(run, paths, tmp_path, monkeypatch):
  """Both jobs in a folder of objects, interrupted and resumed."""
  task = {'mixture_or_task_name': ende.BULLETINS, 'num_examples': 4}
  infer_arguments, eval_arguments = (
      _arguments(paths, output_dir=f'memory://bucket/{name}', **task)
      for name in ('infer', 'eval')
  )
  del eval_arguments['vocabulary_file']
  with memory_files.enabled():
    for job, setup in (
        (infer.infer, workloads.infer_setup(**infer_arguments)),
        (evaluation.evaluate, workloads.eval_setup(**eval_arguments)),
    ):
      with monkeypatch.context() as patch:
        _fail_at(patch, 1, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
          job(setup)
      job(setup)
      folder = epath.Path(setup.output_dir)
      assert len(workloads.read(folder / 'predictions.jsonl')) == 4
      assert (folder / 'results.jsonl').exists()


def test_data_set_that_is_missing_fails_before_weights_are_read(
    paths, tmp_path, monkeypatch
):
  loaded = []
  monkeypatch.setattr(workload_lib.Workload, 'find_decoder', loaded.append)
  vocabulary = bulletins.VOCABULARY_FILE
  files = {'validation': tmp_path / 'absent.jsonl'}
  name = tfds_tasks.register('xsum', None, vocabulary, files)
  setup = _setup(paths, mixture_or_task_name=name)
  with pytest.raises(FileNotFoundError, match='absent.jsonl'):
    infer.infer(setup)
  assert not loaded


def _peak_bytes(function):
  tracemalloc.start()
  try:
    function()
    return tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()


@pytest.mark.parametrize(
    'num_lines',
    [12_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)],
)
def test_memory_does_not_grow_with_the_lines(
    paths, tmp_path, monkeypatch, num_lines
):
  """All lines come out, in their order."""
  repeating_decoder.install(monkeypatch.setattr)
  texts = [f'the train {number}' for number in range(100)]
  with open(tmp_path / 'in.txt', 'w') as file:
    for number in range(num_lines):
      file.write(f'{texts[number % 100]}\n')
  setup = _setup(
      paths,
      inputs=str(tmp_path / 'in.txt'),
      drafter=None,
      batch_size=250,
      chunk_batches=4,
      output_dir=str(tmp_path / 'out'),
  )
  begin = dataclasses.replace(setup, num_examples=4000)
  few = _peak_bytes(lambda: infer.infer(begin))
  all_lines = _peak_bytes(lambda: infer.infer(setup))
  # A line has more than a hundred bytes; a chunk's counts some per line.
  assert all_lines - few < 2**19 + 8 * num_lines
  with open(tmp_path / 'out' / 'predictions.jsonl') as file:
    for number, line in enumerate(file):
      row = json.loads(line)
      assert row['example_id'] == number
      assert row['input'] == row['prediction'] == texts[number % 100]
  assert number == num_lines - 1


def test_vocabulary_of_the_checkpoint_folder(paths, tmp_path):
  workload = dataclasses.replace(
      _setup(paths, inputs='-').workload, checkpoint_path=str(tmp_path)
  )
  for name in ('config.json', 'model.safetensors'):
    (tmp_path / name).write_text('')
  with pytest.raises(ValueError, match='vocabulary'):
    workload.vocabulary(None)
  model = open(bulletins.VOCABULARY_FILE, 'rb').read()
  (tmp_path / 'spiece.model').write_bytes(model)
  found = workload.vocabulary(None)
  assert isinstance(found, vocabularies.SentencePieceVocabulary)
  assert jnp.int32(found.eos_id) == 1
