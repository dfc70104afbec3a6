# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job: lines of text in, predictions out, in constant memory."""

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import json
import os
import sys
from typing import Any

from etils import epath

from speculative_t5x.decoder import answers as answers_lib
from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_lines
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import tallies
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import text_files

# Counts of the inputs of a chunk, under their names in a record.
_COUNTED = 'num_examples', 'truncated_inputs', 'unknown_inputs'
# Decodes a chunk, or finds it: see `chunks.Chunks.take`.
_Take = Callable[[int, Any, Callable[[], chunks_lib.Content]], Any]


@dataclasses.dataclass(frozen=True)
class _Columns:
  """What a line of `predictions.jsonl` holds beside id, input and prediction.

  Attributes:
    scores: log-probabilities.
    statistics: counts of the input, see `counts.per_example`.
    tokens: token ids of the input and of the decodes.
  """

  scores: bool = False
  statistics: bool = False
  tokens: bool = False


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all chunks of a job share."""

  workload: workload_lib.Workload
  engine: engine_lib.Engine
  vocabulary: vocabularies.Vocabulary
  requests: requests_lib.Requests
  chunk_batches: int
  columns: _Columns
  is_speculative: bool
  shown: progress.Progress

  @property
  def decoder(self) -> token_decoder.TokenDecoder:
    return self.engine.decoder


def infer(
    *,
    workload: workload_lib.Workload,
    drafter: source.Source | None = None,
    inputs: str | Sequence[str] | None = None,
    input_field: str = 'inputs',
    input_format: str | None = None,
    hints_field: str | None = text_files.HINTS,
    on_empty: str = inputs_lib.REFUSE,
    vocabulary_file: str | None = None,
    answers: answers_lib.Folder | None = None,
    output_dir: str | None = None,
    gamma: int = 5,
    num_examples: int | None = None,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
    draft_sampling: sampling_lib.Sampling | None = None,
    num_decodes: int = 1,
    batch_size: int = 1,
    scores: bool = False,
    statistics: bool = False,
    tokens: bool = False,
    chunk_batches: int = 16,
) -> run_record.RunRecord | None:
  """Decodes lines of files or inputs of a task, in their order.

  A job that was killed resumes after the chunks that it finished.

  Args:
    workload: the target, and the task if there is one.
    drafter: drafts for the target; None to decode plainly.
    inputs: text and JSONL files, '-' for the standard input; None for the
      inputs of the workload's task.
    input_field: field of the JSON objects in JSONL files.
    input_format: 'text' or 'jsonl'; None to tell by the names of the files.
    hints_field: Field of JSON objects with hints; None for none. Unused for the
      inputs of a task, whose hints are its feature `hints`.
    on_empty: what to do with lines without text, see `inputs.ON_EMPTY`.
    vocabulary_file: for the lines of files; None for the task's vocabulary, or
      that in the folder of the checkpoint if the workload has no task.
    answers: a store of earlier answers, which become hints; None for none.
    output_dir: see `outputs.output_folder`; None to print predictions to the
      standard output.
    gamma: draft tokens per block, at least 1; unused without a drafter.
    num_examples: how many are decoded at most, from the first on.
    sampling: Sampling of the target; the default is argmax.
    draft_sampling: Sampling of the drafter; None for the target's.
    num_decodes: samples per input.
    batch_size: inputs decoded together; rounded up to a multiple of the
      mesh's data axis.
    scores: whether predictions have their log-probabilities.
    statistics: whether predictions have counts of tokens, target calls and
      draft tokens.
    tokens: whether predictions have token ids, which the compare job needs.
    chunk_batches: batches per chunk, the unit of resumption.
  Returns:
    The run record; None without an output folder.
  Raises:
    ValueError: for input that cannot be decoded as configured.
    OSError: if the folder cannot be written to, or another job uses it.
  """
  arguments.check(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      chunk_batches=chunk_batches,
      num_examples=1 if num_examples is None else num_examples,
  )
  if drafter is not None:
    source.check_source(drafter)
  if answers is not None and answers.append and output_dir is None:
    raise ValueError(
        'ANSWERS_APPEND adds the predictions of an output folder to the store,'
        ' and there is none. Set INFER_OUTPUT_DIR.'
    )
  if on_empty not in inputs_lib.ON_EMPTY:
    raise ValueError(
        f'on_empty must be one of {", ".join(inputs_lib.ON_EMPTY)}, got'
        f' {on_empty!r}.'
    )
  inputs_lib.check_lengths(workload.task_feature_lengths)
  paths = [inputs] if isinstance(inputs, str) else inputs
  if paths is not None:
    # A file has one name in records, also if it is given as a URL.
    paths = [os.fspath(epath.Path(path)) for path in paths]
    text_files.check(paths, input_format, hints_field)
  mesh = workload.make_mesh()
  batch_size = workload_lib.pad_batch(mesh, batch_size)
  with contextlib.ExitStack() as stack:
    if output_dir is not None:
      stack.enter_context(folder_lock.hold(output_dir))
    vocabulary = _vocabulary(workload, paths, vocabulary_file)
    target = workload.find_target(mesh)
    vocabulary = models.fit_vocabulary(vocabulary, target)
    target = target.with_vocabulary('of the inputs', vocabulary.eos_id)
    decoder = workload.load_decoder(
        target,
        drafter,
        vocabulary,
        gamma=gamma,
        num_decodes=num_decodes,
    )
    finder = None
    if answers is not None:
      lengths = workload.task_feature_lengths
      embedder = answers_lib.Embedder(
          decoder.target, vocabulary, lengths['inputs']
      )
      finder = _find_answers(answers, decoder, embedder)
    num_inputs = _num_inputs(workload, paths, num_examples)
    total = num_inputs and -(-num_inputs // batch_size)
    setup = _Setup(
        workload,
        engine_lib.Engine(decoder, is_plain=drafter is None, answers=finder),
        vocabulary,
        workload.requests(batch_size, sampling, draft_sampling),
        chunk_batches if output_dir is not None else 1,
        _Columns(scores, statistics, tokens),
        drafter is not None,
        stack.enter_context(progress.Progress('infer', total)),
    )
    read = _read(
        workload,
        paths,
        vocabulary,
        field=input_field,
        file_format=input_format,
        hints_field=hints_field,
        on_empty=on_empty,
    )
    read = itertools.islice(read, num_examples)
    read = _watch(read, decoder)
    settings = _settings(setup, paths)
    if output_dir is None:
      _print_all(setup, read, settings)
      return None
    options = {
        'input_field': input_field,
        'input_format': input_format,
        'vocabulary_file': vocabulary_file,
        'chunk_batches': chunk_batches,
        'network_configs': provenance.network_configs(decoder),
        **dataclasses.asdict(setup.columns),
    }
    record, rows = _write(setup, read, output_dir, settings, options)
    if answers is not None and answers.append:
      answers.add(embedder, _answers_in(rows, vocabulary))
    return record


def _find_answers(
    answers: answers_lib.Folder,
    decoder: token_decoder.TokenDecoder,
    embedder: answers_lib.Embedder,
) -> answers_lib.Finder | None:
  """Opens the store; returns None if it is only filled, or has no answers yet.

  Raises:
    ValueError: if the drafter does not read hints and nothing is appended, or
      if there is no store.
  """
  if not answers.append:
    decoder.check_reads_hints()
  store = answers.open(embedder)
  if not (decoder.reads_hints and len(store)):
    return None
  return answers.finder(decoder, store)


def _answers_in(
    rows: Iterable[str], vocabulary: vocabularies.Vocabulary
) -> Iterator[tuple[str, str]]:
  """Yields the inputs of lines of predictions, and the best outputs."""
  for row in map(json.loads, rows):
    if not inputs_lib.is_empty(row['input'], vocabulary.encode(row['input'])):
      yield row['input'], predictions_lib.best_of(row['prediction'])


def _vocabulary(
    workload: workload_lib.Workload,
    paths: Sequence[str] | None,
    vocabulary_file: str | None,
) -> vocabularies.Vocabulary:
  """Returns the vocabulary of the inputs, and checks that there are some."""
  name = workload.mixture_or_task_name
  if paths is None and name is None:
    raise ValueError(
        'There is nothing to decode. Set INPUTS to files or to -, or name a'
        ' task with MIXTURE_OR_TASK_NAME.'
    )
  if paths is not None and vocabulary_file is not None:
    return vocabularies.load(vocabulary_file)
  if name is not None:
    return workload.task_vocabulary()
  return vocabularies.load(workload.checkpoint_path)


def _read(
    workload: workload_lib.Workload,
    paths: Sequence[str] | None,
    vocabulary: vocabularies.Vocabulary,
    on_empty: str,
    **options: str | None,
) -> Iterator[inputs_lib.Input]:
  """Returns the inputs of files, or of the task if there is no file.

  Args:
    workload: the workload of the job.
    paths: paths of the files; None for the task.
    vocabulary: vocabulary of the inputs.
    on_empty: What to do with lines without text, see `inputs.from_lines`.
    **options: options of `text_files.read`.
  """
  lengths = workload.task_feature_lengths
  if paths is None:
    # Imports seqio and TensorFlow, which lines of files do not need.
    from speculative_t5x.tasks import examples

    return examples.stream(
        workload.mixture_or_task_name, workload.split, lengths
    )
  lines = text_files.read(paths, taken=predictions_lib.TAKEN, **options)
  return inputs_lib.from_lines(lines, vocabulary, lengths, on_empty)


def _num_inputs(
    workload: workload_lib.Workload,
    paths: Sequence[str] | None,
    num_examples: int | None,
) -> int | None:
  """Returns how many inputs there are to decode; None if that is not known.

  Lines are not counted: files would be read twice.
  """
  if paths is not None:
    return None
  found = workload.num_examples()
  return found if None in (found, num_examples) else min(found, num_examples)


def _watch(
    inputs: Iterator[inputs_lib.Input], decoder: token_decoder.TokenDecoder
) -> Iterator[inputs_lib.Input]:
  """Yields the inputs, and says at the first hints if they are not used."""
  has_hints = False
  for each in inputs:
    if each.hints and not has_hints:
      has_hints = True
      workload_lib.note_unread_hints(decoder)
    yield each


def _settings(
    setup: _Setup, paths: Sequence[str] | None
) -> run_record.RunRecord:
  """Returns the record before anything is decoded."""
  record = setup.workload.new_record(
      'infer',
      setup.decoder,
      setup.requests.sampling,
      setup.requests.draft_sampling,
      batch_size=setup.requests.batch_size,
      repeats=1,
  )
  if paths is not None:
    record = dataclasses.replace(record, task=', '.join(paths), split=None)
  if not setup.is_speculative:
    record = dataclasses.replace(
        record,
        drafter=None,
        verification=None,
        lossless=True,
        gamma=None,
        gamma_policy=None,
    )
  return record


def _write(
    setup: _Setup,
    inputs: Iterator[inputs_lib.Input],
    output_dir: str,
    settings: run_record.RunRecord,
    options: dict[str, Any],
) -> tuple[run_record.RunRecord, Iterable[str]]:
  """Decodes the inputs into an output folder.

  Returns:
    The record, and the lines of `predictions.jsonl`.
  """
  # A job may resume on another machine, or on a mesh of other devices: its
  # texts are then those of both. {} is the mesh of a single device.
  identity = dataclasses.replace(settings, device=None, host=None, mesh={})
  chunks = chunks_lib.Chunks(output_dir, identity, options, 'infer')
  chunks.check_alone()
  folder = output_folder.OutputFolder(output_dir, 'infer')
  found = [
      (chunk.origin, chunk.values)
      for chunk in _take_chunks(setup, inputs, chunks.take)
  ]
  origins, values = zip(*found, strict=True)
  record = dataclasses.replace(
      settings,
      **origins[0],
      **{name: sum(each[name] for each in values) for name in _COUNTED},
      **_counted(
          tallies.join(
              [run_record.from_dict(v['run'], tallies.Tally) for v in values]
          )
      ),
  )
  folder.add(record, chunks)
  results = folder.finish()
  for note in readings.input_notes([record]):
    print(note)
  print(f'Predictions: {results.parent / "predictions.jsonl"}')
  return record, chunks


def _counted(tally: tallies.Tally) -> dict[str, Any]:
  """Returns what a run counted, as values of the record."""
  shared = {
      'padded_share': counts.padded_share(tally.counts),
      'warmup': interleaved.WARMUP,
  }
  if tally.counts.speculation is None:
    return shared | {
        'baseline': walltimes.run_of(tally, is_speculative=False),
        'compile_s': run_record.BothRuns(tally.compile_s, None),
    }
  run = walltimes.run_of(tally, is_speculative=True)
  return shared | {
      'speculative': run,
      'compile_s': run_record.BothRuns(None, tally.compile_s),
      **counts.acceptance_rates(vars(run)),
  }


def _print_all(
    setup: _Setup,
    inputs: Iterator[inputs_lib.Input],
    settings: run_record.RunRecord,
) -> None:
  """Decodes the inputs and prints their predictions."""

  def take(number: int, inputs: Any, decode: Callable) -> dict[str, Any]:
    content = decode()
    for row in content.rows:
      print(row)
    sys.stdout.flush()
    return content.values

  counted = collections.Counter()
  for values in _take_chunks(setup, inputs, take):
    counted.update({name: values[name] for name in _COUNTED})
  record = dataclasses.replace(settings, **counted)
  for note in readings.input_notes([record]):
    print(note, file=sys.stderr)


def _take_chunks(
    setup: _Setup, inputs: Iterator[inputs_lib.Input], take: _Take
) -> Iterator[Any]:
  """Yields what `take` returns for each chunk of the inputs."""
  batch_size = setup.requests.batch_size
  chunk_size = batch_size * setup.chunk_batches
  finder = setup.engine.answers
  answers = [finder.identity] if finder else []
  for number, part in enumerate(batching.parts(inputs, chunk_size)):
    yield take(
        number,
        [*map(_identity, part), *answers],
        lambda number=number, part=part: _decode_chunk(setup, number, part),
    )
    num_batches = -(-len(part) // batch_size)
    setup.shown.show(number * setup.chunk_batches + num_batches)


def _identity(each: inputs_lib.Input) -> list[Any]:
  """Returns what the prediction of an input depends on, as JSON."""
  others = [x for x in (each.hints, dict(each.fields)) if x]
  return [each.example_id, each.text, list(each.tokens), *others]


def _decode_chunk(
    setup: _Setup, number: int, part: list[inputs_lib.Input]
) -> chunks_lib.Content:
  """Returns predictions, counts and times of some inputs."""
  rows = [
      requests_lib.Row(x.tokens, x.example_id, x.hints, not x.is_empty)
      for x in part
  ]
  if not setup.engine.is_warm:
    progress.say('compiling and warming up')
  results = []
  for result in setup.engine.stream(setup.requests.of(rows)):
    results.append(result)
    setup.shown.show(number * setup.chunk_batches + len(results))
  tally = tallies.Tally(
      counts.total([each.decoded for each in results]),
      tuple(each.seconds for each in results),
      setup.engine.compile_s,
  )
  return chunks_lib.Content(
      [json_lines.dumps(row) for row in _rows(setup, part, results)],
      {
          'run': dataclasses.asdict(tally),
          'num_examples': len(part),
          'truncated_inputs': sum(each.is_truncated for each in part),
          'unknown_inputs': sum(not each.is_known for each in part),
      },
  )


def _rows(
    setup: _Setup,
    part: list[inputs_lib.Input],
    results: list[engine_lib.Result],
) -> Iterator[dict[str, Any]]:
  """Yields the rows of `predictions.jsonl`, one per input.

  Args:
    setup: what all chunks of the job share.
    part: inputs of the chunk.
    results: Results of the requests of these inputs.
  """
  found = predictions_lib.read(
      [each.decoded for each in results],
      len(part),
      setup.decoder,
      setup.vocabulary,
  )
  columns = {
      'example_id': [each.example_id for each in part],
      'input': [each.text for each in part],
      'prediction': predictions_lib.unwrap(found.texts),
  }
  if setup.columns.scores:
    columns['score'] = predictions_lib.unwrap(found.scores.tolist())
  if setup.columns.statistics:
    counted = zip(*(x.tolist() for x in found.counts.values()), strict=True)
    columns['statistics'] = [
        dict(zip(found.counts, each, strict=True)) for each in counted
    ]
  if setup.columns.tokens:
    columns[predictions_lib.INPUT_TOKENS] = [list(x.tokens) for x in part]
    hints = [x for each in results for x in requests_lib.hints_of(each.request)]
    columns |= predictions_lib.hint_tokens(hints[: len(part)])
    columns[predictions_lib.TOKENS] = predictions_lib.unwrap(found.tokens)
  for each, row in zip(part, zip(*columns.values(), strict=True), strict=True):
    yield {**dict(zip(columns, row, strict=True)), **each.fields}
