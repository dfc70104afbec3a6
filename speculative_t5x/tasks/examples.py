# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a split of a seqio task into arrays."""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import sys
from typing import Any
import zlib

import numpy as np
import seqio

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.loading import quiet
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import json_files
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import task_vocabulary

# Truncates and then appends EOS, as the last step of T5's tasks.
EXAMPLE_ID = 'example_id'  # the feature of tasks that define ids
_SEED = 0  # of what preprocessors draw
_TRIM = seqio.preprocessors.append_eos_after_trim


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example(inputs_lib.Input):
  """One example of a task: an input with its reference."""

  place: str  # the number of the example, task and split, for errors
  target_tokens: np.ndarray  # [any] int32, the reference, not truncated
  # All features, inputs and targets truncated as seqio's evaluator passes them
  # to postprocessors.
  features: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Examples:
  """Examples of a task, with their references."""

  task: seqio.Task
  rows: list[Example]
  tokens: np.ndarray  # [examples, inputs_length] int32, their inputs, padded
  targets: list[Any]  # references, postprocessed for the task's metrics
  references: list[Any]  # references as JSON, which files hold

  @property
  def example_ids(self) -> np.ndarray:  # [examples] int32
    return np.asarray([row.example_id for row in self.rows], np.int32)

  @property
  def inputs(self) -> list[str]:
    return [row.text for row in self.rows]

  @property
  def hints(self) -> list[list[list[int]]]:
    return [row.hints for row in self.rows]

  @property
  def num_truncated(self) -> int:
    return sum(row.is_truncated for row in self.rows)

  @property
  def num_unknown(self) -> int:
    return sum(not row.is_known for row in self.rows)

  @functools.cached_property
  def digest(self) -> str:
    """Digest of what is decoded: token ids, hints, ids and references."""
    rows = [(row.example_id, row.tokens, row.hints) for row in self.rows]
    text = json.dumps([rows, self.references])
    return hashlib.sha256(text.encode()).hexdigest()[:12]

  def part(self, start: int, end: int) -> 'Examples':
    """Return the examples from `start` up to `end`, which is excluded."""
    columns = self.rows, self.tokens, self.targets, self.references
    return Examples(self.task, *(column[start:end] for column in columns))

  @property
  def vocabulary(self) -> vocabularies.Vocabulary:
    return vocabulary_of(self.task)


def load(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
    least: int = 1,
) -> Examples:
  """Read, tokenize and truncate a split of a registered seqio task.

  Lengths are the most tokens of 'inputs' and 'targets', with EOS, and if they
  have it, of the 'hints' of an example. Of the examples, the first
  `num_examples` are read; None for all, of which there must be `least`.

  Raises:
    ValueError: for an unknown task or split, lengths that are missing, an
      example that cannot be decoded or whose reference JSON cannot hold, fewer
      examples than are asked for, or different vocabularies for inputs and
      targets.
  """
  rows = list(stream(mixture_or_task_name, split, lengths, num_examples, least))
  task = find_task(mixture_or_task_name, split)
  targets, references = [], []
  for row in rows:
    with _naming(f'{row.place}, the reference'):
      text = _text(task, 'targets', row.target_tokens, row.features)
      target = task.postprocess_fn(text, example=row.features, is_target=True)
      targets.append(target)
      # With what JSON has in place of arrays and bytes.
      line = json_files.dumps(
          target, cls=seqio.TensorAndNumpyEncoder, max_ndarray_size=sys.maxsize
      )
      references.append(json.loads(line))
  tokens = batching.pad([row.tokens for row in rows], lengths['inputs'])
  return Examples(task, rows, tokens, targets, references)


def stream(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
    least: int = 1,
) -> Iterator[Example]:
  """Yield examples one at a time, without looking at their references.

  Arguments and errors are those of `load`.
  """
  task = find_task(mixture_or_task_name, split)
  inputs, targets = (
      task_vocabulary.by_content(task.output_features[name].vocabulary)
      for name in ('inputs', 'targets')
  )
  if inputs != targets:
    raise vocabularies.VocabularyError(
        f'Task {task.name} has different vocabularies for inputs and targets,'
        ' but models have one. Give both features the same vocabulary.'
    )
  vocabulary = vocabulary_of(task)
  read_all = read(task, split, lengths, num_examples, least)
  for number, (full, cut) in enumerate(read_all):
    place = f'Example {number} of {task.name}, split {split}'
    with _naming(place):
      example = _example(task, vocabulary, full, cut, lengths, place)
    yield example


def _example(task, vocabulary, full, cut, lengths, place: str) -> Example:
  ids = full['inputs'].tolist()
  tokens = cut['inputs'].astype(np.int32)
  text = _text(task, 'inputs', tokens, cut)
  if not {*ids} - {vocabulary.eos_id}:
    raise ValueError('The input is empty. Remove it from the data.')
  example_id = cut.get(EXAMPLE_ID)
  if example_id is None:
    example_id = id_of(tokens)
  request_lib.check_int32(EXAMPLE_ID, example_id)
  hints = hints_of(cut)
  hints = [] if hints is None else np.atleast_1d(hints).tolist()
  hints = [each.decode() for each in hints]
  return Example(
      example_id=int(example_id),
      text=text,
      tokens=tokens.tolist(),
      is_truncated=len(ids) > len(tokens),
      is_known=vocabulary.knows(text, ids),
      hints=hints_lib.encode(hints, vocabulary, lengths.get('hints')),
      place=place,
      target_tokens=full['targets'],
      features=cut,
  )


