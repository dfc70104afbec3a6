# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures what the paper's Tables 2 to 5 need of pairs with checkpoints.

A task has one target and several drafters. Each drafter has an output folder of
its own, see `measured_pairs`, from which an interrupted job resumes:

  alpha           Table 3: on text that the target wrote, with teacher forcing
  walltimes       Tables 2 and 4: at the paper's gamma, and at the best one by
                  Theorem 3.8 from the measured alpha and c, of those that are
                  no longer than an output
  lenience        Table 5, Appendix A.5: what is accepted, expected and by the
                  loop
  top-k           Appendix A.2: the same for rejection sampling

A target is read once, and only if something of its task is to be measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import functools
import gc

from etils import epath
import jax

from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import measurements
from speculative_t5x.jobs import t5x_baseline
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import drafters as drafters_lib
from speculative_t5x.loading import errors
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import arguments
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import greedy
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.paper import measured_pairs
from speculative_t5x.research.paper import published
from speculative_t5x.rules import lenience
from speculative_t5x.rules import rejection_sampling
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import theory
from speculative_t5x.tasks import examples as examples_lib

_COUNTS = 'token_counts'  # folder of a task's counts, beside its drafters
_TIMED = {'table2'}  # the table of walltimes, of `drafts` only
_SCORED = {'table3', 'table5'}  # tables of acceptance, of all drafters


@dataclasses.dataclass(frozen=True)
class TaskPairs:
  """A task with its target, and what drafts for it."""

  # Its name in the tables, and that of the folder of its records. 'EnDe' and
  # 'CNNDM' stand beside the paper's.
  name: str
  workload: workload_lib.Workload  # task and target
  # Drafters by their names in the tables, to be timed. 'small', 'base' and
  # 'large' stand beside the paper's.
  drafts: Mapping[str, drafters_lib.Drafting]
  # Further drafters by their names. Only their acceptance is measured.
  scored: Mapping[str, drafters_lib.Drafting] = dataclasses.field(
      default_factory=dict
  )
  # Runs a make-table job; takes its output folder, task and lengths. Unigrams
  # and bigrams of its counts are scored too; None for neither.
  count: Callable[..., object] | None = None

  def __post_init__(self):
    own = [_COUNTS, *ngram_drafting.KINDS.values()] if self.count else []
    names = [*self.drafts, *self.scored]
    what = f'A draft of the task {self.name!r}'
    output_folder.check_names(what, names, own)


@dataclasses.dataclass(frozen=True)
class Settings:
  """The measurements of each pair: see `configs/paper/pairs.gin`."""

  samplings: Sequence[sampling_lib.Sampling]
  gamma: int = 5
  control_topk: Sequence[int] = (0, 2, 10)
  num_examples: int = 100
  alpha_tokens: int = 10_000
  repeats: int = 3

  def __post_init__(self):
    counts = 'gamma', 'num_examples', 'alpha_tokens', 'repeats'
    ranges.check_settings(ranges.COUNT, **{x: getattr(self, x) for x in counts})


def measure(
    output_dir: measured_pairs.Path,
    tasks: Sequence[TaskPairs],
    tables: Sequence[str],
    settings: Settings,
) -> None:
  """Measure what 'table2', 'table3' and 'table5', or some, need of all pairs.

  Raises:
    ValueError: for a pair that does not fit, named, before any is measured.
    greedy.MismatchError: if greedy outputs differ by more than rounding, after
      everything is measured.
  """
  if not tasks:
    return
  output_folder.check_names('A task', [task.name for task in tasks])
  records = []
  with folder_lock.hold(measured_pairs.root(output_dir)):
    # All are found before any is measured.
    found = [_find(task, settings) for task in tasks]
    ngrams = [
        _ngrams(output_dir, task, placed.target)
        if {*tables} & _SCORED and task.count is not None
        else {}
        for task, (placed, _) in zip(tasks, found, strict=True)
    ]
    for task, (placed, examples), more in zip(
        tasks, found, ngrams, strict=True
    ):
      names = *task.drafts, *task.scored
      drafters = dict(zip(names, placed.drafters, strict=True)) | more
      folder = functools.partial(measured_pairs.folder, output_dir, task.name)
      records += _measure_task(
          folder, task, placed.target, drafters, examples, {*tables}, settings
      )
      gc.collect()  # compiled programs hold the target in reference cycles
  greedy.check(records)


def _find(
    task: TaskPairs, settings: Settings
) -> tuple[placement.Placed, examples_lib.Examples]:
  """Find all that a task has, and check that it fits; read no weights."""
  arguments.check_gammas([settings.gamma], task.workload.length)
  with errors.prefixed(f'The task {task.name}'):
    return measurements.find(
        task.workload,
        [*task.drafts.values(), *task.scored.values()],
        batch_sizes=[published.BATCH_SIZE],
        gamma=task.workload.length,
        num_examples=settings.num_examples,
    )


