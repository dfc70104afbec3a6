# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job: whether two runs wrote the same, up to rounding.

The runs are output folders of the eval job or the infer job. Plain and
speculative decoding can be compared at temperature 0 only: above it they draw
different samples of the same distribution.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import os
from typing import Any

from etils import epath
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import decisions
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import divergence
from speculative_t5x.research.reports import runs as runs_lib
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import predictions as predictions_lib

# Settings that must agree: always, for samples, and for speculative samples.
_ALWAYS = 'target', 'num_decodes', 'targets_length', 'num_valid_tokens'
_SAMPLED = 'topk', 'topp', 'minp', 'typicalp', 'seed'
_SPECULATIVE = 'gamma', 'gamma_policy', 'drafter', 'verification'
# Where a checkpoint lies and how it lies on devices changes no token.
_PLACES = 'checkpoint', 'model_parallel', 'table'


@dataclasses.dataclass(frozen=True)
class _Run:
  """One way of decoding in an output folder, at one temperature.

  Attributes:
    record: of the configuration.
    way: 'baseline' or 'speculative'.
    rows: of `predictions.jsonl`.
    tokens: one list per row, with the token ids of each decode.
  """

  record: run_record.RunRecord
  way: str
  rows: Sequence[Mapping[str, Any]]
  tokens: Sequence[Sequence[Sequence[int]]]

  @property
  def is_sampled(self) -> bool:
    return self.record.temperature > sampling_lib.MIN_TEMPERATURE

  @property
  def is_speculative(self) -> bool:
    return self.way == 'speculative'

  @property
  def needs_drafter(self) -> bool:
    """Whether its target calls depend on more than the tokens written."""
    return self.is_sampled and self.is_speculative


def compare(
    *,
    first: str,
    second: str,
    output_dir: str | None = None,
    checkpoint_path: str | None = None,
    target_config: t5.T5Config | None = None,
    vocabulary_file: str | None = None,
    drafter: source.Source | None = None,
) -> list[divergence.Compared]:
  """Compares two runs token by token and explains every row that differs.

  Args:
    first: output folder of an eval job or an infer job that wrote tokens.
    second: of another one with the same inputs.
    output_dir: folder for `divergence.jsonl`; None to write nothing.
    checkpoint_path: the target's checkpoint; None for the path in the record.
    target_config: None for the sizes that the checkpoint states.
    vocabulary_file: for the end of sequence, where the checkpoint does not
      state it and it is not T5's.
    drafter: of speculative runs above temperature 0; unused by others.
  Returns:
    One comparison per temperature and way of decoding.
  Raises:
    ValueError: if the runs cannot be compared; names what differs.
    greedy.MismatchError: if rows differ by more than rounding. The results are
      written nevertheless.
  """
  if output_dir is not None:
    whole_files.check_writable(epath.Path(output_dir))
  pairs = _pair(_read(first), _read(second))
  for pair in pairs:
    _check_comparable(*pair, drafter)
  decoders = _Decoders(checkpoint_path, target_config, vocabulary_file, drafter)
  compared = [_compare(decoders, *pair) for pair in pairs]
  console.show(divergence.render(compared))
  if output_dir is not None:
    lines = map(divergence.to_json, compared)
    whole_files.write(epath.Path(output_dir), 'divergence.jsonl', lines)
  if mismatches := [row for each in compared for row in each.mismatches]:
    raise greedy.MismatchError(
        f'{len(mismatches)} outputs differ by more than rounding, the first'
        f' that of example {mismatches[0].example_id} at position'
        f' {mismatches[0].difference.position}. This is a bug if both folders'
        ' hold what the jobs wrote; please report it with the divergence.jsonl'
        ' that --output_dir=<folder> writes.'
    )
  return compared


