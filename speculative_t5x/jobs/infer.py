# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job: lines of text in, predictions out, in constant memory."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import sys
import time
from typing import Any, Literal

from speculative_t5x.decoder import answers as answers_lib
from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.cluster import infer_chunks
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import text_files


def infer(
    *,
    workload: workload_lib.Workload,
    drafter: drafters.Choice | None = None,
    inputs: str | Sequence[str] | None = None,
    input_field: str = 'inputs',
    input_format: str | None = None,
    hints_field: str | None = text_files.HINTS,
    on_empty: Literal['refuse', 'pass', 'skip'] = 'refuse',
    vocabulary_file: str | None = None,
    answers: answers_lib.Folder | None = None,
    output_dir: str | None = None,
    gamma: int | Literal['auto'] = 5,
    num_examples: int | None = None,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
    draft_sampling: sampling_lib.Sampling | None = None,
    num_decodes: int = 1,
    batch_size: int | None = None,
    scores: bool = False,
    statistics: bool = False,
    tokens: bool = False,
    chunk_batches: int = 16,
    cluster: ray_cluster.RayCluster | None = None,
) -> run_record.RunRecord | None:
  """Decode lines of files or inputs of a task, in their order.

  A job that was killed resumes after the chunks that it finished.

  The arguments are explained in `configs/runs/infer.gin`, but for:

  Args:
    workload: Target, and the task if there is one.
    drafter: Drafts for the target; None to decode plainly.
    draft_sampling: Sampling of the drafter; None for the target's.
    batch_size: Rounded up to a multiple of the mesh's data axis.
    cluster: Decodes on its nodes; None to decode in this process.
  Returns:
    The run record; None without an output folder.
  Raises:
    ValueError: for input that cannot be decoded as configured. On a cluster,
      all other inputs are decoded and written before.
    OSError: if the folder cannot be written to, or another job uses it.
  """
  if gamma == 'auto':
    workload, gamma = workload_lib.by_load(workload)
  arguments.check_counts(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      chunk_batches=chunk_batches,
      num_examples=num_examples,
  )
  if answers is not None and answers.append and output_dir is None:
    raise ValueError(
        'ANSWERS_APPEND adds the predictions of an output folder to the store,'
        ' and there is none. Set INFER_OUTPUT_DIR.'
    )
  inputs_lib.check_lengths(workload.task_feature_lengths)
  paths = [inputs] if isinstance(inputs, str) else inputs
  if paths is not None:
    # A file has one name in records, also if it is given as a URL.
    paths = [os.fspath(user_paths.expand(path)) for path in paths]
    text_files.check(
        paths, input_format, input_field, hints_field, predictions_lib.TAKEN
    )
  elif workload.mixture_or_task_name is None:
    raise ValueError(
        'There is nothing to decode. Set INPUTS to files or to -, or name a'
        ' task with MIXTURE_OR_TASK_NAME.'
    )
  setup = _Setup(
      workload=workload,
      drafter=drafter,
      paths=paths,
      input_field=input_field,
      input_format=input_format,
      hints_field=hints_field,
      on_empty=on_empty,
      vocabulary_file=vocabulary_file,
      gamma=gamma,
      num_examples=num_examples,
      sampling=sampling,
      draft_sampling=draft_sampling,
      num_decodes=num_decodes,
      batch_size=batch_size,
      columns={'scores': scores, 'statistics': statistics, 'tokens': tokens},
      chunk_batches=chunk_batches,
  )
  if cluster is not None:
    _check_on_cluster(answers, paths, output_dir)
    with folder_lock.hold(output_dir):
      return _write_from_cluster(cluster, setup, output_dir)
  setup = setup.padded()
  with contextlib.ExitStack() as stack:
    if output_dir is not None:
      stack.enter_context(folder_lock.hold(output_dir))
    source = setup.source()
    read = itertools.islice(source.inputs(), num_examples)
    if paths is None:
      # A data set that is missing fails here, before weights are read.
      read = itertools.chain([*itertools.islice(read, 1)], read)
    num_inputs = setup.num_inputs()
    decoder, batch_size = setup.load(source)
    if draft_sampling is not None:
      pair = sampling_lib.Pair(sampling, draft_sampling)
      workload_lib.note_unread_sampling(decoder, [pair])
    finder = None
    if answers is not None:
      embedder = answers_lib.Embedder(
          decoder, source.vocabulary, workload.task_feature_lengths['inputs']
      )
      finder = answers.finder(embedder)
    shown = progress.Progress('infer', num_inputs, 'rows')
    job = setup.inference(
        source, decoder, batch_size, stack.enter_context(shown), finder
    )
    read = _note_hints(read, decoder)
    settings = setup.record(job)
    if output_dir is None:
      _print_all(job, read, settings, chunk_batches)
      return None
    chunks = _chunks_in(output_dir, settings, setup.options(decoder))
    record = _write_all(job, read, settings, output_dir, chunks, chunk_batches)
    if answers is not None and answers.append:
      answers.add(embedder, _answers_in(chunks, source.vocabulary))
    return record


