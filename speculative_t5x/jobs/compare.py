# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compare job: whether two runs wrote the same, up to rounding.

The runs are output folders of the eval job or the infer job. Plain and
speculative decoding can be compared at temperature 0 only: above it they draw
different samples of the same distribution.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
from typing import Any

from etils import epath

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import requests as requests_lib
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
_SAMPLING = 'topk', 'topp', 'minp', 'typicalp'
_SAMPLED = *_SAMPLING, 'seed'
_SPECULATIVE = (
    *('gamma', 'gamma_policy', 'drafter', 'verification'), 'draft_sampling',
)  # fmt: skip
# Where a checkpoint lies and how it lies on devices changes no token.
_PLACES = 'checkpoint', 'model_parallel', 'table'


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
    second: output folder of another one with the same inputs.
    output_dir: folder for `divergence.jsonl`; None to write nothing.
    checkpoint_path: the target's checkpoint; None for the path in the record.
    target_config: None for the sizes that the checkpoint states.
    vocabulary_file: gives the end of sequence, where the checkpoint does not
      state it and it is not T5's.
    drafter: drafter of speculative runs above temperature 0; unused by others.
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
  compared = [
      divergence.Compared(
          records=(one.record, other.record),
          ways=(one.way, other.way),
          num_rows=len(one.rows) * one.record.num_decodes,
          rows=_compare_rows(decoders, one, other),
      )
      for one, other in pairs
  ]
  console.show(divergence.render(compared))
  if output_dir is not None:
    lines = map(divergence.to_json, compared)
    whole_files.write(epath.Path(output_dir), 'divergence.jsonl', lines)
  if mismatches := [row for each in compared for row in each.mismatches]:
    raise greedy.MismatchError(
        f'{len(mismatches)} outputs differ by more than rounding, the first'
        f' that of example {mismatches[0]["example_id"]} at position'
        f' {mismatches[0]["position"]}. This is a bug if both folders'
        ' hold what the jobs wrote; please report it with the divergence.jsonl'
        ' that --output_dir=<folder> writes.'
    )
  return compared