def _read(folder: str | os.PathLike[str]) -> list[_Run]:
  """Reads the runs of a finished output folder.

  Raises:
    ValueError: if there are none, or their predictions have no tokens.
  """
  path = epath.Path(folder)
  for name in ('results.jsonl', 'predictions.jsonl'):
    if not (path / name).is_file():
      raise ValueError(
          f'{folder} has no {name}. Give the output folder of an eval job or an'
          ' infer job that has finished.'
      )
  records = runs_lib.read(path / 'results.jsonl')
  for record in records:
    if record.job not in ('eval', 'infer'):
      raise ValueError(
          f'The results in {folder} are of the {record.job} job. Give the'
          ' output folder of an eval job or an infer job.'
      )
  if not records:
    raise ValueError(
        f'{path / "results.jsonl"} is empty. Run the job again, which writes it'
        ' from its chunks.'
    )
  rows = predictions_lib.read_rows(path / 'predictions.jsonl')
  found = []
  for record in records:
    if record.job == 'eval':
      own = [r for r in rows if r['temperature'] == record.temperature]
      ways = {way: f'{way}_' for way in ('baseline', 'speculative')}
    else:
      own, ways = rows, {'speculative' if record.drafter else 'baseline': ''}
    for way, prefix in ways.items():
      key = f'{prefix}{predictions_lib.TOKENS}'
      found.append(_Run(record, way, own, _tokens(folder, record, own, key)))
  return found


def _tokens(
    folder: str | os.PathLike[str],
    record: run_record.RunRecord,
    rows: Sequence[Mapping[str, Any]],
    key: str,
) -> list[list[list[int]]]:
  if any(key not in row for row in rows):
    raise ValueError(
        f'The predictions in {folder} have no {key}. Decode again; the infer'
        ' job writes them with --gin.TOKENS=True.'
    )
  is_single = record.num_decodes == 1
  found = [[row[key]] if is_single else row[key] for row in rows]
  for row, decodes in zip(rows, found, strict=True):
    if not predictions_lib.are_tokens(decodes):
      raise ValueError(
          f'The predictions in {folder} are damaged: {key} of example'
          f' {row["example_id"]} is {row[key]!r}. Run the job again, which'
          ' writes them from its chunks.'
      )
  return found


def _pair(
    firsts: Sequence[_Run], seconds: Sequence[_Run]
) -> list[tuple[_Run, _Run]]:
  """Returns the runs to compare: of equal ways, or else at temperature 0."""
  by_setting = lambda runs: {(r.record.temperature, r.way): r for r in runs}
  ones, others = by_setting(firsts), by_setting(seconds)
  if pairs := [(ones[key], others[key]) for key in ones if key in others]:
    return pairs
  pairs = [
      (one, other)
      for one in firsts
      for other in seconds
      if not one.is_sampled and not other.is_sampled
  ]
  if not pairs:
    shown = lambda runs: ', '.join(
        f'{r.way} at temperature {r.record.temperature:g}' for r in runs
    )
    raise ValueError(
        f'The runs cannot be compared: {shown(firsts)}, and {shown(seconds)}.'
        ' Above temperature 0 both must decode plainly or both speculatively,'
        ' at one temperature: other runs draw other samples.'
    )
  return pairs


def _check_comparable(
    first: _Run, second: _Run, drafter: source.Source | None
) -> None:
  """Checks that rounding is all in which two runs may differ.

  Raises:
    ValueError: naming the settings that differ, or a rule whose outputs cannot
      be compared.
  """
  for run in (first, second):
    _check_rule(run)
  keys = [*_ALWAYS]
  keys += _SAMPLED if first.is_sampled else ()
  keys += _SPECULATIVE if first.needs_drafter else ()
  differing = [
      key
      for key in keys
      if _setting(first.record, key) != _setting(second.record, key)
  ]
  if differing:
    shown = ', '.join(
        f'{key} ({_setting(first.record, key)}'
        f' and {_setting(second.record, key)})'
        for key in differing
    )
    raise ValueError(
        f'The runs cannot be compared: they differ in {shown}. Compare runs'
        ' that differ in batch size, devices or code only.'
    )
  if len(first.rows) != len(second.rows):
    raise ValueError(
        f'The runs cannot be compared: the first has {len(first.rows)} rows,'
        f' the second {len(second.rows)}. Compare runs of the same inputs.'
    )
  keys = ['example_id', predictions_lib.INPUT_TOKENS]
  if first.needs_drafter:
    keys.append(predictions_lib.HINT_TOKENS)
  for key in keys:
    one, other = (
        [row.get(key, []) for row in run.rows] for run in (first, second)
    )
    if one != other:
      raise ValueError(
          f'The runs cannot be compared: their rows differ in {key}.'
          ' Compare runs of the same inputs.'
      )
  if first.needs_drafter and drafter is None:
    raise ValueError(
        'Speculative samples are decoded again to be compared, which needs the'
        ' drafter. Add its gin file and its checkpoint, as'
        ' --gin_file=configs/drafters/draft_model.gin'
        ' --gin.DRAFT_CHECKPOINT_PATH=<folder>.'
    )


