# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job: a task decoded plainly and speculatively, and compared."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import json
from typing import Any, NamedTuple

from etils import epath
import numpy as np
import seqio

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_lines
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import tallies
from speculative_t5x.research.measurement import tracing
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import eval_table
from speculative_t5x.research.reports import token_trace
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import task_metrics

_SIDES = 'baseline', 'speculative'
# Settings in which the configurations of one output folder may differ.
_VARYING = 'temperature', 'device', 'host'


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all configurations of one job share."""

  workload: workload_lib.Workload
  decoder: token_decoder.TokenDecoder
  examples: examples_lib.Examples
  batch_size: int
  repeats: int
  chunk_batches: int
  output_dir: str


class _Todo(NamedTuple):
  """What one configuration decodes."""

  samplings: sampling_lib.Pair
  chunks: chunks_lib.Chunks


@dataclasses.dataclass(frozen=True)
class _Result:
  """What one sampling gave; `metrics` by side."""

  record: run_record.RunRecord
  metrics: dict[str, task_metrics.MetricValues]


def evaluate(
    *,
    workload: workload_lib.Workload,
    drafter: source.Source,
    output_dir: str,
    gamma: int,
    num_examples: int | None = None,
    samplings: Sequence[sampling_lib.Sampling] = (sampling_lib.GREEDY,),
    draft_samplings: Sequence[sampling_lib.Sampling] = (),
    num_decodes: int = 1,
    batch_size: int = 1,
    repeats: int = 1,
    chunk_batches: int = 16,
    shown_example: int | None = None,
    loggers: Sequence[Callable[..., seqio.Logger]] = (),
) -> list[run_record.RunRecord]:
  """Decodes a split plainly and speculatively and compares texts and times.

  A job that was killed resumes after the chunks that it finished.

  Args:
    workload: the task and the target.
    drafter: drafts for the target.
    output_dir: see `outputs.output_folder`.
    gamma: draft tokens per block, at least 1.
    num_examples: how many are decoded, from the first on; None for all.
    samplings: Samplings of the target, which are run one after the other.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    num_decodes: samples per example; the best one of each is scored.
    batch_size: examples decoded together; rounded up to a multiple of the
      mesh's data axis.
    repeats: how often each batch is timed; the median counts.
    chunk_batches: batches per chunk, the unit of resumption.
    shown_example: number of an example whose blocks are printed, or None.
    loggers: classes of seqio loggers that get the metrics when the job ends;
      they write to `metrics` in the output folder.
  Returns:
    One run record per temperature.
  Raises:
    ValueError: for input that cannot be decoded as configured.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  arguments.check(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      repeats=repeats,
      chunk_batches=chunk_batches,
      num_examples=1 if num_examples is None else num_examples,
  )
  source.check_source(drafter)
  task_metrics.check_loggers(loggers)
  pairs = sampling_lib.pairs(samplings, draft_samplings)
  mesh = workload.make_mesh()
  batch_size = workload_lib.pad_batch(mesh, batch_size)
  with folder_lock.hold(output_dir):
    target = workload.find_target(mesh)
    examples = workload.load_examples(target, num_examples)
    count = len(examples.tokens)
    if shown_example is not None and not 0 <= shown_example < count:
      raise ValueError(
          f'There is no example {shown_example} to show among the {count} to'
          ' decode. Give a smaller number, from 0 on.'
      )
    target = workload_lib.bind_vocabulary(target, examples)
    decoder = workload.load_decoder(
        target,
        drafter,
        examples.vocabulary,
        gamma=gamma,
        num_decodes=num_decodes,
    )
    if any(examples.hints):
      workload_lib.note_unread_hints(decoder)
    setup = _Setup(
        workload,
        decoder,
        examples,
        batch_size,
        repeats,
        chunk_batches,
        output_dir,
    )
    todo = [_Todo(each, _chunks(setup, each)) for each in pairs]
    todo[0].chunks.check_alone(_VARYING)
    folder = output_folder.OutputFolder(output_dir, 'eval')
    found = []
    for each in todo:
      found.append(_evaluate(setup, each))
      folder.add(found[-1].record, each.chunks)
    results = folder.finish()
    if loggers:
      _log(loggers, setup, target.checkpoint.step, found)
    if shown_example is not None:
      _show(setup, shown_example)
  records = [each.record for each in found]
  console.show(eval_table.render(records))
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _chunks(
    setup: _Setup, samplings: sampling_lib.Pair
) -> chunks_lib.Chunks:
  """Returns the chunks of one configuration."""
  return chunks_lib.Chunks(
      setup.output_dir,
      _settings(setup, samplings),
      {
          'chunk_batches': setup.chunk_batches,
          'network_configs': provenance.network_configs(setup.decoder),
      },
      f'temperature {samplings.target.temperature:g}',
  )


def _evaluate(setup: _Setup, todo: _Todo) -> _Result:
  """Decodes and judges all examples in one sampling."""
  settings = todo.chunks.record
  found = _take_chunks(setup, todo)
  plain, speculative = (
      tallies.join(
          [run_record.from_dict(c.values[side], tallies.Tally) for c in found]
      )
      for side in _SIDES
  )
  progress.say(f'temperature {settings.temperature:g}: scoring')
  metrics = {side: _judge(setup.examples, found, side) for side in _SIDES}
  qualities = {side: task_metrics.quality(metrics[side]) for side in _SIDES}
  record = dataclasses.replace(
      walltimes.add_runs(settings, plain, speculative),
      **found[0].origin,
      quality=run_record.BothRuns(**qualities),
      greedy=greedy.add([chunk.values['greedy'] for chunk in found]),
  )
  return _Result(record, metrics)


