# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job: a task decoded plainly and speculatively, and compared."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from speculative_t5x import batching
from speculative_t5x import run_record
from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.drafters import source
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.measurement import greedy
from speculative_t5x.measurement import interleaved
from speculative_t5x.measurement import tracing
from speculative_t5x.measurement import walltimes
from speculative_t5x.outputs import folder_lock
from speculative_t5x.outputs import output_folder
from speculative_t5x.reports import console
from speculative_t5x.reports import eval_table
from speculative_t5x.reports import token_trace
from speculative_t5x.runtime import arguments
from speculative_t5x.speculation import sampling
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all configurations of one job share."""

  workload: workload_lib.Workload
  decoder: token_decoder.TokenDecoder
  examples: examples_lib.Examples
  batch_size: int
  repeats: int


def evaluate(
    *,
    workload: workload_lib.Workload,
    drafter: source.Source,
    output_dir: str,
    gamma: int,
    num_examples: int | None = None,
    temperature: float | Sequence[float] = 0.0,
    draft_temperature: float | None = None,
    num_decodes: int = 1,
    batch_size: int = 1,
    repeats: int = 1,
    shown_example: int | None = None,
) -> list[run_record.RunRecord]:
  """Decodes a split plainly and speculatively and compares texts and times.

  Args:
    workload: the task and the target.
    drafter: drafts for the target.
    output_dir: see `outputs.output_folder`.
    gamma: draft tokens per block, at least 1.
    num_examples: how many are decoded, from the first on; None for all.
    temperature: one, or several to be run one after the other.
    draft_temperature: None for the target's.
    num_decodes: samples per example; the best one of each is scored.
    batch_size: examples decoded together.
    repeats: how often each batch is timed; the median counts.
    shown_example: number of an example whose blocks are printed, or None.
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
      num_examples=1 if num_examples is None else num_examples,
  )
  source.check_source(drafter)
  temperatures = arguments.several('temperature', temperature)
  for each in (*temperatures, draft_temperature or 0.0):
    workload.sampling(each)  # before anything is read
  mesh = workload.make_mesh(batch_size)
  with folder_lock.hold(output_dir):
    target = workload.find_target(mesh)
    examples = workload.load_examples(target, num_examples)
    _check_shown_example(shown_example, len(examples.tokens))
    target = workload_lib.bind_vocabulary(target, examples)
    # The drafter first: it is read sooner, and may not fit.
    loaded_drafter = workload_lib.find_drafter(
        drafter, target, examples.vocabulary
    ).load()
    decoder = token_decoder.TokenDecoder(
        workload_lib.load_target(target, examples.vocabulary),
        loaded_drafter,
        gamma=gamma,
        length=workload.length,
        num_decodes=num_decodes,
        matmul_precision=workload.matmul_precision,
    )
    setup = _Setup(workload, decoder, examples, batch_size, repeats)
    folder = output_folder.OutputFolder(output_dir, 'eval')
    folder.clear()
    records = []
    for each in temperatures:
      own = each if draft_temperature is None else draft_temperature
      record, predictions = _evaluate_at(setup, each, own)
      folder.add(record, predictions)
      records.append(record)
    results = folder.finish()
    if shown_example is not None:
      _show(setup, shown_example)
  console.show(eval_table.render(records))
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _check_shown_example(number: int | None, num_examples: int) -> None:
  if number is not None and not 0 <= number < num_examples:
    raise ValueError(
        f'There is no example {number} to show among the {num_examples} to'
        ' decode. Give a smaller number, from 0 on.'
    )


def _requests(
    setup: _Setup, temperature: float, draft_temperature: float
) -> list[token_decoder.Request]:
  requests = batching.requests(
      setup.examples.tokens,
      setup.examples.example_ids,
      batch_size=setup.batch_size,
      length=setup.decoder.length,
      seed=setup.workload.seed,
      sampling=setup.workload.sampling(temperature),
      draft_sampling=setup.workload.sampling(draft_temperature),
      padding=setup.decoder.target_model.special_ids.padding,
  )
  return [setup.decoder.place(request) for request in requests]


def _evaluate_at(
    setup: _Setup, temperature: float, draft_temperature: float
) -> tuple[run_record.RunRecord, list[dict[str, Any]]]:
  """Returns the record and the predictions of one temperature."""
  batches = _requests(setup, temperature, draft_temperature)
  plain, speculative = interleaved.run(
      setup.decoder,
      batches,
      repeats=setup.repeats,
      name=f'temperature {temperature:g}',
  )
  for decoded in (*plain.decoded, *speculative.decoded):
    token_decoder.check_finite(decoded)
  sides = {
      name: predictions_lib.read(run, setup.examples, setup.decoder)
      for name, run in (('baseline', plain), ('speculative', speculative))
  }
  quality = {
      name: predictions_lib.judge(setup.examples, side)
      for name, side in sides.items()
  }
  settings = _settings(setup, temperature, draft_temperature)
  record = dataclasses.replace(
      walltimes.add_runs(settings, plain, speculative),
      quality=run_record.BothRuns(**quality),
  )
  if temperature <= sampling.MIN_TEMPERATURE:
    counted = greedy.compare(setup.decoder, batches, plain, speculative)
    record = dataclasses.replace(record, greedy=counted)
  return record, predictions_lib.rows(setup.examples, temperature, sides)


def _settings(
    setup: _Setup, temperature: float, draft_temperature: float
) -> run_record.RunRecord:
  return setup.workload.new_record(
      'eval',
      setup.decoder,
      temperature,
      draft_temperature,
      num_examples=len(setup.examples.tokens),
      truncated_inputs=setup.examples.num_truncated,
      batch_size=setup.batch_size,
      repeats=setup.repeats,
  )


def _show(setup: _Setup, number: int) -> None:
  """Prints the tokens of one example, one line per target call."""
  only = dataclasses.replace(
      setup.examples,
      tokens=setup.examples.tokens[number : number + 1],
      example_ids=setup.examples.example_ids[number : number + 1],
  )
  # A batch has at least one row per device along the data axis of a mesh.
  num_rows = sharding.describe(setup.decoder.mesh).get(sharding.DATA_AXIS, 1)
  request = _requests(
      dataclasses.replace(setup, examples=only, batch_size=num_rows), 0.0, 0.0
  )[0]
  blocks = tracing.trace(setup.decoder, request)
  pieces = setup.examples.vocabulary.tokenizer.IdToPiece
  inputs = setup.examples.inputs[number]
  console.show(token_trace.TokenTrace(blocks, pieces, inputs))
