# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job: a task decoded plainly and speculatively, and compared."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import functools
import itertools
import json
from typing import Any

import numpy as np
import seqio

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import drafters
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import task_metrics

_SIDES = 'baseline', 'speculative'
# Settings in which the configurations of one output folder may differ.
_VARYING = 'temperature', 'device', 'host'


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalSetup:
  """An eval job.

  The attributes are explained in `configs/runs/eval.gin`, but for:

  Attributes:
    samplings: Samplings of the target, which are run one after the other.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    search: Beam search in place of samples; None for none.
    batch_size: Rounded up to a multiple of the mesh's data axis.
  """

  workload: workload_lib.Workload
  drafter: drafters.Drafting
  output_dir: str
  gamma: int
  num_examples: int | None = None
  samplings: Sequence[sampling_lib.Sampling] = (sampling_lib.GREEDY,)
  draft_samplings: Sequence[sampling_lib.Sampling] = ()
  num_decodes: int = 1
  search: beam_search.BeamSearch | None = None
  batch_size: int | None = None
  repeats: int = 1
  chunk_batches: int = 16
  loggers: Sequence[Callable[..., seqio.Logger]] = ()

  def __post_init__(self):
    counts = 'gamma', 'num_decodes', 'batch_size', 'repeats', 'chunk_batches'
    counts += ('num_examples',)
    arguments.check_counts(**{name: getattr(self, name) for name in counts})
    if self.search is not None:
      workload_lib.check_search(
          self.search,
          self.workload,
          self.samplings,
          self.draft_samplings,
          self.num_decodes,
      )


def evaluate(setup: EvalSetup) -> list[run_record.RunRecord]:
  """Decode a split plainly and speculatively and compare texts and time.

  Returns:
    One run record per temperature.
  Raises:
    ValueError: for input that cannot be decoded as configured.
    greedy.MismatchError: if greedy outputs, or samples of a coupled rule,
      differ by more than rounding. The results are written nevertheless.
  """
  workload, search = setup.workload, setup.search
  pairs = sampling_lib.pairs(setup.samplings, setup.draft_samplings)
  with folder_lock.hold(setup.output_dir):
    target, examples = workload.read_task(setup.num_examples)
    decoder, batch_size = workload.find_decoder(
        target,
        setup.drafter,
        gamma=setup.gamma,
        num_decodes=setup.num_decodes if search is None else search.beams,
        batch_size=setup.batch_size,
    )
    decoder = workload_lib.loaded(decoder)
    job = _Evaluation(setup, decoder, examples, batch_size)
    todo = {each: job.chunks(each) for each in pairs}
    alone, *others = todo.values()
    alone.check_alone(_VARYING, others)
    folder = output_folder.OutputFolder(setup.output_dir, 'eval')
    found = []
    for samplings, chunks in todo.items():
      found.append(job.run(samplings, chunks))
      folder.add(found[-1][0], chunks)
    results = folder.finish()
    if setup.loggers:
      for record, metrics in found:
        at = f'metrics/temperature_{record.temperature:g}'
        for side, values in metrics.items():
          task_metrics.log(
              setup.loggers,
              user_paths.expand(setup.output_dir) / at / side,
              examples.task.name,
              target.stored.step,
              values,
          )
  records = [record for record, _ in found]
  console.show(walltime_summary.render_eval(records))
  print(f'Records: {results}')
  greedy.check(records)
  return records


