# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job: a task decoded plainly and speculatively, and compared."""

from collections.abc import Callable, Iterator, Sequence
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
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import token_trace
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import task_metrics

_SIDES = 'baseline', 'speculative'
# Settings in which the configurations of one output folder may differ.
_VARYING = 'temperature', 'device', 'host'


def evaluate(
    *,
    workload: workload_lib.Workload,
    drafter: drafters.Choice,
    output_dir: str,
    gamma: int,
    num_examples: int | None = None,
    samplings: Sequence[sampling_lib.Sampling] = (sampling_lib.GREEDY,),
    draft_samplings: Sequence[sampling_lib.Sampling] = (),
    num_decodes: int = 1,
    search: beam_search.BeamSearch | None = None,
    batch_size: int | None = None,
    repeats: int = 1,
    chunk_batches: int = 16,
    shown_example: int | None = None,
    loggers: Sequence[Callable[..., seqio.Logger]] = (),
) -> list[run_record.RunRecord]:
  """Decode a split plainly and speculatively and compare texts and time.

  The arguments are explained in `configs/runs/eval.gin`, but for:

  Args:
    samplings: Samplings of the target, which are run one after the other.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    search: Beam search in place of samples; None for none.
    batch_size: Rounded up to a multiple of the mesh's data axis.
    shown_example: Number of an example whose blocks are printed, or None.
  Returns:
    One run record per temperature.
  Raises:
    ValueError: for input that cannot be decoded as configured.
    greedy.MismatchError: if greedy outputs, or samples of a coupled rule,
      differ by more than rounding. The results are written nevertheless.
  """
  arguments.check_counts(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      repeats=repeats,
      chunk_batches=chunk_batches,
      num_examples=num_examples,
  )
  if search is not None:
    workload_lib.check_search(
        search, workload, samplings, draft_samplings, num_decodes
    )
    if shown_example is not None:
      raise ranges.ArgumentError(
          'shown_example shows the tokens of one output per line, and a beam'
          ' search has several at once. Set it to None.',
          shown_example=shown_example,
      )
  pairs = sampling_lib.pairs(samplings, draft_samplings)
  batch_size = workload_lib.pad_batch(workload.make_mesh(), batch_size)
  with folder_lock.hold(output_dir):
    target, examples = workload.read_task(num_examples)
    if shown_example is not None:
      allowed = ranges.whole(0, len(examples.rows) - 1)
      ranges.check_settings(allowed, shown_example=shown_example)
    decoder, batch_size = workload.load_decoder(
        target,
        drafter,
        examples.vocabulary,
        gamma=gamma,
        num_decodes=num_decodes if search is None else search.beams,
        batch_size=batch_size,
    )
    if any(examples.hints):
      workload_lib.note_unread_hints(decoder)
    workload_lib.note_unread_sampling(decoder, pairs)
    job = _Evaluation(
        workload, decoder, search, examples, batch_size, repeats, chunk_batches
    )
    todo = {each: job.chunks(output_dir, each) for each in pairs}
    alone, *others = todo.values()
    alone.check_alone(_VARYING, others)
    folder = output_folder.OutputFolder(output_dir, 'eval')
    found = []
    for samplings, chunks in todo.items():
      found.append(job.run(samplings, chunks))
      folder.add(found[-1][0], chunks)
    results = folder.finish()
    if loggers:
      for record, metrics in found:
        at = f'metrics/temperature_{record.temperature:g}'
        for side, values in metrics.items():
          task_metrics.log(
              loggers,
              user_paths.expand(output_dir) / at / side,
              examples.task.name,
              target.checkpoint.step,
              values,
          )
    if shown_example is not None:
      job.show(shown_example)
  records = [record for record, _ in found]
  console.show(walltime_summary.render_eval(records))
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _identity(examples: examples_lib.Examples) -> list[Any]:
  """Return what the predictions of examples depend on, as JSON."""
  columns = examples.example_ids.tolist(), examples.tokens.tolist()
  hints = [examples.hints] if any(examples.hints) else []
  return [*columns, examples.inputs, examples.references, *hints]


