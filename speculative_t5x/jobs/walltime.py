# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime job: what speculation gains on a task, and why.

It measures plain and speculative decoding of the same examples, their parts,
and alpha on text that the target wrote.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools

from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import measurements
from speculative_t5x.jobs import t5x_baseline
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import speedup_picture
from speculative_t5x.loading import drafters as drafters_lib
from speculative_t5x.loading import placement
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.reports import advice
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import candidate_step
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import examples as examples_lib


def measure_walltime(
    *,
    workload: workload_lib.Workload,
    drafters: Sequence[drafters_lib.Choice],
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
  """Measure every combination of the settings of which several are given.

  The arguments are explained in `configs/runs/walltime.gin`, but for:

  Args:
    rules: One or several, in place of the workload's.
    policies: One or several, in place of the workload's.
    samplings: Samplings of the target, one or several.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    alpha_tokens: Counted on further examples of the split too, where the timed
      ones are too few.
  Returns:
    One run record per combination.
  Raises:
    ValueError: for input that cannot be measured as configured.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  ranges.check_settings(
      ranges.COUNT,
      num_examples=num_examples, repeats=repeats, alpha_tokens=alpha_tokens
  )
  gammas = arguments.several_counts('gamma', gamma)
  batch_sizes = arguments.several_counts('batch_size', batch_size)
  pairs = sampling_lib.pairs(samplings, draft_samplings)
  arguments.check_some('drafters', drafters)
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
    # The first are timed.
    target, examples = workload.read_task(least=num_examples)
    placed = workload.place(  # all of them before the first is measured
        target,
        drafters,
        examples.vocabulary,
        sizes=batch_sizes,
        num_decodes=1,
        gamma=max(gammas),
        beside=measurements.ALPHA_BATCH,
    )
    model = network.NetworkModel(target.config, target.special_ids)
    for drafting, workloads in zip(placed.drafters, variants, strict=True):
      drafter = drafting.drafter(model, gammas[0])
      if isinstance(drafter, candidates.CandidateDrafter):
        for each in workloads:
          candidate_step.check(each.rule, each.policy, drafter)
    decoders = _load_decoders(workload, placed, examples, gammas[0])
    decoder = next(decoders)  # before what an earlier job wrote is touched
    task = measurements.Measurements(
        workload,
        examples,
        num_examples,
        alpha_tokens,
        repeats,
        t5x_baseline.of(decoder),
    )
    folder = output_folder.OutputFolder(output_dir, 'walltime')
    settings = [*itertools.product(batch_sizes, pairs)]
    total = sum(map(len, variants)) * len(gammas) * len(settings)
    records, lines = [], []
    for workloads in variants:
      for measured, told in _measure_drafter(
          task, folder, decoder, workloads, gammas, settings, total
      ):
        records += measured
        lines += told
      decoder = next(decoders, None)
    results = folder.finish()
    page = walltime_summary.render(records, lines)
    folder.add_text('walltime.md', page)
    speedup_picture.write(output_dir, 'walltime.png', {'': records})
  console.show(page)
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
  """Return the workloads of each drafter, which differ in rule and policy."""
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
    placed: placement.Placed,
    examples: examples_lib.Examples,
    gamma: int,
) -> Iterator[token_decoder.TokenDecoder]:
  """Yield the target with one drafter after another."""
  decoder = None
  for drafter in placed.drafters:
    loaded = workload_lib.load_drafter(drafter)
    if decoder is None:
      decoder = workload.make_decoder(
          workload_lib.load_target(t5x_baseline.prepare(placed.target)),
          loaded,
          examples.vocabulary,
          gamma=gamma,
      )
    else:
      decoder = decoder.with_drafter(loaded, gamma)
    del loaded  # or it would stay while the next one is read
    yield decoder


def _measure_drafter(
    task: measurements.Measurements,
    folder: output_folder.OutputFolder,
    decoder: token_decoder.TokenDecoder,
    workloads: Sequence[workload_lib.Workload],
    gammas: Sequence[int],
    settings: Sequence[tuple[int, sampling_lib.Pair]],
    total: int,
) -> Iterator[tuple[list[run_record.RunRecord], list[str]]]:
  """Yield records and advice of each setting, rule and policy in turn."""
  drafter = decoder.loaded_drafter
  pairs = [pair for _, pair in settings]
  workload_lib.note_unread_sampling(decoder, pairs)
  alphas = {
      samplings: task.alpha(folder, decoder, samplings)
      for samplings in dict.fromkeys(pairs)
  }
  for workload in workloads:
    variant = decoder.with_drafter(drafter, gammas[0], workload.policy)
    workload_lib.note_unstopped_drafts(variant)
    found = {setting: [] for setting in settings}
    for gamma in gammas:
      programs = part_programs.PartPrograms(
          variant.with_drafter(drafter, gamma)
      )
      for size, pair in settings:
        alpha = alphas[pair].estimate
        found[size, pair].append(
            task.walltime(
                folder, programs, workload, size, pair, total, alpha
            )
        )
    for (size, pair), records in found.items():
      name = (
          f'{readings.method(records[0])}, temperature'
          f' {pair.target.temperature:g}, batch {size}'
      )
      lines = advice.describe(records)
      yield records, [f'{name}: {line}' for line in lines]