@dataclasses.dataclass(frozen=True)
class _Evaluation:
  """The examples of a setup and their decoder; batch_size is padded."""

  setup: EvalSetup
  decoder: token_decoder.TokenDecoder
  examples: examples_lib.Examples
  batch_size: int

  def chunks(self, samplings: sampling_lib.Pair) -> chunks_lib.Chunks:
    """Return the chunks of one configuration; write nothing yet."""
    search = self.setup.search
    return chunks_lib.Chunks(
        self.setup.output_dir,
        self.setup.workload.new_record(
            'eval',
            self.decoder,
            *samplings,
            num_examples=len(self.examples.rows),
            truncated_inputs=self.examples.num_truncated,
            unknown_inputs=self.examples.num_unknown,
            batch_size=self.batch_size,
            repeats=self.setup.repeats,
            **(dataclasses.asdict(search) if search else {}),
        ),
        {
            'chunk_batches': self.setup.chunk_batches,
            'vocabulary': resumption.of_vocabulary(self.examples.vocabulary),
            'network_configs': provenance.network_configs(self.decoder),
        },
        f'temperature {samplings.target.temperature:g}',
    )

  def run(
      self, samplings: sampling_lib.Pair, chunks: chunks_lib.Chunks
  ) -> tuple[run_record.RunRecord, dict[str, task_metrics.MetricValues]]:
    """Decode and judge all examples; return the record and the metrics."""
    taken = list(self._take(samplings, chunks))
    plain, speculative = (
        interleaved.join([chunk.values[side] for chunk in taken])
        for side in _SIDES
    )
    progress.say(f'temperature {samplings.target.temperature:g}: scoring')
    metrics = {side: self._judge(chunks, taken, side) for side in _SIDES}
    qualities = {side: task_metrics.quality(metrics[side]) for side in _SIDES}
    record = dataclasses.replace(
        walltimes.add_runs(chunks.record, plain, speculative),
        **taken[0].origin,
        quality=run_record.BothRuns(**qualities),
        greedy=greedy.add([chunk.values['greedy'] for chunk in taken]),
    )
    return record, metrics

  def _take(
      self, samplings: sampling_lib.Pair, chunks: chunks_lib.Chunks
  ) -> Iterator[chunks_lib.Chunk]:
    """Yield all chunks, of earlier runs or decoded here."""
    setup = self.setup
    settings = setup.workload.settings(*samplings)
    requests = workload_lib.requests_of(self.examples, settings)
    batches = setup.workload.batches(requests, settings, self.batch_size)
    parts = enumerate(batching.parts(batches, setup.chunk_batches))
    with_identity = (
        (self._identity(i * setup.chunk_batches, len(part)), part)
        for i, part in parts
    )
    num_batches = -(-len(requests) // self.batch_size)
    title = f'temperature {samplings.target.temperature:g}'
    with progress.Progress(title, num_batches) as shown:
      decode = functools.partial(self._decode, samplings, shown.show)
      for number, chunk in enumerate(chunks.take_all(with_identity, decode), 1):
        yield chunk
        shown.show(min(number * setup.chunk_batches, num_batches))

  def _examples_of(self, first: int, count: int) -> examples_lib.Examples:
    """Return the examples of so many batches, from the one of a number on."""
    size = self.batch_size
    return self.examples.part(first * size, (first + count) * size)

  def _identity(self, first: int, count: int) -> list[Any]:
    """Return what the predictions of so many batches depend on, as JSON."""
    examples = self._examples_of(first, count)
    columns = examples.example_ids.tolist(), examples.tokens.tolist()
    hints = [examples.hints] if any(examples.hints) else []
    return [*columns, examples.inputs, examples.references, *hints]

  def _decode(
      self,
      samplings: sampling_lib.Pair,
      after: Callable[[int], object],
      numbered: Iterator[tuple[int, input_batch.InputBatch]],
  ) -> Iterator[chunks_lib.Content]:
    """Decode the batches of chunks in both ways; yield a content per chunk."""
    ways = whole_batches.ways(self.decoder, self.setup.search)
    timer = interleaved.Timer(ways, repeats=self.setup.repeats)
    for part in batching.parts(numbered, self.setup.chunk_batches):
      # The number of a batch in the job sets the order of the ways.
      first = part[0][0]
      placed = [self.decoder.place(batch) for _, batch in part]
      runs = timer.run(placed, first=first, after=after)
      examples = self._examples_of(first, len(part))
      yield self._content(samplings, examples, placed, runs)

  def _content(
      self,
      samplings: sampling_lib.Pair,
      examples: examples_lib.Examples,
      batches: Sequence[input_batch.InputBatch],
      runs: Sequence[interleaved.Run],
  ) -> chunks_lib.Content:
    """Check and compare the outputs of a chunk; return what it holds."""
    for decoded in itertools.chain(*(each.decoded for each in runs)):
      decoded.check_whole()
    search = self.setup.search
    if search is None:
      counted = greedy.compare(self.decoder, batches, *runs)
    else:
      counted = greedy.compare_beams(search.beams, batches, *runs)
    sides, values = {}, {'greedy': counted and dataclasses.asdict(counted)}
    for name, each in zip(_SIDES, runs, strict=True):
      outputs = whole_batches.outputs(
          self.decoder, each.decoded, len(examples.rows)
      )
      sides[name] = predictions_lib.read(
          outputs, examples.vocabulary, self.decoder.target_model.special_ids
      )
      values[name] = each.stored()
    values['aux_values'] = {
        name: {key: x.tolist() for key, x in side.aux_values.items()}
        for name, side in sides.items()
    }
    rows = predictions_lib.rows(examples, samplings.target.temperature, sides)
    return chunks_lib.Content([json_files.dumps(row) for row in rows], values)

  def _judge(
      self,
      rows: Iterable[str],
      taken: Sequence[chunks_lib.Chunk],
      side: str,
  ) -> task_metrics.MetricValues:
    """Compute the task's metrics of the best decodes of one side."""
    texts = [predictions_lib.best_of(json.loads(row)[side]) for row in rows]
    columns = [chunk.values['aux_values'][side] for chunk in taken]
    aux_values = {
        name: np.concatenate([each[name] for each in columns])
        for name in columns[0]
    }
    return task_metrics.compute(self.examples, texts, aux_values)
