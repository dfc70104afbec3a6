# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime job: what speculation gains on a task, and why.

For each draft, gamma, batch size and temperature: both ways of decoding over
the same examples, the parts that they are made of, and alpha on text that the
target wrote. A job that was interrupted goes on after the configurations that
it finished.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import math
import sys
from typing import Any

from speculative_t5x import acceptance
from speculative_t5x import analysis
from speculative_t5x import run_record
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.jobs import counts
from speculative_t5x.jobs import examples as examples_lib
from speculative_t5x.jobs import folder_lock
from speculative_t5x.jobs import greedy
from speculative_t5x.jobs import output_folder
from speculative_t5x.jobs import pair_loading
from speculative_t5x.jobs import predictions as predictions_lib
from speculative_t5x.networks import t5
from speculative_t5x.paper import tables
from speculative_t5x.walltime import advice
from speculative_t5x.walltime import measurement
from speculative_t5x.walltime import part_programs
from speculative_t5x.walltime import side_by_side

_ALPHA_BATCH = 8  # examples decoded at once where only their text matters
_MIN_KEPT_GAMMA = 10  # so that a job resumed with other gammas finds them


@dataclasses.dataclass(frozen=True)
class Draft:
  """A draft to be measured.

  Attributes:
    config: its sizes.
    checkpoint_path: its checkpoint.
    vocabulary_file: its own SentencePiece model, to be compared with the
      task's; None if they are known to be the same.
  """

  config: t5.T5Config
  checkpoint_path: str
  vocabulary_file: str | None = None


@dataclasses.dataclass(frozen=True)
class _Setup:
  """What all configurations of one job share."""

  folder: output_folder.OutputFolder
  examples: examples_lib.Examples
  num_configurations: int
  num_examples: int  # that are timed
  alpha_tokens: int
  repeats: int
  settings: run_record.Record


@dataclasses.dataclass(frozen=True)
class _Alpha:
  """Acceptance of a draft under a law, on text that the target wrote.

  Attributes:
    estimate: alpha as the record has it.
    tokens_per_call: for gamma 1, 2, ...
  """

  estimate: dict[str, Any]
  tokens_per_call: list[float]


def measure_walltime(
    *,
    mixture_or_task_name: str,
    split: str,
    target_config: t5.T5Config,
    checkpoint_path: str,
    drafts: Sequence[Draft],
    output_dir: str,
    gamma: int | Sequence[int],
    task_feature_lengths: Mapping[str, int],
    num_examples: int = 100,
    temperature: float | Sequence[float] = (0.0, 1.0),
    topk: int = 0,
    topp: float = 0.0,
    seed: int = 0,
    batch_size: int | Sequence[int] = 1,
    mesh_shape: Sequence[int] = (1, 1),
    draft_model_parallel: bool = False,
    repeats: int = 3,
    alpha_tokens: int = 10_000,
    matmul_precision: str | None = 'highest',
) -> list[run_record.Record]:
  """Measures every combination of draft, gamma, batch size and temperature.

  Args:
    mixture_or_task_name: a registered seqio task.
    split: of it.
    target_config: sizes of the target.
    checkpoint_path: the target's checkpoint.
    drafts: one or more.
    output_dir: see `jobs.output_folder`; a job that was interrupted goes on
      there. Also written is `walltime.md`, the tables that are printed.
    gamma: guesses a block, one or several.
    task_feature_lengths: most tokens of 'inputs' and 'targets'.
    num_examples: how many are timed, from the first on.
    temperature: one or several.
    topk: keep the k likeliest tokens; 0 is off.
    topp: keep the likeliest tokens of this mass; 0 is off.
    seed: of the samples.
    batch_size: examples decoded together, one or several.
    mesh_shape: over how many devices the examples of a batch are dealt out, and
      over how many the target is.
    draft_model_parallel: whether the draft is too.
    repeats: how often each batch is timed; the median counts.
    alpha_tokens: how many tokens of the target's alpha is estimated on, taken
      from further examples of the split where the timed ones do not suffice.
    matmul_precision: JAX's setting.
  Returns:
    One run record for each combination.
  Raises:
    ValueError: for input that cannot be measured as asked.
    greedy.MismatchError: if greedy outputs differ by more than rounding. The
      results are written nevertheless.
  """
  counts.check(
      num_examples=num_examples, repeats=repeats, alpha_tokens=alpha_tokens
  )
  token_decoder.check_int32('seed', seed)
  gammas = counts.several_counts('gamma', gamma)
  batch_sizes = counts.several_counts('batch_size', batch_size)
  temperatures = counts.several('temperature', temperature)
  for each in temperatures:
    sampling_lib.make_sampling(each, topk, topp)  # before anything is read
  if not drafts:
    raise ValueError('No draft was given. Give one, or several.')
  length = task_feature_lengths.get('targets', 0)
  counts.check_gammas(gammas, length)
  meshes = [pair_loading.make_mesh(mesh_shape, size) for size in batch_sizes]
  with folder_lock.hold(output_dir):
    examples = _load_examples(
        mixture_or_task_name, split, task_feature_lengths, num_examples
    )
    load = functools.partial(
        pair_loading.load_decoder,
        target_config=target_config,
        checkpoint_path=checkpoint_path,
        vocabulary=examples.vocabulary,
        gamma=gammas[0],
        length=length,
        num_decodes=1,
        mesh=meshes[0],
        draft_model_parallel=draft_model_parallel,
        matmul_precision=matmul_precision,
    )
    decoders = _load_decoders(load, drafts)
    decoder = next(decoders)  # before what an earlier job wrote is touched
    setup = _Setup(
        output_folder.OutputFolder(output_dir, 'walltime'),
        examples,
        math.prod(map(len, (drafts, gammas, batch_sizes, temperatures))),
        num_examples,
        alpha_tokens,
        repeats,
        {
            'task': mixture_or_task_name,
            'split': split,
            'inputs_length': task_feature_lengths['inputs'],
            'targets_length': length,
            'topk': topk,
            'topp': topp,
            'seed': seed,
        },
    )
    records, lines = [], []
    while decoder is not None:
      found = _measure_draft(setup, decoder, gammas, batch_sizes, temperatures)
      records += found.records
      lines += found.advice
      decoder = next(decoders, None)
    results = setup.folder.finish()
    text = '\n'.join([tables.summary(records), '', *lines])
    setup.folder.add_text('walltime.md', text)
  print(text)
  print(f'Records: {results}')
  greedy.check(records)
  return records


