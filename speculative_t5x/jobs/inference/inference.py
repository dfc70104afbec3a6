# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes the inputs of an infer job, a part of them at a time."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import time
from typing import Any, Protocol

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading.files import json_files
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.speculation import contracts

# Names of the files of rows, and which rows each has; None for all.
Files = Mapping[str, Callable[[str], bool] | None]
# An input, with its number among those of the job.
_Numbered = tuple[int, Any]


class Rows(Protocol):
  """Inputs of a job as requests, and their results as rows."""

  files: Files  # where the rows are written

  def read(self, inputs: Iterator[Any]) -> Iterator[Any]:
    """Yield inputs, read as far as it takes the decoder, in their order."""

  def identity(self, part: Sequence[Any]) -> list[Any]:
    """Return what the rows of inputs depend on, as JSON."""

  def requests(self, item: Any) -> Sequence[request_lib.Request]:
    """Return the requests of an input, of which there may be none."""

  def row(
      self, item: Any, outcomes: Sequence[results.Result | ValueError]
  ) -> dict[str, Any]:
    """Return the row of an input; it may raise the error of a request."""

  def counted(self, answered: Sequence[text_rows.Answered]) -> dict[str, int]:
    """Return the counts of inputs that are summed over chunks."""


@dataclasses.dataclass(frozen=True)
class Inference:
  """Decoding of inputs in parts, each to a chunk of rows."""

  setup: infer_setup.InferSetup
  source: infer_setup.Source  # its inputs
  # Decodes them; its weights are still to be read.
  decoder: token_decoder.TokenDecoder
  batch_size: int  # chosen for the machine, where the setup has none
  shown: progress.Progress  # shows how many inputs are done

  @property
  def part_size(self) -> int:
    """Inputs of a chunk."""
    return self.batch_size * self.setup.chunk_batches

  @functools.cached_property
  def rows(self) -> Rows:
    """Return the rows: of each input what is decoded and written."""
    workload = self.setup.workload
    if not self.setup.is_batch:
      return text_rows.TextRows(self.setup, self.source, self.decoder)
    # They import pydantic, which other lines do not need.
    from speculative_t5x.jobs.inference import batch_rows
    from speculative_t5x.serving import batch_lines

    texts = workload_lib.text_decoder(self.decoder)
    name = workload.model_name(self.setup.model_name)
    fingerprint = workload.fingerprint(texts)
    return batch_rows.BatchRows(
        batch_lines.Batch(texts, name, fingerprint, workload.seed)
    )

  @functools.cached_property
  def engine(self) -> engine_lib.Engine:
    """Return the engine that decodes; reads the model and compiles."""
    setup = self.setup
    loaded = workload_lib.loaded(self.decoder)
    engine = engine_lib.Engine(
        loaded.alone if setup.drafter is None else loaded,
        self.batch_size * setup.num_outputs,
        rule=setup.workload.rule,
        hints_length=setup.workload.task_feature_lengths.get('hints'),
    )
    progress.say('compiling and warming up')
    engine.warm_up(setup.search)
    return engine

  def take_all(
      self, inputs: Iterator[Any], chunks: chunks_lib.Chunks
  ) -> Iterator[chunks_lib.Chunk]:
    """Yield the chunks of all inputs; see `Chunks.take_all`."""
    parts = batching.parts(inputs, self.part_size)
    with_identity = ((self.rows.identity(part), part) for part in parts)
    return chunks.take_all(with_identity, self.decode)

  def decode(
      self,
      numbered: Iterator[_Numbered],
      tell: Callable[[str], object] = lambda row: None,
  ) -> Iterator[chunks_lib.Content]:
    """Decode inputs as one stream, and yield the content of each part of them.

    Without any, the model is not read. Inputs have their numbers among those of
    the job. Each row is told as soon as it and those before it are there.
    """
    first = list(itertools.islice(numbered, 1))
    if not first:
      return
    grouped = _grouped(
        self.engine.stream_ended,
        lambda each: self.rows.requests(each[1]),
        itertools.chain(first, numbered),
    )
    while part := self._part(grouped, tell):
      yield part

  def _part(
      self,
      grouped: Iterator[tuple[_Numbered, list[pending_lib.Pending]]],
      tell: Callable[[str], object],
  ) -> chunks_lib.Content | None:
    """Return the content of the next part of inputs; None after the last."""
    before = dataclasses.replace(self.engine.counters)
    start = time.perf_counter()
    answered, rows, decodes = [], [], []
    for (number, item), ended in itertools.islice(grouped, self.part_size):
      outcomes = list(map(self._outcome, ended))
      answered.append((item, outcomes))
      rows.append(json_files.dumps(self.rows.row(item, outcomes)))
      for outcome in outcomes:
        if isinstance(outcome, results.Result):
          decodes += outcome.decodes
      tell(rows[-1])
      self.shown.show(number + 1)
    if not rows:
      return None
    values = self.rows.counted(answered)
    if decodes:
      # Those that are decoded ahead are counted here, and not in their part.
      run = interleaved.Run(
          counts.of_run(
              decodes,
              self.engine.counters.loop_steps - before.loop_steps,
              self.engine.counters.row_steps - before.row_steps,
          ),
          (time.perf_counter() - start,),
          self.engine.compile_s,
      )
      values['run'] = run.stored()
    return chunks_lib.Content(rows, values)

  def _outcome(self, ended: pending_lib.Pending) -> results.Result | ValueError:
    try:
      return self.engine.result(ended)
    except ValueError as error:
      return error

  def options(self) -> dict[str, Any]:
    """Return what chunks depend on beside the record's settings, as JSON."""
    return {
        'input_field': self.setup.input_field,
        'input_format': self.setup.input_format,
        'vocabulary': resumption.of_vocabulary(self.source.target.vocabulary),
        'chunk_batches': self.setup.chunk_batches,
        'network_configs': provenance.network_configs(self.decoder),
        **self.setup.columns,
    }

  def record(self) -> run_record.RunRecord:
    """Return the record before anything is decoded."""
    setup, workload = self.setup, self.setup.workload
    record = workload.new_record(
        'infer',
        self.decoder,
        setup.sampling,
        setup.draft_sampling,
        batch_size=self.batch_size,
        repeats=1,
        **(dataclasses.asdict(setup.search) if setup.search else {}),
    )
    if setup.paths is not None:
      task = ', '.join(setup.paths)
      record = dataclasses.replace(record, task=task, split=None)
    if setup.drafter is None:
      unused = ['drafter', 'draft_sampling', 'gamma', 'gamma_policy']
      unused.append('draft_beams')
      # What a coupled rule draws plain decoding draws too.
      if not isinstance(workload.rule, contracts.CoupledRule):
        unused.append('verification')
      record = dataclasses.replace(
          record, lossless=True, **dict.fromkeys(unused)
      )
    if setup.is_batch:  # requests say how they are sampled
      record = dataclasses.replace(
          record,
          drafter=record.drafter
          and dataclasses.replace(record.drafter, temperature=None),
          num_decodes=None,
          **dict.fromkeys(run_record.SAMPLING_KEYS.values()),
      )
    return record


