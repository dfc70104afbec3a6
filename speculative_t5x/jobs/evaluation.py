# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The eval job: a task decoded plainly and speculatively, and compared."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from speculative_t5x import run_record
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x import tracing
from speculative_t5x.jobs import counts
from speculative_t5x.jobs import examples as examples_lib
from speculative_t5x.jobs import folder_lock
from speculative_t5x.jobs import greedy
from speculative_t5x.jobs import output_folder
from speculative_t5x.jobs import pair_loading
from speculative_t5x.jobs import predictions as predictions_lib
from speculative_t5x.jobs import report
from speculative_t5x.networks import t5
from speculative_t5x.walltime import measurement
from speculative_t5x.walltime import side_by_side


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all configurations of one job share."""

  decoder: token_decoder.TokenDecoder
  examples: examples_lib.Examples
  batch_size: int
  repeats: int
  settings: dict[str, Any]  # keys of the run record


def evaluate(
    *,
    mixture_or_task_name: str,
    split: str,
    target_config: t5.T5Config,
    draft_config: t5.T5Config,
    checkpoint_path: str,
    draft_checkpoint_path: str,
    output_dir: str,
    gamma: int,
    task_feature_lengths: Mapping[str, int],
    num_examples: int | None = None,
    temperature: float | Sequence[float] = 0.0,
    topk: int = 0,
    topp: float = 0.0,
    draft_temperature: float | None = None,
    draft_vocabulary_file: str | None = None,
    num_decodes: int = 1,
    seed: int = 0,
    batch_size: int = 1,
    mesh_shape: Sequence[int] = (1, 1),
    draft_model_parallel: bool = False,
    repeats: int = 1,
    matmul_precision: str | None = 'highest',
    shown_example: int | None = None,
) -> list[run_record.Record]:
  """Decodes a split in both ways, judges both, and says what it gained.

  Args:
    mixture_or_task_name: a registered seqio task.
    split: of it.
    target_config: sizes of the target.
    draft_config: sizes of the draft.
    checkpoint_path: the target's T5X checkpoint.
    draft_checkpoint_path: the draft's.
    output_dir: see `jobs.output_folder`.
    gamma: guesses a block, at least 1.
    task_feature_lengths: most tokens of 'inputs' and 'targets'.
    num_examples: the first so many; None for all.
    temperature: one, or several to be run one after the other.
    topk: keep the k likeliest tokens; 0 is off.
    topp: keep the likeliest tokens of this mass; 0 is off.
    draft_temperature: None for the target's.
    draft_vocabulary_file: the draft's own SentencePiece model, to be compared
      with the task's; None if they are known to be the same.
    num_decodes: samples an example; the best one of each is judged.
    seed: of the samples.
    batch_size: examples decoded together.
    mesh_shape: over how many devices the examples of a batch are dealt out, and
      over how many the target is.
    draft_model_parallel: whether the draft is too; each device holds all of it
      otherwise.
    repeats: how often each batch is timed; the median counts.
    matmul_precision: JAX's setting; 'highest' multiplies float32 in float32
      on TPU and GPU too.
    shown_example: number of an example whose blocks are printed, or None.
  Returns:
    One run record for each temperature.
  Raises:
    ValueError: for input that cannot be decoded as asked.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  counts.check(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      repeats=repeats,
      num_examples=1 if num_examples is None else num_examples,
  )
  token_decoder.check_int32('seed', seed)
  temperatures = counts.several('temperature', temperature)
  for each in (*temperatures, draft_temperature or 0.0):
    sampling_lib.make_sampling(each, topk, topp)  # before anything is read
  mesh = pair_loading.make_mesh(mesh_shape, batch_size)
  with folder_lock.hold(output_dir):
    examples = examples_lib.load(
        mixture_or_task_name, split, task_feature_lengths, num_examples
    )
    _check_shown_example(shown_example, len(examples.tokens))
    setup = _Setup(
        pair_loading.load_decoder(
            target_config=target_config,
            draft_config=draft_config,
            checkpoint_path=checkpoint_path,
            draft_checkpoint_path=draft_checkpoint_path,
            draft_vocabulary_file=draft_vocabulary_file,
            vocabulary=examples.vocabulary,
            gamma=gamma,
            length=task_feature_lengths['targets'],
            num_decodes=num_decodes,
            mesh=mesh,
            draft_model_parallel=draft_model_parallel,
            matmul_precision=matmul_precision,
        ),
        examples,
        batch_size,
        repeats,
        {
            'task': mixture_or_task_name,
            'split': split,
            'inputs_length': task_feature_lengths['inputs'],
            'targets_length': task_feature_lengths['targets'],
            'topk': topk,
            'topp': topp,
            'seed': seed,
        },
    )
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
      print(_show(setup, shown_example))
  print(report.table(records))
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
  rules = setup.settings['topk'], setup.settings['topp']
  requests = side_by_side.requests(
      setup.examples.tokens,
      setup.examples.example_ids,
      batch_size=setup.batch_size,
      length=setup.decoder.length,
      seed=setup.settings['seed'],
      sampling=sampling_lib.make_sampling(temperature, *rules),
      draft_sampling=sampling_lib.make_sampling(draft_temperature, *rules),
  )
  return [setup.decoder.place(request) for request in requests]


