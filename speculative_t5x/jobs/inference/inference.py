# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes the inputs of an infer job, a part of them at a time."""

import collections
from collections.abc import Callable, Iterable, Iterator
import dataclasses
import functools
import itertools
import time
from typing import Any

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import infer_source
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading.files import json_files
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.speculation import contracts
from speculative_t5x.tasks import inputs as inputs_lib

COUNTED = 'num_examples', 'truncated_inputs', 'unknown_inputs'


@dataclasses.dataclass(frozen=True)
class Inference:
  """Decoding of inputs in parts, each to a chunk of rows.

  Attributes:
    setup: The job.
    source: Its inputs.
    decoder: Decodes them; its weights are still to be read.
    batch_size: Chosen for the machine, where the setup has none.
    shown: Shows how many inputs are done.
  """

  setup: infer_setup.InferSetup
  source: infer_source.Source
  decoder: token_decoder.TokenDecoder
  batch_size: int
  shown: progress.Progress

  @property
  def part_size(self) -> int:
    """Inputs of a chunk."""
    return self.batch_size * self.setup.chunk_batches

  @functools.cached_property
  def rows(self) -> text_rows.TextRows:
    """Return the rows: of each input what is decoded and written."""
    return text_rows.TextRows(self.setup, self.source, self.decoder)

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
      self, inputs: Iterator[inputs_lib.Input], chunks: chunks_lib.Chunks
  ) -> Iterator[chunks_lib.Chunk]:
    """Yield the chunks of all inputs; see `Chunks.take_all`."""
    parts = batching.parts(inputs, self.part_size)
    with_identity = ((inputs_lib.identity(part), part) for part in parts)
    return chunks.take_all(with_identity, self.decode)

  def decode(
      self,
      numbered: Iterator[tuple[int, inputs_lib.Input]],
      tell: Callable[[str], object] = lambda row: None,
  ) -> Iterator[chunks_lib.Content]:
    """Decode inputs as one stream, and yield the content of each part of them.

    Without any, the model is not read.

    Args:
      numbered: The inputs, each with its number among those of the job.
      tell: Called with each row as soon as it and those before it are there.
    """
    first = list(itertools.islice(numbered, 1))
    if not first:
      return
    decoded = _decoded(
        self.engine.stream_ended,
        self.rows.request,
        itertools.chain(first, numbered),
    )
    while part := self._part(decoded, tell):
      yield part

  def _part(
      self,
      decoded: Iterator[
          tuple[tuple[int, inputs_lib.Input], pending_lib.Pending | None]
      ],
      tell: Callable[[str], object],
  ) -> chunks_lib.Content | None:
    """Return the content of the next part of inputs; None after the last."""
    before = dataclasses.replace(self.engine.counters)
    start = time.perf_counter()
    items, rows, decodes = [], [], []
    for (number, item), ended in itertools.islice(decoded, self.part_size):
      own = self.rows.empty
      if ended is not None:
        own = self.engine.result(ended).decodes
        decodes += own
      items.append(item)
      rows.append(json_files.dumps(self.rows.row(item, own)))
      tell(rows[-1])
      self.shown.show(number + 1)
    if not rows:
      return None
    found = (
        len(items),
        sum(item.is_truncated for item in items),
        sum(not item.is_known for item in items),
    )
    values = dict(zip(COUNTED, found, strict=True))
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
        **workload_lib.search_settings(setup.search),
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
    return record


def find(
    setup: infer_setup.InferSetup,
    source: infer_source.Source,
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


def _decoded(
    decode: Callable[
        [Iterator[request_lib.Request]], Iterator[pending_lib.Pending]
    ],
    request_of: Callable[[inputs_lib.Input], request_lib.Request | None],
    items: Iterable[tuple[int, inputs_lib.Input]],
) -> Iterator[tuple[tuple[int, inputs_lib.Input], pending_lib.Pending | None]]:
  """Yield each item with what its request was decoded to, in their order.

  Items are read when `decode` reads requests, and kept until they are yielded.
  """
  waiting = collections.deque()

  def requests() -> Iterator[request_lib.Request]:
    for item in items:
      request = request_of(item[1])
      waiting.append((item, request is not None))
      if request is not None:
        yield request

  for work in decode(requests()):
    while not waiting[0][1]:  # those before it that have no request
      yield waiting.popleft()[0], None
    yield waiting.popleft()[0], work
  for item, _ in waiting:
    yield item, None