@dataclasses.dataclass(frozen=True)
class _Run:
  """One way of decoding in an output folder, at one temperature.

  Attributes:
    record: record of the configuration.
    way: 'baseline' or 'speculative'.
    rows: rows of `predictions.jsonl`.
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
  def needs_drafter(self) -> bool:
    """Whether its target calls depend on more than the tokens written."""
    return self.is_sampled and self.way == 'speculative'


def _read(folder: str | os.PathLike[str]) -> list[_Run]:
  """Reads the runs of a finished output folder.

  Raises:
    ValueError: if there are none, or their predictions have no tokens.
  """
  results = epath.Path(folder) / 'results.jsonl'
  predictions = results.with_name('predictions.jsonl')
  records = runs_lib.read(results) if results.is_file() else []
  jobs = {record.job for record in records}
  if not jobs or not jobs <= {'eval', 'infer'} or not predictions.is_file():
    raise ValueError(
        f'{folder} has no results.jsonl and predictions.jsonl of an eval job or'
        ' an infer job. Give the output folder of one that has finished.'
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


def _pair(
    firsts: Sequence[_Run], seconds: Sequence[_Run]
) -> list[tuple[_Run, _Run]]:
  """Returns the runs to compare: of equal ways, or else at temperature 0."""
  every = [(one, other) for one in firsts for other in seconds]
  setting = lambda run: (run.record.temperature, run.way)
  if pairs := [each for each in every if len(set(map(setting, each))) == 1]:
    return pairs
  pairs = [each for each in every if not any(run.is_sampled for run in each)]
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
  """Checks that two runs may differ by nothing but rounding.

  Raises:
    ValueError: naming the settings that differ, or a rule or a policy whose
      outputs cannot be compared.
  """
  keys, of_rows = [*_ALWAYS], ['example_id', predictions_lib.INPUT_TOKENS]
  keys += _SAMPLED if first.is_sampled else ()
  if first.needs_drafter:
    keys += _SPECULATIVE
    of_rows.append(predictions_lib.HINT_TOKENS)
  differing = [
      f'{key} ({values[0]} and {values[1]})'
      for key in keys
      if (values := [_setting(run.record, key) for run in (first, second)])
      and values[0] != values[1]
  ]
  columns = lambda key: (
      [row.get(key, []) for row in run.rows] for run in (first, second)
  )
  differing += [key for key in of_rows if len(set(map(repr, columns(key)))) > 1]
  if differing:
    raise ValueError(
        'The runs cannot be compared: they differ in'
        f' {", ".join(differing)}. Compare runs of the same inputs that differ'
        ' in batch size, devices or code only.'
    )
  for run in (first, second):
    if run.way == 'speculative' and run.record.lossless is False:
      raise ValueError(
          'The runs cannot be compared: the rule'
          f' {run.record.verification.rule} does not keep the'
          " target's distribution, so that outputs differ by more than"
          ' rounding. Compare runs of another rule.'
      )
  if not first.needs_drafter:
    return
  decisions.check_rule(first.record.verification.rule)
  if first.record.gamma_policy != draft_length.Fixed.name:
    raise ValueError(
        f'The decisions under the policy {first.record.gamma_policy} are not'
        ' known: samples can be compared if their policy is fixed. Compare runs'
        ' at temperature 0, or plain ones.'
    )
  if drafter is None:
    raise ValueError(
        'Speculative samples are decoded again to be compared, which needs the'
        ' drafter. Add its gin file and its checkpoint, as'
        ' --gin_file=configs/drafters/draft_model.gin'
        ' --gin.DRAFT_CHECKPOINT_PATH=<folder>.'
    )


def _setting(record: run_record.RunRecord, key: str) -> Any:
  """Returns a setting of a record, without where its checkpoint lies."""
  value = getattr(record, key)
  if key in _SAMPLED:
    return value or 0  # older records lack some
  return _without_places(value) if dataclasses.is_dataclass(value) else value


def _without_places(description: Any) -> dict[str, Any]:
  values = dataclasses.asdict(description)
  return {key: x for key, x in values.items() if key not in _PLACES}


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
    self._loaded: dict[Any, tuple[models.ModelSource, models.Model]] = {}
    self._decoders: dict[Any, token_decoder.TokenDecoder] = {}

  def of(self, run: _Run) -> token_decoder.TokenDecoder:
    """Returns the decoder of a run.

    Raises:
      ValueError: if its checkpoints are no longer those of the run.
    """
    record, mesh = run.record, _mesh_shape(run.record)
    gamma = record.gamma if run.way == 'speculative' else 1
    key = (
        mesh, gamma, run.needs_drafter, record.matmul_precision,
        record.num_valid_tokens,
    )  # fmt: skip
    if key not in self._decoders:
      if mesh not in self._loaded:
        self._loaded[mesh] = self._load_target(record)
      found, target = self._loaded[mesh]
      drafter = source.NOTHING
      if run.needs_drafter:
        source.check_source(self._drafter)
        drafter = self._drafter.find(found, None)()
        described = dataclasses.replace(
            drafter.description, temperature=record.drafter.temperature
        )
        _check_same('drafter', record.drafter, described)
      self._decoders[key] = token_decoder.TokenDecoder(
          target,
          drafter,
          gamma=gamma,
          length=record.targets_length,
          num_decodes=record.num_decodes,
          num_valid_tokens=record.num_valid_tokens,
          matmul_precision=record.matmul_precision,
      )
    return self._decoders[key]

  def _load_target(
      self, record: run_record.RunRecord
  ) -> tuple[models.ModelSource, models.Model]:
    workload = self._workload(record)
    found = workload.find_target(workload.make_mesh())
    if self._vocabulary_file is not None:
      vocabulary = vocabularies.load(self._vocabulary_file)
      found = found.with_vocabulary('VOCABULARY_FILE', vocabulary.eos_id)
    target = found.load()
    _check_same('target', record.target, target.describe())
    return found, target

  def _workload(self, record: run_record.RunRecord) -> workload_lib.Workload:
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
        seed=record.seed,
        mesh_shape=_mesh_shape(record),
        matmul_precision=record.matmul_precision,
    )

  def request(self, run: _Run, row: int) -> requests_lib.Request:
    """Returns the batch that held a row of a run."""
    decoder, record = self.of(run), run.record
    size = record.batch_size
    start = row // size * size
    rows = run.rows[start : start + size]
    sampling = sampling_lib.Sampling(
        record.temperature, *(_setting(record, key) for key in _SAMPLING)
    )
    draft_sampling = sampling.replace(**(record.draft_sampling or {}))
    if record.drafter and record.drafter.temperature is not None:
      draft_sampling = draft_sampling.replace(
          temperature=record.drafter.temperature
      )
    (request,) = (
        self._workload(record)
        .requests(size, sampling, draft_sampling)
        .of([
            requests_lib.Row(
                each[predictions_lib.INPUT_TOKENS],
                each['example_id'],
                each.get(predictions_lib.HINT_TOKENS, []),
            )
            for each in rows
        ])
    )
    return decoder.place(request)

  def output(self, run: _Run, row: int, decode: int) -> decisions.Output:
    """Returns what a run wrote as one decode of a row."""
    decoder, record = self.of(run), run.record
    (sequence,) = batching.pad(
        [run.tokens[row][decode]],
        record.targets_length,
        decoder.target_model.special_ids.padding,
    )
    return decisions.Output(
        decoder,
        self.request(run, row),
        row % record.batch_size * record.num_decodes + decode,
        run.way == 'speculative',
        sequence,
    )


def _mesh_shape(record: run_record.RunRecord) -> tuple[int, int]:
  axes = record.mesh or {}
  return axes.get(sharding.DATA_AXIS, 1), axes.get(sharding.MODEL_AXIS, 1)


def _check_same(role: str, recorded: Any, found: Any) -> None:
  """Checks that a model is the one that a record describes."""
  one, other = map(_without_places, (recorded, found))
  if one != other:
    raise ValueError(
        f'The {role} is {other}, that of the runs is {one}. Give the same'
        ' checkpoint.'
    )


def _compare_rows(
    decoders: _Decoders, first: _Run, second: _Run
) -> list[dict[str, Any]]:
  """Explains each output that differs between two runs of the same rows."""
  rows = []
  for row, decodes in enumerate(zip(first.tokens, second.tokens, strict=True)):
    for decode, (one, other) in enumerate(zip(*decodes, strict=True)):
      if one != other:
        outputs = [decoders.output(x, row, decode) for x in (first, second)]
        difference = near_ties.explain(*outputs)
        example_id = first.rows[row]['example_id']
        rows.append(divergence.describe(example_id, decode, difference))
  return rows