def _check_rule(run: _Run) -> None:
  """Checks that it is known how the rule of a run decided.

  Raises:
    ValueError: if it is not lossless, or not the paper's and sampled.
  """
  if not run.is_speculative:
    return
  rule = run.record.verification.rule
  if run.record.lossless is False:
    raise ValueError(
        f'The runs cannot be compared: the rule {rule} does not keep the'
        " target's distribution, so that outputs differ by more than rounding."
        ' Compare runs of another rule.'
    )
  if run.is_sampled:
    decisions.check_rule(rule)
    _check_policy(run.record.gamma_policy)


def _check_policy(name: str) -> None:
  """Checks that all drafts of a run were of one length.

  Raises:
    ValueError: for another policy.
  """
  if name != draft_length.Fixed.name:
    raise ValueError(
        f'The decisions under the policy {name} are not known: samples can be'
        ' compared if their policy is fixed. Compare runs at temperature 0, or'
        ' plain ones.'
    )


def _setting(record: run_record.RunRecord, key: str) -> Any:
  """Returns a setting of a record, without where it lies."""
  value = getattr(record, key)
  if key in _SAMPLED:
    return 0 if value is None else value  # older records lack some
  if not dataclasses.is_dataclass(value):
    return value
  values = dataclasses.asdict(value)
  return {name: x for name, x in values.items() if name not in _PLACES}


class _Decoders:
  """The decoders of the runs; equal settings share one."""

  def __init__(
      self,
      checkpoint_path: str | None,
      target_config: t5.T5Config | None,
      vocabulary_file: str | None,
      drafter: source.Source | None,
  ):
    self._checkpoint_path = checkpoint_path
    self._target_config = target_config
    self._vocabulary_file = vocabulary_file
    self._drafter = drafter
    self._targets: dict[Any, tuple[models.ModelSource, models.Model]] = {}
    self._drafters: dict[Any, source.Drafting] = {}
    self._decoders: dict[Any, token_decoder.TokenDecoder] = {}

  def of(self, run: _Run) -> token_decoder.TokenDecoder:
    """Returns the decoder of a run.

    Raises:
      ValueError: if its checkpoints are no longer those of the run.
    """
    record = run.record
    mesh = _mesh_shape(record)
    gamma = record.gamma if run.is_speculative else 1
    key = (
        mesh, gamma, run.needs_drafter, record.matmul_precision,
        record.num_valid_tokens,
    )  # fmt: skip
    if key not in self._decoders:
      found, target = self._target(record, mesh)
      self._decoders[key] = token_decoder.TokenDecoder(
          target,
          self._loaded_drafter(record, mesh, found)
          if run.needs_drafter
          else source.NOTHING,
          gamma=gamma,
          length=record.targets_length,
          num_decodes=record.num_decodes,
          num_valid_tokens=record.num_valid_tokens,
          matmul_precision=record.matmul_precision,
      )
    return self._decoders[key]

  def _target(
      self, record: run_record.RunRecord, mesh: tuple[int, int]
  ) -> tuple[models.ModelSource, models.Model]:
    if mesh not in self._targets:
      workload = self.workload(record)
      found = workload.find_target(workload.make_mesh())
      if self._vocabulary_file is not None:
        vocabulary = vocabularies.load(self._vocabulary_file)
        found = found.with_vocabulary('VOCABULARY_FILE', vocabulary.eos_id)
      target = found.load()
      _check_same('target', record.target, target.describe())
      self._targets[mesh] = found, target
    return self._targets[mesh]

  def _loaded_drafter(
      self,
      record: run_record.RunRecord,
      mesh: tuple[int, int],
      target: models.ModelSource,
  ) -> source.Drafting:
    if mesh not in self._drafters:
      source.check_source(self._drafter)
      loaded = self._drafter.find(target, None)()
      description = dataclasses.replace(
          loaded.description, temperature=record.drafter.temperature
      )
      _check_same('drafter', record.drafter, description)
      self._drafters[mesh] = loaded
    return self._drafters[mesh]

  def workload(self, record: run_record.RunRecord) -> workload_lib.Workload:
    """Returns the workload that a record describes, without its task."""
    config = self._target_config
    if config is not None:
      config = dataclasses.replace(config, dtype=record.target.dtype)
    return workload_lib.Workload(
        mixture_or_task_name=None,
        split='',
        task_feature_lengths={
            'inputs': record.inputs_length,
            'targets': record.targets_length,
        },
        checkpoint_path=self._checkpoint_path or record.target.checkpoint,
        target_config=config,
        dtype=record.target.dtype,
        topk=record.topk,
        topp=record.topp,
        minp=_setting(record, 'minp'),
        typicalp=_setting(record, 'typicalp'),
        seed=record.seed,
        mesh_shape=_mesh_shape(record),
        matmul_precision=record.matmul_precision,
    )

  def request(self, run: _Run, row: int) -> token_decoder.Request:
    """Returns the batch that held a row of a run."""
    decoder, record = self.of(run), run.record
    size = record.batch_size
    start = row // size * size
    rows = run.rows[start : start + size]
    temperature = record.temperature
    draft_temperature = record.drafter and record.drafter.temperature
    if draft_temperature is None:
      draft_temperature = temperature
    workload = self.workload(record)
    (request,) = batching.requests(
        batching.pad(
            [each[predictions_lib.INPUT_TOKENS] for each in rows],
            record.inputs_length,
        ),
        np.asarray([each['example_id'] for each in rows], np.int32),
        batch_size=size,
        length=record.targets_length,
        seed=record.seed,
        sampling=workload.sampling(temperature),
        draft_sampling=workload.sampling(draft_temperature),
        hints=hints_lib.stack(
            [each.get(predictions_lib.HINT_TOKENS, []) for each in rows]
        ),
    )
    return decoder.place(request)


