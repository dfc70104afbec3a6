# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job: compares what two runs wrote, up to rounding.

The runs are output folders of the eval job or the infer job. Greedy outputs and
samples of a coupled rule that differ are explained, whatever drafted them;
other samples that differ are counted.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import itertools
import os
from typing import Any

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import sharding
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import divergence
from speculative_t5x.research.reports import runs as runs_lib
from speculative_t5x.rules import coupled
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification
from speculative_t5x.tasks import predictions as predictions_lib

# Where a checkpoint lies and how it lies on devices changes no token.
_PLACES = 'checkpoint', 'model_parallel', 'table'
# Rules that say how samples were drawn, plain ones too.
_COUPLED = {
    rule.name: rule for rule in (coupled.Coupled(), coupled.CoupledGumbel())
}


def compare(
    *,
    first: str,
    second: str,
    output_dir: str | None = None,
    checkpoint_path: str | None = None,
    target_config: models.Config = None,
) -> list[dict[str, Any]]:
  """Compare two runs token by token and explain the rows that differ.

  The arguments are explained in `configs/runs/compare.gin`.

  Returns:
    One comparison per temperature and way of decoding, as in the file.
  Raises:
    ValueError: if the runs cannot be compared; names what differs.
    greedy.MismatchError: if rows differ by more than rounding. The results are
      written nevertheless.
  """
  firsts, seconds = _read(first), _read(second)
  every = list(itertools.product(firsts, seconds))
  pairs = [pair for pair in every if pair[0].name == pair[1].name]
  # Their outputs do not depend on the way of decoding.
  pairs = pairs or [pair for pair in every if _write_the_same(*pair)]
  if not pairs:
    names = [', '.join(run.name for run in runs) for runs in (firsts, seconds)]
    raise ValueError(
        f'The runs cannot be compared: {names[0]}, and {names[1]}. Above'
        ' temperature 0 they draw other samples.'
    )
  for pair in pairs:
    _check_comparable(*pair)
  if output_dir is not None:
    whole_files.check_writable(user_paths.expand(output_dir))
  first_record = pairs[0][0].record
  load_target = functools.cache(
      lambda: _load_target(first_record, checkpoint_path, target_config)
  )
  load = functools.cache(lambda run: _decoder(load_target(), run))
  compared = [
      divergence.compared(
          [run.record for run in pair],
          [run.way for run in pair],
          len(pair[0].rows) * pair[0].record.num_decodes,
          _compare_rows(load, *pair),
      )
      for pair in pairs
  ]
  console.show(divergence.render(compared))
  if output_dir is not None:
    lines = map(json_files.dumps, compared)
    whole_files.write(user_paths.expand(output_dir), 'divergence.jsonl', lines)
  wrong = [
      row
      for each in compared
      for row in each['differences']
      if row['verdict'] == divergence.MISMATCH
  ]
  if wrong:
    raise greedy.MismatchError(
        f'{len(wrong)} outputs differ by more than rounding, the first that of'
        f' example {wrong[0]["example_id"]} at position'
        f' {wrong[0]["position"]}. Please report it with divergence.jsonl'
        ' (--output_dir=<folder>).'
    )
  return compared


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
  """One way of decoding in an output folder, at one temperature."""

  record: run_record.RunRecord
  way: str  # 'baseline' or 'speculative'
  rows: Sequence[Mapping[str, Any]]  # of `predictions.jsonl`
  tokens: Sequence[Sequence[Sequence[int]]]  # of each decode of each row

  @property
  def name(self) -> str:
    return f'{self.way} at temperature {self.record.temperature:g}'

  @property
  def is_plain(self) -> bool:
    return self.way == 'baseline'

  @property
  def is_coupled(self) -> bool:
    return _rule(self.record).name in _COUPLED

  @property
  def is_greedy(self) -> bool:
    """True if its tokens are the target's argmax, whatever drafted them."""
    is_lossless = self.is_plain or self.record.lossless is not False
    is_argmax = self.record.temperature <= sampling_lib.MIN_TEMPERATURE
    return is_argmax and is_lossless


def _read(folder: str | os.PathLike[str]) -> list[_Run]:
  results = user_paths.expand(folder) / 'results.jsonl'
  predictions = results.with_name('predictions.jsonl')
  records = runs_lib.read(results) if results.is_file() else []
  jobs = {record.job for record in records}
  if not jobs or not jobs <= {'eval', 'infer'} or not predictions.is_file():
    raise ValueError(
        f'{folder} has no results.jsonl and predictions.jsonl of an eval job or'
        ' an infer job. Give the output folder of one that has finished.'
    )
  if any(record.beams is not None for record in records):
    raise ValueError(
        f'{folder} holds a beam search, whose outputs no single tokens explain.'
    )
  rows = predictions_lib.read_rows(predictions)
  found = []
  for record in records:
    own, ways = rows, {'speculative' if record.drafter else 'baseline': ''}
    if record.job == 'eval':
      own = [r for r in rows if r['temperature'] == record.temperature]
      ways = {way: f'{way}_' for way in ('baseline', 'speculative')}
    for way, prefix in ways.items():
      key = f'{prefix}{predictions_lib.TOKENS}'
      if any(key not in row for row in own):
        raise ValueError(
            f'The predictions in {folder} have no {key}. Decode again; the'
            ' infer job writes them with --gin.TOKENS=True.'
        )
      is_single = record.num_decodes == 1
      tokens = [[row[key]] if is_single else row[key] for row in own]
      found.append(_Run(record, way, own, tokens))
  return found


