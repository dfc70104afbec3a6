# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check-pair job: whether two checkpoints can work as a pair.

Reads the vocabularies, and of the parameters names, shapes and dtypes: no
weights.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import hashlib
import textwrap

from etils import epath
import jax.numpy as jnp

from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x import quiet
from speculative_t5x.networks import t5
from speculative_t5x.preflight import checks
from speculative_t5x.preflight import facts
from speculative_t5x.preflight import memory

# The vocabulary's name in a folder that Hugging Face's library wrote.
_SPIECE_NAME = 'spiece.model'
_WIDTH = 80


class PairError(ValueError):
  """A target and a draft that cannot work together."""


@dataclasses.dataclass(frozen=True)
class _Role:
  """What was given for one of the two, and under which names."""

  path_name: str
  path: str
  config_name: str
  config: t5.T5Config | None


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
    gamma: guesses a block, at least 1.
    batch_size: examples decoded together.
    num_decodes: samples an example.
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
  roles = _roles(
      checkpoint_path, draft_checkpoint_path, target_config, draft_config
  )
  candidates = [
      _candidate(role, other, dtype, file, num_ids)
      for role, other, file in zip(roles, reversed(roles), files, strict=True)
  ]
  target, draft = candidates
  if files[1] is None and target.vocabulary is not None:
    assumed = dataclasses.replace(target.vocabulary, is_assumed=True)
    draft = dataclasses.replace(draft, vocabulary=assumed)
  report = checks.check(target, draft, workload, device_memory_gib)
  print(render(report))
  if report.errors:
    raise PairError(_refusal(report))
  num_warnings = sum(f.verdict == 'warning' for f in report.findings)
  suffix = f'; warnings: {num_warnings}' if num_warnings else ''
  print(f'The pair can work{suffix}.')
  return report


def check_networks(
    *,
    checkpoint_path: str,
    draft_checkpoint_path: str,
    target_config: t5.T5Config,
    draft_config: t5.T5Config,
) -> None:
  """Checks that both checkpoints are of the networks that they are given for.

  Raises:
    checkpoints.CheckpointError: naming the argument that is wrong, and whether
      it looks as if the two were swapped.
  """
  roles = _roles(
      checkpoint_path, draft_checkpoint_path, target_config, draft_config
  )
  for role, other in zip(roles, reversed(roles), strict=True):
    _check_network(role, role.config, other)


def _roles(
    checkpoint_path, draft_checkpoint_path, target_config, draft_config
) -> tuple[_Role, _Role]:
  return (
      _Role('CHECKPOINT_PATH', checkpoint_path, 'TARGET_CONFIG', target_config),
      _Role(
          'DRAFT_CHECKPOINT_PATH',
          draft_checkpoint_path,
          'DRAFT_CONFIG',
          draft_config,
      ),
  )


def _check_network(role: _Role, config: t5.T5Config, other: _Role) -> None:
  """Checks a checkpoint against sizes, its own or another's."""
  try:
    checkpoints.check_shapes(role.path, loading.abstract_params(config))
  except checkpoints.CheckpointError as error:
    message = str(error)
    if _fits(role.path, other.config):
      message += f' It fits {other.config_name}.'
      if _fits(other.path, role.config):
        message = (
            f'{role.path} holds the network of {other.config_name}, not that of'
            f' {role.config_name}: {role.path_name} and {other.path_name} look'
            ' swapped.'
        )
    raise checkpoints.CheckpointError(f'{role.path_name}: {message}') from error


def _fits(path: str, config: t5.T5Config | None) -> bool:
  if config is None:
    return False
  try:
    checkpoints.check_shapes(path, loading.abstract_params(config))
  except checkpoints.CheckpointError:
    return False
  return True


def _candidate(
    role: _Role,
    other: _Role,
    dtype: jnp.dtype,
    vocabulary_file: str | None,
    num_ids: int,
) -> facts.Candidate:
  """All that can be read of a model; what cannot is among its problems."""
  candidate = _read_model(role, other, dtype)
  if vocabulary_file is None:
    return candidate
  try:
    vocabulary = _read_vocabulary(vocabulary_file, num_ids)
  except loading.VocabularyError as error:
    return candidate.with_problem(str(error))
  return dataclasses.replace(candidate, vocabulary=vocabulary)


def _read_model(role: _Role, other: _Role, dtype: jnp.dtype) -> facts.Candidate:
  try:
    layout = checkpoints.detect(role.path)
    specs = checkpoints.read_specs(role.path)
    config = loading.read_config(role.path, dtype)
  except checkpoints.CheckpointError as error:
    return facts.Candidate(role.path).with_problem(f'{role.path_name}: {error}')
  source = facts.FROM_PARAMETERS
  if layout is checkpoints.Layout.HUGGING_FACE:
    source = 'config.json'
  candidate = facts.Candidate(role.path, layout.value, specs, config, source)
  try:
    _check_network(role, role.config or config, other)
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
      name or _spiece_model(path)
      for name, path in zip(given, checkpoint_paths, strict=True)
  ]
  return found[0], found[1]


def _spiece_model(checkpoint_path: str) -> str | None:
  path = epath.Path(checkpoint_path) / _SPIECE_NAME
  return str(path) if path.is_file() else None


def _read_vocabulary(path: str, num_ids: int) -> facts.Vocabulary:
  pieces = loading.load_vocabulary(path)
  return facts.Vocabulary(
      hashlib.sha256(epath.Path(path).read_bytes()).hexdigest(),
      num_ids or pieces.get_piece_size(),
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
    raise loading.VocabularyError(
        f'The vocabulary of {name} is a {type(vocabulary).__name__}; a pair is'
        ' checked by SentencePiece models. Give VOCABULARY_FILE.'
    )
  return vocabulary.sentencepiece_model_file, vocabulary.vocab_size


def render(report: facts.Report) -> str:
  """The findings as a table, and below it what there is to say of them."""
  paths = zip(('target', 'draft'), report.checkpoints, strict=True)
  rows = [('', 'target', 'draft', '')] + [
      (f.name, f.target, f.draft, '' if f.verdict == 'ok' else f.verdict)
      for f in report.findings
  ]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  table = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in rows]
  remarks = [
      f'{f.verdict}: {f.name}: {f.remedy}' for f in report.findings if f.remedy
  ]
  remarks += [f'assumed: {text}' for text in report.assumptions]
  heading = [f'{name}: {path}' for name, path in paths]
  return '\n'.join([*heading, '', *table, '', *map(_wrap, remarks), ''])


def _wrap(paragraph: str) -> str:
  # Paths and names stay whole.
  return textwrap.fill(
      paragraph,
      _WIDTH,
      subsequent_indent='  ',
      break_long_words=False,
      break_on_hyphens=False,
  )


def _refusal(report: facts.Report) -> str:
  """The first reason in full; the report has all."""
  first, *more = dict.fromkeys(finding.remedy for finding in report.errors)
  rest = f' The report names {len(more)} more.' if more else ''
  return f'The pair cannot work. {first}{rest}'