def _mesh_shape(record: run_record.RunRecord) -> tuple[int, int]:
  axes = record.mesh or {}
  return axes.get(sharding.DATA_AXIS, 1), axes.get(sharding.MODEL_AXIS, 1)


def _check_same(role: str, recorded: Any, found: Any) -> None:
  """Checks that a model is the one that a record describes."""
  one, other = (
      {k: v for k, v in dataclasses.asdict(x).items() if k not in _PLACES}
      for x in (recorded, found)
  )
  if one != other:
    raise ValueError(
        f'The {role} is {other}, that of the runs is {one}. Give the same'
        ' checkpoint.'
    )


def _compare(
    decoders: _Decoders, first: _Run, second: _Run
) -> divergence.Compared:
  """Compares two runs of the same rows."""
  rows = [
      divergence.Row(
          example_id=first.rows[row]['example_id'],
          decode=decode,
          difference=near_ties.explain(
              *(_output(decoders, run, row, decode) for run in (first, second))
          ),
      )
      for row, decode in _differing(first, second)
  ]
  return divergence.Compared(
      records=(first.record, second.record),
      ways=(first.way, second.way),
      num_rows=len(first.rows) * first.record.num_decodes,
      rows=tuple(rows),
  )


def _differing(first: _Run, second: _Run) -> Iterator[tuple[int, int]]:
  """Yields the row and the decode number of each output that differs."""
  both = zip(first.tokens, second.tokens, strict=True)
  for row, decodes in enumerate(both):
    for decode, (one, other) in enumerate(zip(*decodes, strict=True)):
      if one != other:
        yield row, decode


def _output(
    decoders: _Decoders, run: _Run, row: int, decode: int
) -> decisions.Output:
  decoder, record = decoders.of(run), run.record
  padding = decoder.target_model.special_ids.padding
  ids = run.tokens[row][decode]
  if max(ids) >= (vocab_size := decoder.target_model.vocab_size):
    raise ValueError(
        f'The output of example {run.rows[row]["example_id"]} has token'
        f' {max(ids)}, and the target has {vocab_size}. Correct'
        ' predictions.jsonl, or give the target of the runs.'
    )
  (sequence,) = batching.pad([ids], record.targets_length, padding)
  return decisions.Output(
      decoder,
      decoders.request(run, row),
      row % record.batch_size * record.num_decodes + decode,
      run.is_speculative,
      sequence,
  )
