# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime job: what speculation gains on a task, and why.

It measures, for each drafter, rule, policy, gamma, batch size and temperature,
plain and speculative decoding of the same examples, their parts, and alpha on
text that the target wrote. An interrupted job goes on after the configurations
that it finished.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import math
import sys

from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import advice
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import task_metrics

_ALPHA_BATCH = 8  # examples decoded at once where only their text matters
_MIN_KEPT_GAMMA = 10  # so that a job resumed with other gammas finds them


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all configurations of one job share."""

  workload: workload_lib.Workload
  folder: output_folder.OutputFolder
  examples: examples_lib.Examples
  num_configurations: int
  num_examples: int  # that are timed
  alpha_tokens: int
  repeats: int


@dataclasses.dataclass(frozen=True)
class _Alpha:
  """Acceptance at one temperature, on text that the target wrote.

  Attributes:
    estimate: alpha as the record has it.
    tokens_per_call: for gamma 1, 2, ...
  """

  estimate: run_record.Alpha
  tokens_per_call: Sequence[float]


def measure_walltime(
    *,
    workload: workload_lib.Workload,
    drafters: Sequence[source.Source],
    output_dir: str,
    gamma: int | Sequence[int],
    rules: Sequence[contracts.Rule] = (),
    policies: Sequence[contracts.DraftLengthPolicy] = (),
    one_at_a_time: bool = False,
    num_examples: int = 100,
    samplings: Sequence[sampling_lib.Sampling] = (sampling_lib.GREEDY,),
    draft_samplings: Sequence[sampling_lib.Sampling] = (),
    batch_size: int | Sequence[int] = 1,
    repeats: int = 3,
    alpha_tokens: int = 10_000,
) -> list[run_record.RunRecord]:
  """Measures every combination of the settings of which several are given.

  Args:
    workload: the task and the target.
    drafters: one or more.
    output_dir: see `outputs.output_folder`; an interrupted job goes on there.
      Also written is `walltime.md`, the tables that are printed.
    gamma: draft tokens per block, one or several.
    rules: one or several, in place of the workload's.
    policies: one or several, in place of the workload's.
    one_at_a_time: measures only the combinations in which at most one of
      drafter, rule and policy is not the first of those given.
    num_examples: how many are timed, from the first on.
    samplings: Samplings of the target, one or several.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    batch_size: examples decoded together, one or several.
    repeats: how often each batch is timed; the median counts.
    alpha_tokens: alpha is estimated on so many tokens that the target wrote,
      of further examples of the split where the timed ones are too few.
  Returns:
    One run record per combination.
  Raises:
    ValueError: for input that cannot be measured as configured.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  arguments.check(
      num_examples=num_examples, repeats=repeats, alpha_tokens=alpha_tokens
  )
  gammas = arguments.several_counts('gamma', gamma)
  batch_sizes = arguments.several_counts('batch_size', batch_size)
  pairs = sampling_lib.pairs(samplings, draft_samplings)
  if not drafters:
    raise ValueError('No drafter was given. Give one, or several.')
  for drafter in drafters:
    source.check_source(drafter)
  arguments.check_gammas(gammas, workload.length)
  variants = _vary(
      workload,
      len(drafters),
      rules or [workload.rule],
      policies or [workload.policy],
      one_at_a_time,
  )
  for each in itertools.chain(*variants):
    for count in gammas:  # before the first is measured
      draft_length.check_gamma(each.policy, count)
  mesh = workload.make_mesh()
  for size in batch_sizes:  # another size would have other times
    sharding.check_batch(mesh, size)
  with folder_lock.hold(output_dir):
    target = workload.find_target(mesh)
    examples = workload.load_examples(target)  # the first are timed
    if len(examples.tokens) < num_examples:
      raise ValueError(
          f'{num_examples} examples were asked for, but split {workload.split}'
          f' of {workload.mixture_or_task_name} has {len(examples.tokens)}. Ask'
          ' for at most so many.'
      )
    target = workload_lib.bind_vocabulary(target, examples)
    found = [  # all of them before the first is measured
        drafter.find(target, examples.vocabulary)
        for drafter in drafters
    ]
    decoders = _load_decoders(workload, target, found, examples, gammas[0])
    decoder = next(decoders)  # before what an earlier job wrote is touched
    setup = _Setup(
        workload,
        output_folder.OutputFolder(output_dir, 'walltime'),
        examples,
        sum(map(len, variants))
        * math.prod(map(len, (gammas, batch_sizes, pairs))),
        num_examples,
        alpha_tokens,
        repeats,
    )
    records, lines = [], []
    for each in variants:
      measured, told = _measure_drafter(
          setup, decoder, each, gammas, batch_sizes, pairs
      )
      records += measured
      lines += told
      decoder = next(decoders, None)
    results = setup.folder.finish()
    text = '\n'.join([walltime_summary.render(records), '', *lines])
    setup.folder.add_text('walltime.md', text)
  print(text)
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _vary(
    workload: workload_lib.Workload,
    num_drafters: int,
    rules: Sequence[contracts.Rule],
    policies: Sequence[contracts.DraftLengthPolicy],
    one_at_a_time: bool,
) -> list[list[workload_lib.Workload]]:
  """Returns the workloads of each drafter, which differ in rule and policy."""
  return [
      [
          dataclasses.replace(workload, rule=rule, policy=policy)
          for (i, rule), (j, policy) in itertools.product(
              enumerate(rules), enumerate(policies)
          )
          if not one_at_a_time or (drafter, i, j).count(0) >= 2
      ]
      for drafter in range(num_drafters)
  ]