def id_of(tokens: np.ndarray) -> int:
  """Return an id in [0, 2**31) for an example of a task that defines none.

  The id is a hash of the inputs, [inputs_length] int32 without padding, so
  examples with equal inputs get equal samples. An index in the split would
  depend on the sharding of a job.
  """
  tokens = np.asarray(tokens, np.int32)
  return zlib.crc32(tokens.tobytes()) & 0x7FFFFFFF


def hints_of(features: Mapping[str, Any]) -> Any:
  """Return the texts of an example's hints, one or several; None for none."""
  return features.get('hints_pretokenized', features.get('hints'))


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
  """Name the place of bad data: a number, not UTF-8, or not JSON."""
  try:
    yield
  except (AttributeError, RecursionError, TypeError, ValueError) as error:
    raise ValueError(f'{place}: {error} Correct the data.') from error


def read(
    task: seqio.Task,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
    least: int = 1,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
  """Yield the features of each example, in full and truncated, in one pass.

  Preprocessors may draw at random, as templates are drawn, and a source may
  have no fixed order: a second pass would yield other examples. Draws by seeds
  of seqio are the same in every call; those of TensorFlow's own operations are
  where its determinism is enabled, as a job does.

  The task has the features `inputs` and `targets`; for the other arguments, see
  `load`.
  """
  inputs_lib.check_lengths(lengths)
  lengths = {name: lengths[name] for name in ('inputs', 'targets')}
  whole = _without_trim(task)
  is_ended = whole is not task
  with quiet.quiet_stderr():  # SentencePiece logs how it normalizes
    examples = whole.get_dataset(
        sequence_length=lengths,
        split=split,
        shuffle=False,
        use_cached=False,
        seed=_SEED,
        trim_output_features=False,
    ).as_numpy_iterator()
    first = list(itertools.islice(examples, 1))
  count = 0
  examples = itertools.chain(first, examples)
  for full in itertools.islice(examples, num_examples):
    count += 1
    cut = dict(full)  # arrays are copied below: `full` must keep its own
    for name, length in lengths.items():
      cut[name] = full[name][:length].copy()
      feature = task.output_features[name]
      if is_ended and feature.add_eos and len(full[name]) > length:
        cut[name][-1] = feature.vocabulary.eos_id
    yield full, cut
  if count < (least := num_examples or least):
    raise ValueError(
        f'Split {split} of {task.name} has {count} examples, and {least} are'
        ' needed. Ask for fewer, or give another split.'
    )


def _without_trim(task: seqio.Task) -> seqio.Task:
  """Return a task that appends EOS where it truncated before.

  A later preprocessor might depend on truncated examples, which is refused.
  """
  steps = [
      each
      for each in task.preprocessors
      if not isinstance(each, seqio.CacheDatasetPlaceholder)
  ]
  is_trim = [getattr(each, 'func', each) is _TRIM for each in steps]
  if not any(is_trim):
    return task
  if any(is_trim[:-1]):
    raise ValueError(
        f'Task {task.name} has preprocessors after append_eos_after_trim, which'
        ' would see truncated examples. Make it the last one.'
    )
  return task.replace(
      preprocessors=[*steps[:-1], seqio.preprocessors.append_eos]
  )


def vocabulary_of(task: seqio.Task) -> vocabularies.Vocabulary:
  """Return the vocabulary of a task's inputs and targets, for models."""
  return task_vocabulary.of(task.output_features['targets'].vocabulary)


def find_task(name: str, split: str) -> seqio.Task:
  """Return a registered task that has a split, inputs and targets."""
  names = seqio.TaskRegistry.names()
  if name not in names:
    raise ValueError(
        f'There is no task named {name} (a mixture is not a task); registered'
        f' are {", ".join(sorted(names)) or "none"}. Give a file of'
        ' configs/tasks, or import the module of a task in a gin file.'
    )
  task = seqio.TaskRegistry.get(name)
  if split not in task.splits:
    raise ValueError(
        f'Task {name} has no split {split}, only'
        f' {", ".join(sorted(task.splits))}.'
    )
  if missing := sorted({'inputs', 'targets'} - task.output_features.keys()):
    raise ValueError(
        f'Task {name} has no {" and ".join(missing)}, only'
        f' {", ".join(task.output_features) or "no feature"}. Choose a task'
        ' that has both.'
    )
  return task


def _text(task: seqio.Task, name: str, tokens: np.ndarray, features) -> str:
  """Return the text of a feature, as it was before it became tokens."""
  found = features.get(f'{name}_pretokenized')
  if found is None:
    vocabulary = task.output_features[name].vocabulary
    return task_vocabulary.of(vocabulary).decode(tokens.tolist())
  return found.decode()