@dataclasses.dataclass(frozen=True)
class _Evaluation:
  """What is decoded, by what, and in which batches; see `evaluate`."""

  workload: workload_lib.Workload
  decoder: token_decoder.TokenDecoder
  search: beam_search.BeamSearch | None
  examples: examples_lib.Examples
  batch_size: int
  repeats: int
  chunk_batches: int

  def chunks(
      self, output_dir: str, samplings: sampling_lib.Pair
  ) -> chunks_lib.Chunks:
    """Return the chunks of one configuration; write nothing yet."""
    return chunks_lib.Chunks(
        output_dir,
        self.workload.new_record(
            'eval',
            self.decoder,
            *samplings,
            num_examples=len(self.examples.rows),
            truncated_inputs=self.examples.num_truncated,
            unknown_inputs=self.examples.num_unknown,
            batch_size=self.batch_size,
            repeats=self.repeats,
            **workload_lib.search_settings(self.search),
        ),
        {
            'chunk_batches': self.chunk_batches,
            'vocabulary': resumption.of_vocabulary(self.examples.vocabulary),
            'network_configs': provenance.network_configs(self.decoder),
        },
        f'temperature {samplings.target.temperature:g}',
    )

  def run(
      self, samplings: sampling_lib.Pair, chunks: chunks_lib.Chunks
  ) -> tuple[run_record.RunRecord, dict[str, task_metrics.MetricValues]]:
    """Decode and judge all examples; return the record and the metrics."""
    found = list(self._take(samplings, chunks))
    plain, speculative = (
        interleaved.join([chunk.values[side] for chunk in found])
        for side in _SIDES
    )
    progress.say(f'temperature {samplings.target.temperature:g}: scoring')
    metrics = {side: self._judge(found, side) for side in _SIDES}
    qualities = {side: task_metrics.quality(metrics[side]) for side in _SIDES}
    record = dataclasses.replace(
        walltimes.add_runs(chunks.record, plain, speculative),
        **found[0].origin,
        quality=run_record.BothRuns(**qualities),
        greedy=greedy.add([chunk.values['greedy'] for chunk in found]),
    )
    return record, metrics

  def _take(
      self, samplings: sampling_lib.Pair, chunks: chunks_lib.Chunks
  ) -> Iterator[chunks_lib.Chunk]:
    """Yield all chunks, of earlier runs or decoded here."""
    size = self.batch_size
    settings = self.workload.settings(*samplings)
    requests = workload_lib.requests_of(self.examples, settings)
    batches = self.workload.batches(requests, settings, size)
    ways = whole_batches.ways(self.decoder, self.search)
    timer = interleaved.Timer(ways, repeats=self.repeats)
    num_batches = -(-len(requests) // size)
    title = f'temperature {samplings.target.temperature:g}'
    with progress.Progress(title, num_batches) as shown:
      parts = batching.parts(batches, self.chunk_batches)
      for number, part in enumerate(parts):
        first = number * self.chunk_batches
        end = first + len(part)
        examples = self.examples.part(first * size, end * size)
        placed = [self.decoder.place(batch) for batch in part]
        # The number of a batch in the job sets the order of the ways.
        run = functools.partial(
            timer.run, placed, first=first, after=shown.show
        )
        decode = functools.partial(
            self._decode, samplings, examples, placed, run
        )
        yield chunks.take(number, _identity(examples), decode)
        shown.show(end)

  def _decode(
      self,
      samplings: sampling_lib.Pair,
      examples: examples_lib.Examples,
      batches: Sequence[input_batch.InputBatch],
      run: Callable[[], Sequence[interleaved.Run]],
  ) -> chunks_lib.Content:
    """Decode the examples of a chunk in both ways."""
    runs = run()
    for decoded in itertools.chain(*(each.decoded for each in runs)):
      decoded.check_whole()
    if self.search is None:
      counted = greedy.compare(self.decoder, batches, *runs)
    else:
      counted = greedy.compare_beams(self.search.beams, batches, *runs)
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
      self, chunks: Sequence[chunks_lib.Chunk], side: str
  ) -> task_metrics.MetricValues:
    """Compute the task's metrics of the best decodes of one side."""
    rows = (json.loads(row) for chunk in chunks for row in chunk.rows)
    texts = [predictions_lib.best_of(row[side]) for row in rows]
    columns = [chunk.values['aux_values'][side] for chunk in chunks]
    aux_values = {
        name: np.concatenate([each[name] for each in columns])
        for name in columns[0]
    }
    return task_metrics.compute(self.examples, texts, aux_values)

  def show(self, number: int) -> None:
    """Print the tokens of one example, one line per target call."""
    settings = self.workload.settings(sampling_lib.GREEDY)
    (batch,) = self.workload.batches(
        workload_lib.requests_of(
            self.examples.part(number, number + 1), settings
        ),
        settings,
        sharding.round_up(self.decoder.mesh, 1),
    )
    progress.say(f'tracing example {number}')
    blocks = token_trace.blocks_of(self.decoder, batch)
    pieces = self.examples.vocabulary.id_to_piece
    inputs = self.examples.inputs[number]
    console.show(token_trace.TokenTrace(blocks, pieces, inputs))