def _load_decoders(
    workload: workload_lib.Workload,
    target: models.ModelSource,
    drafters: Sequence[Callable[[], source.Drafting]],
    examples: examples_lib.Examples,
    gamma: int,
) -> Iterator[token_decoder.TokenDecoder]:
  """Yields the target with one drafter after another."""
  decoder = None
  for drafter in drafters:
    loaded = workload_lib.load_drafter(drafter)
    if decoder is None:
      decoder = token_decoder.TokenDecoder(
          workload_lib.load_target(target),
          loaded,
          gamma=gamma,
          length=workload.length,
          num_valid_tokens=workload.num_valid_tokens(examples.vocabulary),
          matmul_precision=workload.matmul_precision,
      )
    else:
      decoder = decoder.with_drafter(loaded, gamma)
    del loaded  # or it would stay while the next one is read
    yield decoder


def _measure_drafter(
    setup: _Setup, decoder, workloads, gammas, batch_sizes, pairs
) -> tuple[list[run_record.RunRecord], list[str]]:
  """Measures all configurations of one drafter; returns records and advice."""
  alphas = {  # of all rules and policies
      samplings: _find_alpha(setup, decoder, samplings, max(gammas))
      for samplings in pairs
  }
  records, lines = [], []
  for each in workloads:
    variant = decoder.with_drafter(
        decoder.loaded_drafter, gammas[0], each.policy
    )
    workload_lib.note_unstopped_drafts(variant)
    found = _measure_workload(
        dataclasses.replace(setup, workload=each),
        variant,
        alphas,
        gammas,
        batch_sizes,
    )
    for (batch_size, samplings), own in found.items():
      records += own
      told = advice.advise(own, alphas[samplings].tokens_per_call)
      name = (
          f'{readings.method(own[0])}, temperature'
          f' {samplings.target.temperature:g}, batch {batch_size}'
      )
      lines.append(f'{name}: {advice.describe(told)}')
      if costs := advice.describe_costs(own):
        lines.append(f'{name}: {costs}')
  return records, lines


def _measure_workload(
    setup: _Setup,
    decoder,
    alphas: Mapping[sampling_lib.Pair, _Alpha],
    gammas,
    batch_sizes,
) -> dict[tuple[int, sampling_lib.Pair], list[run_record.RunRecord]]:
  """Measures one drafter, rule and policy, one program after another.

  Returns:
    Records of all gammas by batch size and sampling.
  """
  found = {}
  for gamma in gammas:
    programs = part_programs.PartPrograms(
        decoder.with_drafter(decoder.loaded_drafter, gamma)
    )
    for setting in itertools.product(batch_sizes, alphas):
      record = _measure_configuration(
          setup, programs, *setting, alphas[setting[1]]
      )
      found.setdefault(setting, []).append(record)
  return found