def _evaluate_at(
    setup: _Setup, temperature: float, draft_temperature: float
) -> tuple[run_record.Record, list[dict[str, Any]]]:
  """Runs one temperature: its record and its predictions."""
  batches = _requests(setup, temperature, draft_temperature)
  plain, speculative = side_by_side.run(
      setup.decoder,
      batches,
      repeats=setup.repeats,
      name=f'temperature {temperature:g}',
  )
  for decoded in (*plain.decoded, *speculative.decoded):
    token_decoder.check_finite(decoded)
  sides = {
      name: predictions_lib.read(
          run, setup.examples, setup.decoder.num_decodes
      )
      for name, run in (('baseline', plain), ('speculative', speculative))
  }
  record = _record(
      setup, temperature, draft_temperature, plain, speculative
  )
  record['quality'] = {
      name: predictions_lib.judge(setup.examples, side)
      for name, side in sides.items()
  }
  if temperature <= sampling_lib.MIN_TEMPERATURE:
    record['greedy'] = greedy.compare(
        setup.decoder, batches, plain, speculative
    )
  return record, predictions_lib.rows(setup.examples, temperature, sides)


def _record(
    setup: _Setup,
    temperature: float,
    draft_temperature: float,
    plain: side_by_side.Run,
    speculative: side_by_side.Run,
) -> run_record.Record:
  decoder = setup.decoder
  return run_record.make(
      'eval',
      **setup.settings,
      **measurement.describe_runs(
          decoder, plain, speculative, setup.repeats
      ),
      num_examples=len(setup.examples.tokens),
      truncated_inputs=setup.examples.num_truncated,
      target=run_record.describe_model(decoder.target),
      drafter=run_record.describe_draft(decoder.draft, draft_temperature),
      verification={'rule': 'tokenwise', 'lenience': None},
      temperature=temperature,
      batch_size=setup.batch_size,
      lossless=True,
  )


def _show(setup: _Setup, number: int) -> str:
  """One example's blocks, guesses told apart by colour."""
  only = dataclasses.replace(
      setup.examples,
      tokens=setup.examples.tokens[number : number + 1],
      example_ids=setup.examples.example_ids[number : number + 1],
  )
  # Along the data axis of a mesh there is no fewer than a row a device.
  num_rows = sharding.describe(setup.decoder.mesh).get(sharding.DATA_AXIS, 1)
  request = _requests(
      dataclasses.replace(setup, examples=only, batch_size=num_rows), 0.0, 0.0
  )[0]
  blocks = tracing.trace(setup.decoder, request)
  pieces = setup.examples.vocabulary.tokenizer.IdToPiece
  return '\n'.join(
      [
          f'Input: {setup.examples.inputs[number]}',
          tracing.render(blocks, pieces),
          tracing.legend(),
      ]
  )