def _load_decoders(
    load: Callable[..., token_decoder.TokenDecoder], drafts: Sequence[Draft]
) -> Iterator[token_decoder.TokenDecoder]:
  """The target with one draft after another."""
  decoder = None
  for draft in drafts:
    decoder = load(
        draft_config=draft.config,
        draft_checkpoint_path=draft.checkpoint_path,
        draft_vocabulary_file=draft.vocabulary_file,
        loaded=decoder,
    )
    yield decoder


def _load_examples(name, split, lengths, num_examples) -> examples_lib.Examples:
  """All of a split, of which the first are timed."""
  examples = examples_lib.load(name, split, lengths)
  if len(examples.tokens) < num_examples:
    raise ValueError(
        f'{num_examples} examples were asked for, but split {split} of {name}'
        f' has {len(examples.tokens)}. Ask for at most so many.'
    )
  return examples


@dataclasses.dataclass(frozen=True)
class _Found:
  records: list[run_record.Record]
  advice: list[str]


def _measure_draft(
    setup: _Setup, decoder, gammas, batch_sizes, temperatures
) -> _Found:
  """All configurations of one draft, those of one program after another."""
  alphas = {
      temperature: _find_alpha(setup, decoder, temperature, max(gammas))
      for temperature in temperatures
  }
  found: dict[tuple[int, float], list[run_record.Record]] = {}
  for gamma in gammas:
    programs = part_programs.PartPrograms(
        decoder.with_draft(decoder.draft, gamma)
    )
    for law in itertools.product(batch_sizes, temperatures):
      record = _measure_configuration(setup, programs, *law, alphas[law[1]])
      found.setdefault(law, []).append(record)
  lines = []
  for (batch_size, temperature), records in found.items():
    told = advice.advise(records, alphas[temperature].tokens_per_call)
    lines.append(
        f'{records[0]["drafter"]["name"]}, temperature {temperature:g}, batch'
        f' {batch_size}: {advice.describe(told)}'
    )
  return _Found([r for each in found.values() for r in each], lines)


def _requests(setup: _Setup, decoder, batch_size, temperature, count=None):
  law = sampling_lib.make_sampling(
      temperature, setup.settings['topk'], setup.settings['topp']
  )
  return side_by_side.requests(
      setup.examples.tokens[:count],
      setup.examples.example_ids[:count],
      batch_size=batch_size,
      length=decoder.length,
      seed=setup.settings['seed'],
      sampling=law,
      draft_sampling=law,
  )