def _measure_task(
    folder: Callable[[str], epath.Path],
    task: TaskPairs,
    target: models.Found,
    drafters: Mapping[str, drafters_lib.Drafting],
    examples: examples_lib.Examples,
    tables: set[str],
    settings: Settings,
) -> Iterator[run_record.RunRecord]:
  read = t5x_baseline.prepare(target).deferred()
  plain = task.workload.make_decoder(read, drafters_lib.Drafting(), gamma=1)
  written = {}
  for name, drafter in drafters.items():
    is_timed = name in task.drafts
    if not is_timed and not tables & _SCORED:
      continue
    own = output_folder.OutputFolder(folder(name), 'walltime')
    # Held by no name here, or it would stay while the next one is read.
    yield from _measure_pair(
        measurements.Measurements(
            own,
            task.workload,
            examples,
            settings.num_examples,
            settings.alpha_tokens,
            settings.repeats,
            t5x_baseline.of(plain),
            written,
        ),
        plain.with_drafter(drafter, settings.gamma).loaded(),
        functools.partial(_gamma, task.name, name, settings.gamma),
        settings,
        tables if is_timed else tables - _TIMED,
        settings.control_topk if is_timed else (),
    )
    own.finish()
    gc.collect()
    # The programs of a drafter, hundreds of MB, are of no use to the next one.
    jax.clear_caches()


def _ngrams(
    output_dir: measured_pairs.Path, task: TaskPairs, target: models.Found
) -> dict[str, drafters_lib.Drafting]:
  """Return unigrams and bigrams of counts, which are made unless they exist."""
  # Another task, or longer texts, are counted anew. A training split that was
  # changed is not: it may be long, and these drafts need no exact counts.
  counted = f'{task.workload.mixture_or_task_name}_{task.workload.length}'
  folder = measured_pairs.folder(output_dir, task.name, _COUNTS) / counted
  if not (folder / token_counts.FILE_NAME).exists():
    with errors.prefixed(
        f'The training split of the task {task.name} cannot be counted'
        ' (COUNT=None leaves out unigrams and bigrams)'
    ):
      task.count(
          output_dir=str(folder),
          mixture_or_task_name=task.workload.mixture_or_task_name,
          task_feature_lengths=task.workload.task_feature_lengths,
      )
  return {
      kind: drafters_lib.NGrams(str(folder), order).find(target)
      for order, kind in ngram_drafting.KINDS.items()
  }


def _gamma(task: str, draft: str, default: int, temperature: float) -> int:
  """Return the paper's gamma, or another if it has none for the pair."""
  row = published.find_row(task, draft, temperature)
  return default if row is None else row.gamma


def _best_gamma(alpha: float, cost: float | None, longest: int) -> int | None:
  """Return the best gamma by Theorem 3.8 up to a length; None without one."""
  if not cost:
    return None
  return int(theory.optimal_gamma(alpha, cost, longest)) or None


def _measure_pair(
    task: measurements.Measurements,
    decoder: token_decoder.TokenDecoder,
    first_gamma: Callable[[float], int],
    settings: Settings,
    tables: set[str],
    control_topk: Sequence[int],
) -> Iterator[run_record.RunRecord]:
  """Yield the records that tables need of a drafter; add them to a folder."""
  workload = task.workload
  # Compiled once for all samplings.
  programs = functools.cache(
      lambda gamma: part_programs.PartPrograms(
          decoder.with_drafter(decoder.loaded_drafter, gamma)
      )
  )
  pairs = [sampling_lib.Pair(x, x) for x in settings.samplings]
  alphas = {pair: task.alpha(decoder, pair) for pair in pairs}
  for pair, found in alphas.items():
    alpha, temperature = found.estimate, pair.target.temperature
    # Alpha alone, without gamma and times.
    scored = dataclasses.replace(
        task.new_record(
            decoder, workload, pair, batch_size=published.BATCH_SIZE
        ),
        gamma=None,
        gamma_policy=None,
    )
    name = f'alpha alone, temperature {temperature:g}'
    known = task.folder.find(scored, name)
    if known is None or known.alpha != alpha:
      known = dataclasses.replace(scored, alpha=alpha)
    task.folder.add(known)
    yield known
    if tables & _TIMED:
      time = lambda gamma, pair=pair, alpha=alpha: task.walltime(
          programs(gamma), workload, published.BATCH_SIZE, pair, alpha
      )
      first = first_gamma(temperature)
      record = time(first)
      yield record
      cost = judgement.readable(record).c
      best = _best_gamma(alpha.value, cost, workload.length)
      if best not in (None, first):
        yield time(best)
  leniences = acceptance.LENIENCES if 'table5' in tables else ()
  for pair in pairs:
    gamma = first_gamma(pair.target.temperature)
    # Samplings, alpha, a rule, and alpha under that rule.
    rows = [
        (pair, alphas[pair].estimate, lenience.make_rule(value), rate)
        for value, rate in zip(leniences, alphas[pair].lenient)
    ]
    is_sampled = 'table3' in tables and not pair.target.is_greedy
    for top_k in control_topk if is_sampled else ():
      kept = dataclasses.replace(pair.target, top_k=top_k)
      other = sampling_lib.Pair(kept, kept)
      found = alphas.get(other) or task.alpha(decoder, other)
      rule = rejection_sampling.RejectionSampling()
      rows.append((other, found.estimate, rule, found.control))
    for samplings, alpha, rule, rule_alpha in rows:
      yield task.accepted(
          programs(gamma).decoder,
          dataclasses.replace(workload, rule=rule),
          samplings,
          alpha=alpha,
          rule_alpha=rule_alpha,
      )