def _requests(setup: _Setup, batch_size, samplings, count=None):
  rows = workload_lib.request_rows(setup.examples)[:count]
  return setup.workload.requests(batch_size, *samplings).of(rows)


def _find_alpha(setup: _Setup, decoder, samplings, max_gamma) -> _Alpha:
  """Returns alpha, from an earlier run of the job or measured."""
  max_gamma = max(max_gamma, _MIN_KEPT_GAMMA)
  settings = dataclasses.replace(
      _settings(setup, decoder, _ALPHA_BATCH, samplings),
      gamma=max_gamma,
      num_examples=setup.alpha_tokens,
      job='alpha',
  )
  title = (
      f'alpha of {settings.drafter.name}, temperature'
      f' {samplings.target.temperature:g}'
  )
  keys = [field.name for field in dataclasses.fields(_Alpha)]
  if known := setup.folder.read_part('alpha', settings, keys, title):
    return run_record.from_dict(known, _Alpha)
  num_rows = sharding.describe(decoder.mesh).get(sharding.DATA_AXIS, 1)
  texts = acceptance.collect(
      decoder,
      _requests(setup, _ALPHA_BATCH * num_rows, samplings),
      setup.alpha_tokens,
      name=title,
  )
  estimate = intervals.estimate_alpha([text.betas for text in texts])
  if estimate.num_tokens < setup.alpha_tokens:
    print(
        f'alpha rests on {estimate.num_tokens} tokens, all that the target'
        f' writes on this split; {setup.alpha_tokens} were asked for.',
        file=sys.stderr,
    )
  found = _Alpha(
      estimate, advice.tokens_per_call(texts, max_gamma).tolist()
  )
  setup.folder.write_part('alpha', settings, dataclasses.asdict(found))
  return found


def _settings(
    setup: _Setup, decoder, batch_size, samplings
) -> run_record.RunRecord:
  """Returns a record before anything is measured."""
  return setup.workload.new_record(
      'walltime',
      decoder,
      *samplings,
      num_examples=setup.num_examples,
      batch_size=batch_size,
      repeats=setup.repeats,
      rounds=walltimes.ROUNDS,
  )


def _measure_configuration(
    setup: _Setup, programs, batch_size, samplings, alpha: _Alpha
) -> run_record.RunRecord:
  """Returns the record of a configuration, from the folder or measured."""
  settings = _settings(setup, programs.decoder, batch_size, samplings)
  name = (
      f'{readings.method(settings)}, gamma {settings.gamma},'
      f' batch {batch_size},'
      f' temperature {samplings.target.temperature:g}'
  )
  record = setup.folder.find(settings, name, setup.num_configurations)
  if record is None:
    record = _measure(setup, programs, samplings, settings, name)
  record = walltimes.add_alpha(record, alpha.estimate, setup.workload.rule)
  setup.folder.add(record)
  return record


def _measure(
    setup: _Setup,
    programs,
    samplings: sampling_lib.Pair,
    settings: run_record.RunRecord,
    name: str,
) -> run_record.RunRecord:
  """Times both ways of decoding and scores their texts."""
  decoder = programs.decoder
  count, batch_size = setup.num_examples, settings.batch_size
  batches = [
      decoder.place(request)
      for request in _requests(setup, batch_size, samplings, count)
  ]
  found = walltimes.measure(programs, batches, settings, name)
  examples = setup.examples.first(count)
  progress.say(f'{name}: scoring')

  def judge(run: interleaved.Run) -> dict[str, float]:
    read = predictions_lib.read(
        run.decoded, count, decoder, examples.vocabulary
    )
    values = task_metrics.compute(examples, read.best, read.aux_values)
    return task_metrics.quality(values)

  record = dataclasses.replace(
      found.record,
      truncated_inputs=examples.num_truncated,
      unknown_inputs=examples.num_unknown,
      quality=run_record.BothRuns(judge(found.plain), judge(found.speculative)),
  )
  if samplings.target.is_greedy and setup.workload.rule.is_lossless:
    counted = greedy.compare(decoder, batches, found.plain, found.speculative)
    record = dataclasses.replace(record, greedy=counted)
  return record