def _take_chunks(setup: _Setup, todo: _Todo) -> list[chunks_lib.Chunk]:
  """Returns all chunks, of earlier runs or decoded here."""
  size = setup.batch_size
  temperature = todo.samplings.target.temperature
  requests = setup.workload.requests(size, *todo.samplings).of(
      workload_lib.request_rows(setup.examples)
  )
  timer = interleaved.Timer(
      (setup.decoder.plain, setup.decoder.speculative), repeats=setup.repeats
  )
  found, first = [], 0
  num_batches = -(-len(setup.examples.rows) // size)
  with progress.Progress(f'temperature {temperature:g}', num_batches) as shown:
    for part in batching.parts(requests, setup.chunk_batches):
      end = first + len(part)
      own = dataclasses.replace(
          setup, examples=setup.examples.part(first * size, end * size)
      )
      batches = [setup.decoder.place(request) for request in part]
      decode = functools.partial(
          _decode_chunk, own, todo.samplings, batches, timer, first, shown
      )
      chunk = todo.chunks.take(len(found), _identity(own.examples), decode)
      found.append(chunk)
      shown.show(end)
      first = end
  return found


def _decode_chunk(
    setup: _Setup,
    samplings: sampling_lib.Pair,
    batches: list[requests_lib.Request],
    timer: interleaved.Timer,
    first: int,
    shown: progress.Progress,
) -> chunks_lib.Content:
  """Decodes the examples of the setup in both ways, from batch `first` on."""
  examples, decoder = setup.examples, setup.decoder
  runs = timer.run(batches, first=first, after=shown.show)
  for decoded in itertools.chain(*(run.decoded for run in runs)):
    token_decoder.check_finite(decoded)
  counted = None
  if samplings.target.is_greedy and setup.workload.rule.is_lossless:
    counted = greedy.compare(decoder, batches, *runs)
  count = len(examples.tokens)
  sides, values = {}, {'greedy': counted and dataclasses.asdict(counted)}
  for name, run in zip(_SIDES, runs, strict=True):
    sides[name] = predictions_lib.read(
        run.decoded, count, decoder, examples.vocabulary
    )
    values[name] = dataclasses.asdict(run.tally())
  values['aux_values'] = {
      name: {key: x.tolist() for key, x in side.aux_values.items()}
      for name, side in sides.items()
  }
  temperature = samplings.target.temperature
  rows = predictions_lib.rows(examples, temperature, sides)
  return chunks_lib.Content([json_lines.dumps(row) for row in rows], values)


def _identity(examples: examples_lib.Examples) -> list[Any]:
  """Returns what the predictions of examples depend on, as JSON."""
  columns = examples.example_ids.tolist(), examples.tokens.tolist()
  hints = [examples.hints] if any(examples.hints) else []
  return [*columns, examples.inputs, examples.references, *hints]


def _judge(
    examples: examples_lib.Examples,
    chunks: Sequence[chunks_lib.Chunk],
    side: str,
) -> task_metrics.MetricValues:
  """Computes the task's metrics of the best decodes of one side."""
  rows = (json.loads(row) for chunk in chunks for row in chunk.rows)
  texts = [predictions_lib.best_of(row[side]) for row in rows]
  columns = [chunk.values['aux_values'][side] for chunk in chunks]
  aux_values = {
      name: np.concatenate([each[name] for each in columns])
      for name in columns[0]
  }
  return task_metrics.compute(examples, texts, aux_values)


def _log(
    loggers: Sequence[Callable[..., seqio.Logger]],
    setup: _Setup,
    step: int,
    results: Sequence[_Result],
) -> None:
  """Logs the metrics of all temperatures, each side in a folder of its own."""
  folder = epath.Path(setup.output_dir) / 'metrics'
  for result in results:
    for side, values in result.metrics.items():
      task_metrics.log(
          loggers,
          folder / f'temperature_{result.record.temperature:g}' / side,
          setup.examples.task.name,
          step,
          values,
      )


def _settings(
    setup: _Setup, samplings: sampling_lib.Pair
) -> run_record.RunRecord:
  return setup.workload.new_record(
      'eval',
      setup.decoder,
      *samplings,
      num_examples=len(setup.examples.tokens),
      truncated_inputs=setup.examples.num_truncated,
      unknown_inputs=setup.examples.num_unknown,
      batch_size=setup.batch_size,
      repeats=setup.repeats,
  )


def _show(setup: _Setup, number: int) -> None:
  """Prints the tokens of one example, one line per target call."""
  only = setup.examples.part(number, number + 1)
  num_rows = sharding.round_up(setup.decoder.mesh, 1)
  requests = setup.workload.requests(num_rows, sampling_lib.GREEDY)
  (request,) = requests.of(workload_lib.request_rows(only))
  progress.say(f'tracing example {number}')
  blocks = tracing.trace(setup.decoder, request)
  pieces = setup.examples.vocabulary.id_to_piece
  inputs = setup.examples.inputs[number]
  console.show(token_trace.TokenTrace(blocks, pieces, inputs))
