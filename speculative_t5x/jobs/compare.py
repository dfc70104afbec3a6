# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job: compares what two runs wrote, up to rounding.

The runs are output folders of the eval job or the infer job. Greedy outputs and
samples of a coupled rule that differ are explained; other samples that differ
are counted. Plain and speculative decoding can be
compared at temperature 0, or by a coupled rule: above it other rules draw
different samples of the same distribution.
"""

import collections
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
from speculative_t5x.loading import vocabularies
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
    vocabulary_file: str | None = None,
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
  equal = [
      (one, other)
      for one, other in every
      if (one.name, one.number) == (other.name, other.number)
  ]
  # Their outputs do not depend on the way of decoding.
  pairs = equal or [x for x in every if _write_the_same(*x)]
  if not pairs:
    names = [', '.join(run.name for run in runs) for runs in (firsts, seconds)]
    raise ValueError(
        f'The runs cannot be compared: {names[0]}, and {names[1]}. Above'
        ' temperature 0 both must decode plainly or both speculatively, at one'
        ' temperature: other runs draw other samples.'
    )
  for pair in pairs:
    _check_comparable(*pair)
  if output_dir is not None:
    whole_files.check_writable(user_paths.expand(output_dir))
  load = _loader(
      pairs[0][0].record,
      checkpoint_path,
      target_config,
      vocabulary_file,
  )
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
        f' {wrong[0]["position"]}. This is a bug if both folders hold what the'
        ' jobs wrote; please report it with the divergence.jsonl that'
        ' --output_dir=<folder> writes.'
    )
  return compared


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
  """One way of decoding in an output folder, at one temperature."""

  record: run_record.RunRecord
  way: str  # 'baseline' or 'speculative'
  rows: Sequence[Mapping[str, Any]]  # of `predictions.jsonl`
  tokens: Sequence[Sequence[Sequence[int]]]  # of each decode of each row
  # Among the runs of its name in the folder, which differ in the drafter's
  # sampling.
  number: int = 0

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
  """Read the runs of a finished output folder."""
  results = user_paths.expand(folder) / 'results.jsonl'
  predictions = results.with_name('predictions.jsonl')
  records = runs_lib.read(results) if results.is_file() else []
  jobs = {record.job for record in records}
  if not jobs or not jobs <= {'eval', 'infer'} or not predictions.is_file():
    raise ValueError(
        f'{folder} has no results.jsonl and predictions.jsonl of an eval job or'
        ' an infer job. Give the output folder of one that has finished.'
    )
  rows = predictions_lib.read_rows(predictions)
  found, seen = [], collections.Counter()
  temperatures = collections.Counter(each.temperature for each in records)
  for record in records:
    own, ways = rows, {'speculative' if record.drafter else 'baseline': ''}
    number = seen[record.temperature]
    seen[record.temperature] += 1
    if record.job == 'eval':
      own = [r for r in rows if r['temperature'] == record.temperature]
      size = len(own) // temperatures[record.temperature]
      own = own[number * size : (number + 1) * size]
      ways = {way: f'{way}_' for way in ('baseline', 'speculative')}
    for way, prefix in ways.items():
      key = f'{prefix}{predictions_lib.TOKENS}'
      if any(key not in row for row in own):
        raise ValueError(
            f'The predictions in {folder} have no {key}. Decode again; the'
            ' infer job writes them with --gin.TOKENS=True.'
        )
      if record.beams is not None:
        raise ValueError(
            f'{folder} holds a beam search, whose outputs no single tokens'
            ' explain. Compare runs without BEAMS; eval compares searches.'
        )
      is_single = record.num_decodes == 1
      tokens = [[row[key]] if is_single else row[key] for row in own]
      found.append(_Run(record, way, own, tokens, number))
  return found


def _check_comparable(first: _Run, second: _Run) -> None:
  """Check that two runs may differ by nothing but rounding."""
  settings = 'target', 'num_decodes', 'targets_length', 'num_valid_tokens'
  columns = 'example_id', predictions_lib.INPUT_TOKENS
  if not first.is_greedy:
    settings += *run_record.SAMPLING_KEYS.values(), 'seed'
    if not first.is_plain or first.is_coupled or second.is_coupled:
      settings += ('verification',)
    if not first.is_plain and not first.is_coupled:
      settings += 'gamma', 'gamma_policy', 'drafter', 'draft_sampling'
      columns += (predictions_lib.HINT_TOKENS,)
  differing = []
  for key in settings:
    values = [_setting(getattr(run.record, key)) for run in (first, second)]
    if values[0] != values[1]:
      differing.append(f'{key} ({values[0]} and {values[1]})')
  for key in columns:
    one, other = ([r.get(key, []) for r in run.rows] for run in (first, second))
    if one != other:
      differing.append(key)
  if differing:
    raise ValueError(
        f'The runs cannot be compared: they differ in {", ".join(differing)}.'
        ' Compare runs of the same inputs that differ in batch size, devices or'
        ' code only.'
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


def _loader(
    first: run_record.RunRecord,
    checkpoint_path: str | None,
    target_config: models.Config,
    vocabulary_file: str | None,
) -> Callable[[_Run], token_decoder.TokenDecoder]:
  """Return a function that loads the decoder of a run, a target per mesh."""

  @functools.cache
  def load_target(mesh_shape: tuple[int, int]) -> models.Model:
    dtype, config = first.target.dtype, target_config
    if dataclasses.is_dataclass(config):
      config = dataclasses.replace(config, dtype=dtype)
    workload = workload_lib.Workload(
        mixture_or_task_name=None,
        split='',
        task_feature_lengths={
            'inputs': first.inputs_length,
            'targets': first.targets_length,
        },
        checkpoint_path=checkpoint_path or first.target.checkpoint,
        target_config=config,
        dtype=dtype,
        mesh_shape=mesh_shape,
    )
    placed = workload.place(
        workload.find_target(
            vocabulary_file and vocabularies.load(vocabulary_file)
        ),
        [],
        sizes=[sharding.round_up(workload.make_mesh(), first.batch_size)],
        num_decodes=first.num_decodes,
        gamma=first.gamma or 1,
    )
    target = placed.target.load()
    one, other = _setting(first.target), _setting(target.describe())
    if one != other:
      raise ValueError(
          f'The target is {other}, that of the runs is {one}. Give the same'
          ' checkpoint.'
      )
    return target

  def load(run: _Run) -> token_decoder.TokenDecoder:
    record, axes = run.record, run.record.mesh or {}
    return token_decoder.TokenDecoder(
        load_target(tuple(axes.get(name, 1) for name in sharding.AXES)),
        drafters.Drafting(),
        gamma=1 if run.is_plain else record.gamma,
        max_tokens=record.targets_length,
        num_decodes=record.num_decodes,
        num_valid_tokens=record.num_valid_tokens,
        matmul_precision=record.matmul_precision,
    )

  return functools.cache(load)


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
