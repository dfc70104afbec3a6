# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measurements of a task with one drafter after another.

Alpha, walltimes of both ways of decoding, and what a rule accepts. Each is kept
in an output folder, from which an interrupted job resumes.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import drafters as drafters_lib
from speculative_t5x.loading import placement
from speculative_t5x.networks import sharding
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import task_metrics

ALPHA_BATCH = 8  # examples decoded at once where only their text matters


@dataclasses.dataclass(frozen=True)
class AlphaEstimates:
  """Acceptance at one temperature, on text that the target wrote."""

  estimate: run_record.Alpha  # as the record has it
  lenient: tuple[run_record.Alpha, ...]  # under `acceptance.LENIENCES`
  control: run_record.Alpha  # of rejection sampling, Appendix A.2


def find(
    workload: workload_lib.Workload,
    drafters: Sequence[drafters_lib.Drafting],
    *,
    batch_sizes: Sequence[int],
    gamma: int,
    num_examples: int,
) -> tuple[placement.Placed, examples_lib.Examples]:
  """Find a target, its drafters and the examples that are timed.

  No weights are read. Blocks have up to `gamma` draft tokens.
  """
  mesh = workload.make_mesh()
  for size in batch_sizes:  # another size would have other times
    sharding.check_batch(mesh, size)
  target, examples = workload.read_task(least=num_examples)
  placed = workload.place(target, drafters, sizes=batch_sizes, gamma=gamma)
  return placed, examples