def _find_alpha(setup: _Setup, decoder, temperature, max_gamma) -> _Alpha:
  """Alpha and tokens a call, from an earlier run of the job or measured."""
  max_gamma = max(max_gamma, _MIN_KEPT_GAMMA)
  settings = {
      **_settings(setup, decoder, _ALPHA_BATCH, temperature),
      'gamma': max_gamma,
      'num_examples': setup.alpha_tokens,
      'job': 'alpha',
  }
  title = f'alpha of {settings["drafter"]["name"]}, temperature {temperature:g}'
  keys = [field.name for field in dataclasses.fields(_Alpha)]
  if known := setup.folder.read_part('alpha', settings, keys, title):
    return _Alpha(**known)
  num_rows = sharding.describe(decoder.mesh).get(sharding.DATA_AXIS, 1)
  texts = acceptance.collect(
      decoder,
      _requests(setup, decoder, _ALPHA_BATCH * num_rows, temperature),
      setup.alpha_tokens,
  )
  estimate = analysis.estimate_alpha([text.betas for text in texts])
  if estimate.num < setup.alpha_tokens:
    print(
        f'alpha rests on {estimate.num} tokens, all that the target writes on'
        f' this split; {setup.alpha_tokens} were asked for.',
        file=sys.stderr,
    )
  found = _Alpha(
      {
          'value': estimate.value,
          'ci95': None if estimate.ci95 is None else list(estimate.ci95),
          'num_tokens': estimate.num,
      },
      advice.tokens_per_call(texts, max_gamma).tolist(),
  )
  setup.folder.write_part('alpha', settings, dataclasses.asdict(found))
  return found


def _settings(setup: _Setup, decoder, batch_size, temperature):
  """A record before anything is measured."""
  return run_record.make(
      'walltime',
      **setup.settings,
      num_examples=setup.num_examples,
      target=run_record.describe_model(decoder.target),
      drafter=run_record.describe_draft(decoder.draft, temperature),
      verification={'rule': 'tokenwise', 'lenience': None},
      temperature=temperature,
      batch_size=batch_size,
      lossless=True,
      gamma=decoder.gamma,
      num_decodes=decoder.num_decodes,
      mesh=sharding.describe(decoder.mesh),
      matmul_precision=decoder.matmul_precision,
      repeats=setup.repeats,
      rounds=measurement.ROUNDS,
  )


def _measure_configuration(
    setup: _Setup, programs, batch_size, temperature, alpha: _Alpha
) -> run_record.Record:
  """The record of a configuration, from the folder or measured."""
  settings = _settings(setup, programs.decoder, batch_size, temperature)
  name = (
      f'{settings["drafter"]["name"]}, gamma {settings["gamma"]}, batch'
      f' {batch_size}, temperature {temperature:g}'
  )
  record = setup.folder.find(settings, name, setup.num_configurations)
  if record is None:
    record = settings | _measure(setup, programs, settings, name)
  record['alpha'] = alpha.estimate
  record['predicted_speedup'] = float(
      analysis.walltime_factor(
          alpha.estimate['value'], record['gamma'], record['c']
      )
  )
  setup.folder.add(record)
  return record


def _measure(setup: _Setup, programs, settings, name) -> run_record.Record:
  """Times and judges both ways of decoding."""
  decoder, temperature = programs.decoder, settings['temperature']
  count, batch_size = setup.num_examples, settings['batch_size']
  batches = [
      decoder.place(request)
      for request in _requests(setup, decoder, batch_size, temperature, count)
  ]
  found = measurement.measure(
      programs, batches, repeats=setup.repeats, name=name
  )
  record = dict(found.record)
  record['truncated_inputs'] = setup.examples.first(count).num_truncated
  record['quality'] = _judge(setup, decoder, found)
  if temperature <= sampling_lib.MIN_TEMPERATURE:
    record['greedy'] = greedy.compare(
        decoder, batches, found.plain, found.speculative
    )
  return record


def _judge(setup: _Setup, decoder, found: measurement.Measured):
  examples = setup.examples.first(setup.num_examples)
  return {
      name: predictions_lib.judge(
          examples, predictions_lib.read(run, examples, decoder.num_decodes)
      )
      for name, run in (
          ('baseline', found.plain),
          ('speculative', found.speculative),
      )
  }
