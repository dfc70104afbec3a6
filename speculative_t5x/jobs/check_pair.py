# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check-pair job: whether two checkpoints can work as a pair.

Reads the vocabularies, and of the parameters names, shapes and dtypes: no
weights.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import hashlib

from etils import epath
import jax.numpy as jnp
from rich import console as console_lib

from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x import vocabularies
from speculative_t5x.compatibility import checks
from speculative_t5x.compatibility import facts
from speculative_t5x.compatibility import memory
from speculative_t5x.compatibility import pairing
from speculative_t5x.networks import t5
from speculative_t5x.reports import console
from speculative_t5x.runtime import quiet


class PairError(ValueError):
  """A target and a draft that cannot work together."""


def check_pair(
    *,
    checkpoint_path: str,
    draft_checkpoint_path: str,
    task_feature_lengths: Mapping[str, int],
    gamma: int,
    batch_size: int,
    num_decodes: int = 1,
    dtype: jnp.dtype = jnp.float32,
    vocabulary_file: str | None = None,
    draft_vocabulary_file: str | None = None,
    mixture_or_task_name: str | None = None,
    target_config: t5.T5Config | None = None,
    draft_config: t5.T5Config | None = None,
    device_memory_gib: float | None = None,
    mesh_shape: Sequence[int] = (1, 1),
    draft_model_parallel: bool = False,
) -> facts.Report:
  """Prints a report on a pair, before any accelerator is busy.

  Args:
    checkpoint_path: the target's checkpoint.
    draft_checkpoint_path: the draft's.
    task_feature_lengths: most tokens of 'inputs' and 'targets'.
    gamma: draft tokens per block, at least 1.
    batch_size: examples decoded together.
    num_decodes: samples per example.
    dtype: to decode in, float32 or bfloat16; that of a given config counts.
    vocabulary_file: a SentencePiece model; None for the task's, or else for
      the one in the folder of the target's checkpoint.
    draft_vocabulary_file: None for the one in the folder of the draft's
      checkpoint, or else the target's.
    mixture_or_task_name: a registered seqio task, for its vocabulary.
    target_config: sizes of the target; None to take them from the checkpoint.
    draft_config: sizes of the draft, likewise.
    device_memory_gib: of one device; None for not checked.
    mesh_shape: devices along 'data' and along 'model'.
    draft_model_parallel: whether the draft is divided over them as the target
      is; each device holds all of it otherwise.
  Returns:
    What was printed.
  Raises:
    PairError: if they cannot work together, after the report is printed.
    ValueError: for a length, a count, a dtype or a task that cannot be.
  """
  workload = memory.Workload(
      batch_size=batch_size,
      num_decodes=num_decodes,
      inputs_length=task_feature_lengths.get('inputs', 0),
      targets_length=task_feature_lengths.get('targets', 0),
      gamma=gamma,
      mesh_shape=mesh_shape,
      draft_model_parallel=draft_model_parallel,
  )
  num_ids = 0
  if vocabulary_file is None and mixture_or_task_name is not None:
    vocabulary_file, num_ids = _task_vocabulary(mixture_or_task_name)
  files = _vocabulary_files(
      (vocabulary_file, draft_vocabulary_file),
      (checkpoint_path, draft_checkpoint_path),
  )
  paths = checkpoint_path, draft_checkpoint_path
  roles = pairing.make_roles(
      *map(_open_or_none, paths), target_config, draft_config
  )
  candidates = [
      _candidate(*each, dtype, num_ids)
      for each in zip(paths, roles, reversed(roles), files, strict=True)
  ]
  target, draft = candidates
  if files[1] is None and target.vocabulary is not None:
    assumed = dataclasses.replace(target.vocabulary, is_assumed=True)
    draft = dataclasses.replace(draft, vocabulary=assumed)
  report = checks.check(target, draft, workload, device_memory_gib)
  console.show(render(report))
  if report.errors:
    raise PairError(_refusal(report))
  num_warnings = sum(f.verdict == 'warning' for f in report.findings)
  suffix = f'; warnings: {num_warnings}' if num_warnings else ''
  print(f'The pair can work{suffix}.')
  return report


def _open_or_none(path: str) -> checkpoints.Checkpoint | None:
  try:
    return checkpoints.open(path)
  except checkpoints.CheckpointError:
    return None  # `_read_model` says why