def _check_comparable(first: _Run, second: _Run) -> None:
  """Check that two runs may differ by nothing but rounding."""
  settings = 'target', 'num_decodes', 'targets_length', 'num_valid_tokens'
  if not first.is_greedy:
    settings += *run_record.SAMPLING_KEYS.values(), 'seed'
  if first.is_coupled or second.is_coupled:
    settings += ('verification',)
  differing = []
  for key in settings:
    values = [_setting(getattr(run.record, key)) for run in (first, second)]
    if values[0] != values[1]:
      differing.append(f'{key} ({values[0]} and {values[1]})')
  for key in 'example_id', predictions_lib.INPUT_TOKENS:
    one, other = ([r.get(key, []) for r in run.rows] for run in (first, second))
    if one != other:
      differing.append(key)
  if differing:
    raise ValueError(
        f'The runs cannot be compared: they differ in {", ".join(differing)}.'
    )


def _write_the_same(first: _Run, second: _Run) -> bool:
  """Return whether drafts change neither run: at temperature 0, or coupled."""
  is_equal = first.record.temperature == second.record.temperature
  are_coupled = first.is_coupled and second.is_coupled and is_equal
  return are_coupled or (first.is_greedy and second.is_greedy)


def _setting(value: Any) -> Any:
  """Return a setting of a record, without where a checkpoint lies."""
  if not dataclasses.is_dataclass(value):
    return value or 0  # older records lack some parameters of sampling
  return {k: x for k, x in vars(value).items() if k not in _PLACES}


def _load_target(
    record: run_record.RunRecord,
    checkpoint_path: str | None,
    config: models.Config,
) -> models.Model:
  """Load the target of runs, on the mesh of the first one."""
  axes = record.mesh or {}
  if dataclasses.is_dataclass(config):
    config = dataclasses.replace(config, dtype=record.target.dtype)
  workload = workload_lib.Workload(
      mixture_or_task_name=None,
      split='',
      task_feature_lengths={
          'inputs': record.inputs_length,
          'targets': record.targets_length,
      },
      checkpoint_path=checkpoint_path or record.target.checkpoint,
      target_config=config,
      dtype=record.target.dtype,
      mesh_shape=tuple(axes.get(name, 1) for name in sharding.AXES),
  )
  placed = workload.place(
      workload.find_target(),
      [],
      sizes=[sharding.round_up(workload.make_mesh(), record.batch_size)],
      num_decodes=record.num_decodes,
      gamma=record.gamma or 1,
  )
  target = placed.target.load()
  one, other = _setting(record.target), _setting(target.describe())
  if one != other:
    raise ValueError(
        f'The target is {other}, that of the runs is {one}. Give the same'
        ' checkpoint.'
    )
  return target


def _decoder(target: models.Model, run: _Run) -> token_decoder.TokenDecoder:
  record = run.record
  return token_decoder.TokenDecoder(
      target,
      drafters.Drafting(),
      gamma=1 if run.is_plain else record.gamma,
      max_tokens=record.targets_length,
      num_decodes=record.num_decodes,
      num_valid_tokens=record.num_valid_tokens,
      matmul_precision=record.matmul_precision,
  )


def _rule(
    record: run_record.RunRecord,
) -> contracts.Rule | contracts.CoupledRule:
  """Return the coupled rule of a run, or the default, which draws as others."""
  name = record.verification and record.verification.rule
  return _COUPLED.get(name, verification.TOKENWISE)


def _batch(run: _Run, row: int) -> input_batch.InputBatch:
  """Return a batch with the rows beside a row of a run."""
  record, keys = run.record, run_record.SAMPLING_KEYS
  settings = request_lib.Settings(
      sampling=sampling_lib.Sampling(
          # Older records lack some.
          **{name: getattr(record, key) or 0 for name, key in keys.items()}
      ),
      max_tokens=record.targets_length,
      seed=record.seed,
      rule=_rule(record),
  )
  start = row - row % record.batch_size
  part = slice(start, start + record.batch_size)
  requests = [
      # What is decoded writes a token.
      settings.request(each[predictions_lib.INPUT_TOKENS], each['example_id'])
      if any(decodes)
      else None
      for each, decodes in zip(run.rows[part], run.tokens[part], strict=True)
  ]
  (batch,) = input_batch.whole_batches(
      requests,
      settings,
      size=record.batch_size,
      inputs_length=record.inputs_length,
  )
  return batch


def _compare_rows(
    load: Callable[[_Run], token_decoder.TokenDecoder],
    first: _Run,
    second: _Run,
) -> list[dict[str, Any]]:
  """Describe each output that differs between two runs of the same rows."""
  found = []
  for row, decodes in enumerate(zip(first.tokens, second.tokens, strict=True)):
    example_id = first.rows[row]['example_id']
    for decode, written in enumerate(zip(*decodes, strict=True)):
      if written[0] == written[1]:
        continue
      difference = None
      if first.is_greedy or first.is_coupled:
        rows = [_row(load(run), run, row, decode) for run in (first, second)]
        padding = rows[0].decoder.target_model.special_ids.padding
        length = first.record.targets_length
        sequences = batching.pad(written, length, padding)
        difference = near_ties.explain(*rows, sequences)
      found.append(divergence.describe(example_id, decode, difference))
  return found


def _row(
    decoder: token_decoder.TokenDecoder, run: _Run, row: int, decode: int
) -> near_ties.BatchRow:
  """Return a decode of a row of a run, in a batch with the rows beside it."""
  index = row % run.record.batch_size * run.record.num_decodes + decode
  batch = decoder.place(_batch(run, row))
  return near_ties.BatchRow(decoder, batch, index, not run.is_plain)