@dataclasses.dataclass(frozen=True)
class Measurements:
  """A task and its target, to be measured with any drafter."""

  folder: output_folder.OutputFolder  # of the records
  workload: workload_lib.Workload  # of alpha, which no rule or policy changes
  examples: examples_lib.Examples
  num_examples: int  # of them, the first ones, that are timed
  alpha_tokens: int  # that alpha is estimated on
  repeats: int  # how often each batch is timed
  # Another system with the weights of the target, which is timed too.
  reference: walltimes.Reference | None = None
  # What the target wrote, by the samplings: the same for all drafters.
  written: dict[sampling_lib.Pair, Sequence[acceptance.Written]] = (
      dataclasses.field(default_factory=dict)
  )

  @functools.cached_property
  def _timed(self) -> examples_lib.Examples:
    return self.examples.part(0, self.num_examples)

  def alpha(
      self,
      decoder: token_decoder.TokenDecoder,
      samplings: sampling_lib.Pair,
  ) -> AlphaEstimates:
    """Return alpha, known or measured, whatever the decoder's gamma is."""
    settings = dataclasses.replace(
        self._settings(decoder, self.workload, ALPHA_BATCH, samplings),
        gamma=None,
        num_examples=self.alpha_tokens,
        job='alpha',
        reference=None,
    )
    title = f'alpha of {settings.drafter.name}, {_at(samplings)}'
    keys = [field.name for field in dataclasses.fields(AlphaEstimates)]
    if known := self.folder.read_alpha(settings, keys, title):
      return run_record.from_dict(known, AlphaEstimates)
    texts = acceptance.collect(decoder, self._write(decoder, samplings))
    rates = lambda read: intervals.estimate_alpha([read(x) for x in texts])
    estimate = rates(lambda text: text.betas)
    lenient = [
        rates(lambda text, i=i: text.lenient_betas[i])
        for i in range(len(acceptance.LENIENCES))
    ]
    control = rates(lambda text: text.control_betas)
    estimates = AlphaEstimates(estimate, tuple(lenient), control)
    self.folder.write_alpha(settings, dataclasses.asdict(estimates))
    return estimates

  def walltime(
      self,
      programs: part_programs.PartPrograms,
      workload: workload_lib.Workload,
      batch_size: int,
      samplings: sampling_lib.Pair,
      alpha: run_record.Alpha,
  ) -> run_record.RunRecord:
    """Add a configuration's record, known or measured, to the folder.

    The programs have the policy of the workload, which has the rule.
    """
    settings = self._settings(programs.decoder, workload, batch_size, samplings)
    name = _name(settings, samplings)
    record = self.folder.find(settings, name) or self._time(
        programs, workload, samplings, settings, name
    )
    record = walltimes.add_alpha(record, alpha, workload.rule)
    self.folder.add(record)
    return record

  def _time(
      self,
      programs: part_programs.PartPrograms,
      workload: workload_lib.Workload,
      samplings: sampling_lib.Pair,
      settings: run_record.RunRecord,
      name: str,
  ) -> run_record.RunRecord:
    """Return the record of settings with times and quality, without alpha."""
    decoder = programs.decoder
    batches = self._batches(decoder, workload, settings.batch_size, samplings)
    way = settings.reference and self.reference.way(samplings.target)
    record, *runs = walltimes.measure(programs, batches, settings, name, way)
    progress.say(f'{name}: scoring')
    return dataclasses.replace(
        record,
        quality=run_record.BothRuns(*(self._judge(decoder, x) for x in runs)),
        greedy=greedy.compare(decoder, batches, *runs),
    )

  def _judge(
      self, decoder: token_decoder.TokenDecoder, run: interleaved.Run
  ) -> dict[str, float]:
    outputs = predictions_lib.read(
        whole_batches.outputs(decoder, run.decoded, self.num_examples),
        self.examples.vocabulary,
        decoder.target_model.special_ids,
    )
    values = task_metrics.compute(self._timed, outputs.best, outputs.aux_values)
    return task_metrics.quality(values)

  def accepted(
      self,
      decoder: token_decoder.TokenDecoder,
      workload: workload_lib.Workload,
      samplings: sampling_lib.Pair,
      **alphas: run_record.Alpha,
  ) -> run_record.RunRecord:
    """Add the record of what a rule accepts, known or measured.

    Arguments are those of `walltime`, and `rule_alpha`, alpha under the rule.
    """
    settings = dataclasses.replace(
        self._settings(decoder, workload, ALPHA_BATCH, samplings),
        repeats=1,
        rounds=None,
        reference=None,
    )
    name = _name(settings, samplings)
    record = self.folder.find(settings, name)
    if record is None:
      batches = self._batches(decoder, workload, ALPHA_BATCH, samplings)
      timer = interleaved.Timer(whole_batches.ways(decoder)[1:])
      with progress.Progress(name, len(batches)) as shown:
        (run,) = timer.run(batches, after=shown.show)
      record = walltimes.add_speculative(settings, run)
    record = dataclasses.replace(record, **alphas)
    self.folder.add(record)
    return record

  def new_record(
      self,
      decoder: token_decoder.TokenDecoder,
      workload: workload_lib.Workload,
      samplings: sampling_lib.Pair,
      **values: Any,
  ) -> run_record.RunRecord:
    """Return a record of the task's examples before anything is measured."""
    return workload.new_record(
        'walltime',
        decoder,
        *samplings,
        inputs_digest=self.examples.digest,
        **values,
    )

  def _settings(
      self,
      decoder: token_decoder.TokenDecoder,
      workload: workload_lib.Workload,
      batch_size: int,
      samplings: sampling_lib.Pair,
  ) -> run_record.RunRecord:
    """Return a record of the timed examples before anything is measured."""
    reference = None
    if self.reference and self.reference.way(samplings.target):
      names = self.reference.name, self.reference.version
      reference = run_record.Reference(*names)
    return self.new_record(
        decoder,
        workload,
        samplings,
        num_examples=self.num_examples,
        truncated_inputs=self._timed.num_truncated,
        unknown_inputs=self._timed.num_unknown,
        batch_size=batch_size,
        repeats=self.repeats,
        rounds=walltimes.ROUNDS,
        reference=reference,
    )

  def _write(
      self, decoder: token_decoder.TokenDecoder, samplings: sampling_lib.Pair
  ) -> Sequence[acceptance.Written]:
    if samplings not in self.written:
      num_rows = sharding.round_up(decoder.mesh, 1)
      settings = self.workload.settings(*samplings)
      self.written[samplings] = acceptance.write(
          decoder,
          workload_lib.requests_of(self.examples, settings),
          settings,
          self.alpha_tokens,
          batch_size=ALPHA_BATCH * num_rows,
          name=f'text of the target, {_at(samplings)}',
      )
    return self.written[samplings]

  def _batches(
      self,
      decoder: token_decoder.TokenDecoder,
      workload: workload_lib.Workload,
      batch_size: int,
      samplings: sampling_lib.Pair,
  ) -> list[input_batch.InputBatch]:
    settings = workload.settings(*samplings)
    batches = workload.batches(
        workload_lib.requests_of(self._timed, settings),
        settings,
        sharding.round_up(decoder.mesh, batch_size),
    )
    return [decoder.place(batch) for batch in batches]


def _at(samplings: sampling_lib.Pair) -> str:
  """Return the words for what is sampled from."""
  top_k = samplings.target.top_k
  kept = f', top-k {top_k}' if top_k else ''
  return f'temperature {samplings.target.temperature:g}{kept}'


def _name(settings: run_record.RunRecord, samplings: sampling_lib.Pair) -> str:
  """Return the name of a configuration, for progress lines."""
  return (
      f'{readings.method(settings)}, gamma {settings.gamma}, batch'
      f' {settings.batch_size}, {_at(samplings)}'
  )
