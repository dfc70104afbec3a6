# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime job: the gain of speculation on a task, and its causes.

It measures plain and speculative decoding of the same examples, their parts,
and alpha on text that the target wrote.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import functools
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
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.reports import advice
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import tree_step


@dataclasses.dataclass(frozen=True, kw_only=True)
class WalltimeSetup:
  """A walltime job: every combination of the settings that are several.

  The attributes are explained in `configs/runs/walltime.gin`, but for:

  Attributes:
    rules: One or several, in place of the workload's.
    policies: One or several, in place of the workload's.
    samplings: Samplings of the target, one or several.
    draft_samplings: Samplings of the drafter: one for all, or one per sampling
      of the target; none for the target's.
    alpha_tokens: Counted on further examples of the split too, where the timed
      ones are too few.
  Raises:
    ValueError: for settings that no job can have.
  """

  workload: workload_lib.Workload
  drafters: Sequence[drafters_lib.Drafting]
  output_dir: str
  gamma: int | Sequence[int]
  rules: Sequence[contracts.Rule] = ()
  policies: Sequence[draft_length.Policy] = ()
  one_at_a_time: bool = False
  num_examples: int = 100
  samplings: Sequence[sampling_lib.Sampling] = (sampling_lib.GREEDY,)
  draft_samplings: Sequence[sampling_lib.Sampling] = ()
  batch_size: int | Sequence[int] = 1
  repeats: int = 3
  alpha_tokens: int = 10_000

  def __post_init__(self):
    counts = 'num_examples', 'repeats', 'alpha_tokens'
    ranges.check_settings(
        ranges.COUNT, **{name: getattr(self, name) for name in counts}
    )
    arguments.check_some('drafters', self.drafters)
    arguments.check_gammas(self.gammas, self.workload.length)
    policies = self.policies or [self.workload.policy]
    for policy, gamma in itertools.product(policies, self.gammas):
      draft_length.check_gamma(policy, gamma)
    _ = self.batch_sizes, self.pairs  # likewise checked

  @functools.cached_property
  def gammas(self) -> list[int]:
    """Each gamma, once."""
    return arguments.several_counts('gamma', self.gamma)

  @functools.cached_property
  def batch_sizes(self) -> list[int]:
    """Each batch size, once."""
    return arguments.several_counts('batch_size', self.batch_size)

  @functools.cached_property
  def pairs(self) -> list[sampling_lib.Pair]:
    """The samplings of target and drafter."""
    return sampling_lib.pairs(self.samplings, self.draft_samplings)

  def workloads(self, drafter: int) -> list[workload_lib.Workload]:
    """Return those of a drafter, by number, which differ in rule and policy."""
    rules = self.rules or [self.workload.rule]
    policies = self.policies or [self.workload.policy]
    return [
        dataclasses.replace(self.workload, rule=rule, policy=policy)
        for (i, rule), (j, policy) in itertools.product(
            enumerate(rules), enumerate(policies)
        )
        if not self.one_at_a_time or (drafter, i, j).count(0) >= 2
    ]


def measure_walltime(setup: WalltimeSetup) -> list[run_record.RunRecord]:
  """Measure every combination of the settings of which several are given.

  Returns:
    One run record per combination.
  Raises:
    ValueError: for input that cannot be measured as configured.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  variants = [*map(setup.workloads, range(len(setup.drafters)))]
  with folder_lock.hold(setup.output_dir):
    placed, examples = measurements.find(
        setup.workload,
        setup.drafters,
        batch_sizes=setup.batch_sizes,
        gamma=max(setup.gammas),
        num_examples=setup.num_examples,
    )
    _check_rules(setup, placed, variants)
    decoder = setup.workload.make_decoder(
        t5x_baseline.prepare(placed.target).deferred(),
        drafters_lib.Drafting(),
        gamma=setup.gammas[0],
    )
    folder = output_folder.OutputFolder(setup.output_dir, 'walltime')
    task = measurements.Measurements(
        folder,
        setup.workload,
        examples,
        setup.num_examples,
        setup.alpha_tokens,
        setup.repeats,
        t5x_baseline.of(decoder),
    )
    records, lines = [], []
    for drafter, workloads in zip(placed.drafters, variants, strict=True):
      # Held by no name here, or it would stay while the next one is read.
      for measured, told in _measure_drafter(
          setup,
          task,
          workload_lib.loaded(decoder.with_drafter(drafter, setup.gammas[0])),
          workloads,
      ):
        records += measured
        lines += told
    results = folder.finish()
    page = walltime_summary.render(records, lines)
    folder.add_text('walltime.md', str(page))
    speedup_picture.write(setup.output_dir, 'walltime.png', {'': records})
  console.show(page)
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _check_rules(
    setup: WalltimeSetup,
    placed: placement.Placed,
    variants: Sequence[Sequence[workload_lib.Workload]],
) -> None:
  target = placed.target
  model = network.NetworkModel(target.config, target.special_ids)
  for drafting, workloads in zip(placed.drafters, variants, strict=True):
    form = drafting.drafter(model, setup.gammas[0]).form
    for each in workloads:
      tree_step.check(each.rule, each.policy, form)


def _measure_drafter(
    setup: WalltimeSetup,
    task: measurements.Measurements,
    decoder: token_decoder.TokenDecoder,
    workloads: Sequence[workload_lib.Workload],
) -> Iterator[tuple[list[run_record.RunRecord], list[str]]]:
  """Yield records and advice of each setting, rule and policy in turn."""
  drafter = decoder.loaded_drafter
  settings = [*itertools.product(setup.batch_sizes, setup.pairs)]
  alphas = {pair: task.alpha(decoder, pair).estimate for pair in setup.pairs}
  for workload in workloads:
    variant = decoder.with_drafter(drafter, setup.gammas[0], workload.policy)
    by_setting = {setting: [] for setting in settings}
    for gamma in setup.gammas:
      programs = part_programs.PartPrograms(
          variant.with_drafter(drafter, gamma)
      )
      for size, pair in settings:
        by_setting[size, pair].append(
            task.walltime(programs, workload, size, pair, alphas[pair])
        )
    for (size, pair), records in by_setting.items():
      name = (
          f'{readings.method(records[0])}, temperature'
          f' {pair.target.temperature:g}, batch {size}'
      )
      lines = advice.describe(records)
      yield records, [f'{name}: {line}' for line in lines]