def _candidate(
    path: str,
    role: pairing.Role,
    other: pairing.Role,
    vocabulary_file: str | None,
    dtype: jnp.dtype,
    num_ids: int,
) -> facts.Candidate:
  """All that can be read of a model; what cannot is among its problems."""
  candidate = _read_model(path, role, other, dtype)
  if vocabulary_file is None:
    return candidate
  try:
    vocabulary = _read_vocabulary(vocabulary_file, num_ids)
  except vocabularies.VocabularyError as error:
    return candidate.with_problem(str(error))
  return dataclasses.replace(candidate, vocabulary=vocabulary)


def _read_model(
    path: str, role: pairing.Role, other: pairing.Role, dtype: jnp.dtype
) -> facts.Candidate:
  try:
    checkpoint = role.checkpoint or checkpoints.open(path)
    specs = checkpoint.specs
    config = loading.read_config(checkpoint, dtype)
  except checkpoints.CheckpointError as error:
    return facts.Candidate(path).with_problem(f'{role.path_name}: {error}')
  source = facts.FROM_PARAMETERS
  if checkpoint.layout is checkpoints.Layout.HUGGING_FACE:
    source = 'config.json'
  candidate = facts.Candidate(
      path, checkpoint.layout.value, specs, config, source
  )
  try:
    pairing.check_network(role, role.config or config, other)
  except checkpoints.CheckpointError as error:
    return candidate.with_problem(str(error))
  if role.config is None:
    return candidate
  return dataclasses.replace(
      candidate, config=role.config, config_source=role.config_name
  )


def _vocabulary_files(
    given: tuple[str | None, str | None], checkpoint_paths: tuple[str, str]
) -> tuple[str | None, str | None]:
  """The target's and the draft's, beside the weights if they are not given."""
  found = [
      name or _beside_weights(path)
      for name, path in zip(given, checkpoint_paths, strict=True)
  ]
  return found[0], found[1]


def _beside_weights(checkpoint_path: str) -> str | None:
  """The folder, if it holds a vocabulary as well."""
  files = (epath.Path(checkpoint_path) / name for name in vocabularies.NAMES)
  return checkpoint_path if any(file.is_file() for file in files) else None


def _read_vocabulary(path: str, num_ids: int) -> facts.Vocabulary:
  pieces = vocabularies.load(path)
  return facts.Vocabulary(
      hashlib.sha256(pieces.path.read_bytes()).hexdigest(),
      num_ids or pieces.num_pieces,
      pieces,
  )


def _task_vocabulary(name: str) -> tuple[str, int]:
  """The file of a task's vocabulary, and how many ids it has with it."""
  with quiet.quiet_stderr():  # TensorFlow, which comes along, writes there
    import seqio  # the one thing here that needs it
  try:
    task = seqio.get_mixture_or_task(name)
  except ValueError as error:
    raise ValueError(
        f'There is no task named {name}. A gin file that imports the module of'
        ' a task registers it.'
    ) from error
  vocabulary = task.output_features['targets'].vocabulary
  if not isinstance(vocabulary, seqio.SentencePieceVocabulary):
    raise vocabularies.VocabularyError(
        f'The vocabulary of {name} is a {type(vocabulary).__name__}; a pair is'
        ' checked by SentencePiece models. Give VOCABULARY_FILE.'
    )
  return vocabulary.sentencepiece_model_file, vocabulary.vocab_size


def render(report: facts.Report) -> console_lib.Group:
  """Returns the findings as a table, and remarks on them below it."""
  roles = zip(('target', 'draft'), report.checkpoints, strict=True)
  rows = [
      (f.name, f.target, f.draft, '' if f.verdict == 'ok' else f.verdict)
      for f in report.findings
  ]
  remarks = [
      f'{f.verdict}: {f.name}: {f.remedy}' for f in report.findings if f.remedy
  ]
  remarks += [f'assumed: {text}' for text in report.assumptions]
  return console_lib.Group(
      *(f'{role}: {path}' for role, path in roles),
      '',
      console.table(('', 'target', 'draft', ''), rows, justify='left'),
      '',
      *remarks,
      '',
  )


def _refusal(report: facts.Report) -> str:
  """The first reason in full; the report has all."""
  first, *more = dict.fromkeys(finding.remedy for finding in report.errors)
  rest = f' The report names {len(more)} more.' if more else ''
  return f'The pair cannot work. {first}{rest}'