def find(
    setup: infer_setup.InferSetup,
    source: infer_setup.Source,
    shown: progress.Progress,
) -> Inference:
  """Find the models of a job; see `Workload.find_decoder`."""
  decoder, batch_size = setup.workload.find_decoder(
      source.target,
      setup.drafter,
      gamma=setup.gamma,
      num_decodes=setup.num_outputs,
      batch_size=setup.batch_size,
  )
  return Inference(setup, source, decoder, batch_size, shown)


def _grouped(
    decode: Callable[
        [Iterator[request_lib.Request]], Iterator[pending_lib.Pending]
    ],
    requests_of: Callable[[_Numbered], Sequence[request_lib.Request]],
    items: Iterable[_Numbered],
) -> Iterator[tuple[_Numbered, list[pending_lib.Pending]]]:
  """Yield each item with what its requests were decoded to, in their order.

  Items are read when `decode` reads requests, and kept until they are yielded.
  """
  waiting = collections.deque()

  def requests() -> Iterator[request_lib.Request]:
    for item in items:
      own = requests_of(item)
      waiting.append((item, len(own), []))
      yield from own

  def complete() -> Iterator[tuple[_Numbered, list[pending_lib.Pending]]]:
    while waiting and len(waiting[0][2]) == waiting[0][1]:
      item, _, ended = waiting.popleft()
      yield item, ended

  for each in decode(requests()):
    yield from complete()  # those before it that have no requests
    waiting[0][2].append(each)
    yield from complete()
  yield from complete()