@dataclasses.dataclass(frozen=True)
class _Source:
  """The inputs, before weights are read.

  Attributes:
    target: The target that decodes them, with its end of sequence.
    read: Reads lines, or examples of a task.
    inputs_of: Returns the inputs of these, from one with a number on.
  """

  vocabulary: vocabularies.Vocabulary
  target: models.ModelSource
  read: Callable[[], Iterator[Any]]
  inputs_of: Callable[[Iterator[Any], int], Iterator[inputs_lib.Input]]

  def inputs(self) -> Iterator[inputs_lib.Input]:
    """Yield all inputs."""
    return self.inputs_of(self.read(), 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Setup:
  """What is decoded, by what, and what is written of it.

  The attributes are arguments of `infer`; paths are its inputs, and columns its
  `scores`, `statistics` and `tokens`. It can be pickled.
  """

  workload: workload_lib.Workload
  drafter: drafters.Choice | None
  paths: Sequence[str] | None
  input_field: str
  input_format: str | None
  hints_field: str | None
  on_empty: str
  vocabulary_file: str | None
  gamma: int
  num_examples: int | None
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling | None
  num_decodes: int
  batch_size: int | None
  columns: Mapping[str, bool]
  chunk_batches: int
  # Names that fields of the inputs may not have.
  taken: Sequence[str] = predictions_lib.TAKEN

  def padded(self) -> '_Setup':
    """Return the setup with a batch size that suits the mesh."""
    mesh = self.workload.make_mesh()
    size = workload_lib.pad_batch(mesh, self.batch_size)
    return dataclasses.replace(self, batch_size=size)

  def source(self) -> _Source:
    """Find the inputs and the target."""
    workload = self.workload
    vocabulary = workload.vocabulary(self.paths and self.vocabulary_file)
    target = workload.find_target()
    vocabulary = models.fit_vocabulary(vocabulary, target)
    target = target.with_vocabulary('of the inputs', vocabulary.eos_id)
    lengths = workload.task_feature_lengths
    if self.paths is None:
      # Imports seqio and TensorFlow, which lines of files do not need.
      from speculative_t5x.tasks import examples

      name = workload.mixture_or_task_name
      read = functools.partial(examples.stream, name, workload.split, lengths)
      return _Source(vocabulary, target, read, lambda found, first: found)
    read = functools.partial(
        text_files.read,
        self.paths,
        taken=self.taken,
        field=self.input_field,
        file_format=self.input_format,
        hints_field=self.hints_field,
    )
    inputs_of = lambda lines, first: inputs_lib.from_lines(
        lines, vocabulary, lengths, self.on_empty, first
    )
    return _Source(vocabulary, target, read, inputs_of)

  def num_inputs(self) -> int | None:
    """Return how many inputs there are; None where it is not known."""
    if self.paths is not None:  # to count lines, files would be read twice
      return None
    found = self.workload.num_examples()
    if None in (found, self.num_examples):
      return found
    return min(found, self.num_examples)

  def load(
      self, source: _Source, defer: bool = False
  ) -> tuple[token_decoder.TokenDecoder, int]:
    """Return the decoder and the batch size; see `Workload.load_decoder`."""
    return self.workload.load_decoder(
        source.target,
        self.drafter,
        source.vocabulary,
        gamma=self.gamma,
        num_decodes=self.num_decodes,
        batch_size=self.batch_size,
        defer=defer,
    )

  def inference(
      self,
      source: _Source,
      decoder: token_decoder.TokenDecoder,
      batch_size: int,
      shown: progress.Progress,
      finder: answers_lib.Finder | None = None,
  ) -> '_Inference':
    """Return what decodes; compile nothing yet."""
    is_plain = self.drafter is None
    engine = engine_lib.Engine(
        decoder.alone if is_plain else decoder,
        batch_size * self.num_decodes,
        rule=self.workload.rule,
        hints_length=self.workload.task_feature_lengths.get('hints'),
        answers=finder,
    )
    return _Inference(
        decoder,
        is_plain,
        engine,
        source.vocabulary,
        self.workload.settings(self.sampling, self.draft_sampling),
        batch_size,
        finder.identity if finder else None,
        {name for name, is_wanted in self.columns.items() if is_wanted},
        shown,
    )

  def settings(self) -> tuple[run_record.RunRecord, dict[str, Any]]:
    """Return the record before anything is decoded, and options of chunks.

    They are found without weights, but for those of a drafter.
    """
    setup, source = self.padded(), self.source()
    decoder, batch_size = setup.load(source, defer=True)
    shown = progress.Progress('infer', None, 'rows')
    job = setup.inference(source, decoder, batch_size, shown)
    return setup.record(job), setup.options(decoder)

  @contextlib.contextmanager
  def open(self, source: _Source) -> Iterator['_Inference']:
    """Load the model."""
    setup = self.padded()
    decoder, batch_size = setup.load(source)
    with progress.Progress('infer', None, 'rows') as shown:
      yield setup.inference(source, decoder, batch_size, shown)

  def options(self, decoder: token_decoder.TokenDecoder) -> dict[str, Any]:
    """Return what chunks depend on beside the record's settings, as JSON."""
    return {
        'input_field': self.input_field,
        'input_format': self.input_format,
        'vocabulary_file': self.vocabulary_file,
        'chunk_batches': self.chunk_batches,
        'network_configs': provenance.network_configs(decoder),
        **self.columns,
    }

  def record(self, job: '_Inference') -> run_record.RunRecord:
    """Return the record before anything is decoded."""
    workload = self.workload
    record = workload.new_record(
        'infer',
        job.decoder,
        self.sampling,
        self.draft_sampling,
        batch_size=job.batch_size,
        repeats=1,
    )
    if self.paths is not None:
      task = ', '.join(self.paths)
      record = dataclasses.replace(record, task=task, split=None)
    if job.is_plain:
      unused = ['drafter', 'draft_sampling', 'gamma', 'gamma_policy']
      # What a coupled rule draws plain decoding draws too.
      if not isinstance(workload.rule, contracts.CoupledRule):
        unused.append('verification')
      record = dataclasses.replace(
          record, lossless=True, **dict.fromkeys(unused)
      )
    return record


def _write_from_cluster(
    cluster: ray_cluster.RayCluster, setup: _Setup, output_dir: str
) -> run_record.RunRecord:
  """Have a cluster decode the inputs into an output folder."""
  taken = *setup.taken, infer_chunks.ERROR
  setup = dataclasses.replace(setup, taken=taken)
  source = setup.source()
  job = infer_chunks.InferChunks(setup)
  with progress.Progress('infer', setup.num_inputs(), 'rows') as shown:
    with cluster.connect(job) as workers:
      settings, options = workers.description
      chunks = _chunks_in(output_dir, settings, options)
      driver = infer_chunks.Driver(setup, settings.batch_size, shown)
      driver.decode_missing(workers, source, chunks)
    # All chunks are there, and are taken as a job that resumes takes them.
    inputs = driver.inputs(source)
    record = _write_all(
        driver, inputs, settings, output_dir, chunks, setup.chunk_batches
    )
  if driver.num_failed:
    raise ValueError(
        f'{driver.num_failed} of {record.num_examples} inputs have no'
        f' prediction; their rows have the key {infer_chunks.ERROR!r}. The same'
        ' command decodes their chunks again.'
    )
  return record


def _check_on_cluster(
    answers: answers_lib.Folder | None,
    paths: Sequence[str] | None,
    output_dir: str | None,
) -> None:
  """Check that other processes can do the job."""
  problem = None
  if output_dir is None:
    problem = 'writes files, and there is no folder. Set INFER_OUTPUT_DIR'
  elif text_files.STANDARD_INPUT in (paths or ()):
    problem = 'reads files on its nodes. Write the standard input to a file'
  elif answers is not None:
    problem = 'does not look for earlier answers. Leave out ANSWERS'
  if problem:
    raise ValueError(f'A cluster (CLUSTER) {problem}.')


def _answers_in(
    rows: Iterable[str], vocabulary: vocabularies.Vocabulary
) -> Iterator[tuple[str, str]]:
  """Yield the inputs of lines of predictions, and the best outputs."""
  for row in map(json.loads, rows):
    if not inputs_lib.is_empty(row['input'], vocabulary.encode(row['input'])):
      yield row['input'], predictions_lib.best_of(row['prediction'])


def _note_hints(
    inputs: Iterator[inputs_lib.Input], decoder: token_decoder.TokenDecoder
) -> Iterator[inputs_lib.Input]:
  """Yield the inputs, and say at the first hints if they are not used."""
  has_hints = False
  for each in inputs:
    if each.hints and not has_hints:
      has_hints = True
      workload_lib.note_unread_hints(decoder)
    yield each


@dataclasses.dataclass(frozen=True)
class _Inference:
  """What decodes the inputs, and what is told of them."""

  decoder: token_decoder.TokenDecoder
  is_plain: bool  # whether the target decodes alone
  engine: engine_lib.Engine
  vocabulary: vocabularies.Vocabulary
  settings: request_lib.Settings
  batch_size: int  # inputs that are decoded at once
  answers: list[Any] | None  # what the answers that are found depend on
  # What a line of `predictions.jsonl` holds beside id, input and prediction:
  # 'scores', 'statistics', 'tokens', see `infer`.
  columns: Collection[str]
  shown: progress.Progress

  def identity(self, part: Sequence[inputs_lib.Input]) -> list[Any]:
    """Return what the predictions of inputs depend on, as JSON."""
    found = inputs_lib.identity(part)
    return found if self.answers is None else [*found, self.answers]

  def decode(
      self, part: Sequence[inputs_lib.Input], num_before: int
  ) -> chunks_lib.Content:
    """Decode inputs, before which the job has as many others."""
    if not self.engine.is_warm:
      progress.say('compiling and warming up')
      self.engine.warm_up()
    before = dataclasses.replace(self.engine.counters)
    start = time.perf_counter()
    found = []
    for result in self._results(part):
      found.append(result)
      seconds = time.perf_counter() - start
      self.shown.show(num_before + len(found), self._note(before, seconds))
    run = interleaved.Run(
        counts.of_run(
            found,
            self.engine.counters.steps - before.steps,
            self.engine.counters.row_steps - before.row_steps,
        ),
        (time.perf_counter() - start,),
        self.engine.compile_s,
    )
    rows = map(self._row, part, found)
    return chunks_lib.Content(
        list(map(json_files.dumps, rows)),
        {'run': run.stored(), **infer_chunks.counted(part)},
    )

  def _results(
      self, part: Sequence[inputs_lib.Input]
  ) -> Iterator[results.Result]:
    """Yield the result of each input; that of an empty one is empty."""
    num_decodes = self.decoder.options.num_decodes
    reads_hints = self.decoder.reads_hints
    decoded = self.engine.stream(
        self.settings.request(
            each.tokens,
            each.example_id,
            num_decodes=num_decodes,
            hints=each.hints if reads_hints else None,
        )
        for each in part
        if not each.is_empty
    )
    for each in part:
      yield (
          self.engine.empty_result(num_decodes)
          if each.is_empty
          else next(decoded)
      )

  def _note(self, before: engine_lib.Counters, seconds: float) -> str:
    """Return the rate since some counters, and what was accepted."""
    counters = self.engine.counters
    tokens = counters.tokens - before.tokens
    note = f'{tokens / seconds:.0f} tokens per second'
    if self.is_plain:
      return note
    calls = counters.live_row_steps - before.live_row_steps
    return f'{note}, {tokens / max(calls, 1):.2f} per target call'

  def _row(
      self, each: inputs_lib.Input, result: results.Result
  ) -> dict[str, Any]:
    """Return the row of `predictions.jsonl` of an input."""
    special_ids = self.decoder.target_model.special_ids
    one = lambda values: values[0] if len(values) == 1 else values
    texts = [
        self.vocabulary.decode(batching.text_ids(x.tokens, special_ids))
        for x in result.decodes
    ]
    row = {
        'example_id': each.example_id,
        'input': each.text,
        'prediction': one(texts),
    }
    if 'scores' in self.columns:
      row['score'] = one(result.scores.tolist())
    if 'statistics' in self.columns:
      row['statistics'] = counts.of_decodes(result.decodes)
    if 'tokens' in self.columns:
      row[predictions_lib.INPUT_TOKENS] = list(each.tokens)
      hints = result.hints or each.hints
      if hints:
        row[predictions_lib.HINT_TOKENS] = [list(x) for x in hints]
      by_number = sorted(result.decodes, key=lambda x: x.number)
      row[predictions_lib.TOKENS] = one([x.tokens for x in by_number])
    return {**row, **each.fields}


def _print_all(
    job: _Inference,
    inputs: Iterator[inputs_lib.Input],
    settings: run_record.RunRecord,
    chunk_batches: int,
) -> None:
  """Decode the inputs and print their predictions, chunk by chunk."""
  found, num_done = [], 0
  for part in batching.parts(inputs, chunk_batches * job.batch_size):
    content = job.decode(part, num_done)
    print('\n'.join(content.rows), flush=True)
    found.append(content.values)
    num_done += len(part)
  record = dataclasses.replace(settings, **_counted(found))
  for line in (*readings.input_notes([record]), _rate(record)):
    print(line, file=sys.stderr)


def _chunks_in(
    output_dir: str, settings: run_record.RunRecord, options: dict[str, Any]
) -> chunks_lib.Chunks:
  """Return the chunks of an output folder, which has no others."""
  # A job may resume on another machine, or on a mesh of other devices: its
  # texts are then those of both. {} is the mesh of a single device.
  identity = dataclasses.replace(settings, device=None, host=None, mesh={})
  chunks = chunks_lib.Chunks(output_dir, identity, options, 'infer')
  chunks.check_alone()
  return chunks


def _write_all(
    job: '_Inference | infer_chunks.Driver',
    inputs: Iterator[inputs_lib.Input],
    settings: run_record.RunRecord,
    output_dir: str,
    chunks: chunks_lib.Chunks,
    chunk_batches: int,
) -> run_record.RunRecord:
  """Decode the inputs into an output folder, and return the record."""
  folder = output_folder.OutputFolder(output_dir, 'infer')
  found = []  # without the rows, which may be many
  num_done = 0
  parts = batching.parts(inputs, job.batch_size * chunk_batches)
  for number, part in enumerate(parts):
    decode = functools.partial(job.decode, part, num_done)
    chunk = chunks.take(number, job.identity(part), decode)
    found.append((chunk.origin, chunk.values))
    num_done += len(part)
    job.shown.show(num_done)
  origins, values = zip(*found, strict=True)
  record = dataclasses.replace(settings, **origins[0], **_counted(values))
  folder.add(record, chunks)
  results = folder.finish()
  for line in (*readings.input_notes([record]), _rate(record)):
    print(line)
  print(f'Predictions: {results.parent / "predictions.jsonl"}')
  return record


def _rate(record: run_record.RunRecord) -> str:
  """Return a line on how fast rows and tokens were decoded, without compiling.

  It is that of all chunks, whichever process decoded them.
  """
  run = record.speculative or record.baseline
  rows, seconds = record.num_examples, run.walltime_s
  line = (
      f'{rows} rows, {run.tokens} tokens in {seconds:.3g} s:'
      f' {rows / seconds:.3g} rows and {run.tokens_per_s:.4g} tokens per second'
  )
  if (per_call := record.tokens_per_target_call) is not None:
    line += f', {per_call:.2f} tokens per target call'
  if (accepted := record.draft_acceptance_rate) is not None:
    line += f', {accepted:.0%} of draft tokens accepted'
  return f'{line}.'


def _counted(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """Return what the values of chunks amount to, as values of the record."""
  runs = [each['run'] for each in chunks if 'run' in each]
  if not runs:
    raise ValueError('No input could be decoded.')
  run = interleaved.join(runs)
  is_speculative = run.counts.speculation is not None
  name = 'speculative' if is_speculative else 'baseline'
  described = walltimes.run_of(run)
  seconds = {'baseline': None, 'speculative': None, name: run.compile_s}
  return {
      **{x: sum(each[x] for each in chunks) for x in infer_chunks.COUNTED},
      'padded_share': counts.padded_share(run.counts),
      'warmup': interleaved.WARMUP,
      'compile_s': run_record.BothRuns(**seconds),
      name: described,
      **(counts.acceptance_rates(vars(described)) if is_speculative else {}),
  }
