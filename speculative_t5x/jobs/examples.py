# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A split of a seqio task as arrays, and as batches to decode.

Legend: examples, inputs_length.
"""

from collections.abc import Mapping
import dataclasses
import itertools
from typing import Any

import numpy as np
import seqio

from speculative_t5x import loading
from speculative_t5x import quiet
from speculative_t5x import token_decoder
from speculative_t5x.tasks import example_ids as example_ids_lib


@dataclasses.dataclass(frozen=True)
class Examples:
  """What is decoded, and what it is judged by.

  Attributes:
    task: where they come from.
    tokens: [examples, inputs_length] int32; 0 is padding.
    example_ids: [examples] int32, the data set's own.
    inputs: texts.
    targets: references, as the task's metrics want them.
    is_truncated: [examples] bool, inputs that were cut to inputs_length.
  """

  task: seqio.Task
  tokens: np.ndarray
  example_ids: np.ndarray
  inputs: list[str]
  targets: list[Any]
  is_truncated: np.ndarray

  @property
  def num_truncated(self) -> int:
    return int(np.sum(self.is_truncated))

  def first(self, count: int) -> 'Examples':
    """The first so many."""
    columns = {
        field.name: getattr(self, field.name)[:count]
        for field in dataclasses.fields(self)
        if field.name != 'task'
    }
    return Examples(self.task, **columns)

  @property
  def vocabulary(self) -> seqio.Vocabulary:
    return self.task.output_features['targets'].vocabulary


def load(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
) -> Examples:
  """Reads, tokenizes and cuts a split of a task.

  Args:
    mixture_or_task_name: a registered seqio task.
    split: of it.
    lengths: most tokens of 'inputs' and of 'targets', end included.
    num_examples: the first so many; None for all.
  Raises:
    ValueError: for an unknown task or split, a length that is missing or below
      1, an empty input, an example id that is no integer of 32 bits,
      fewer examples than asked for or none at all, or a vocabulary that T5
      cannot decode by.
  """
  quiet.keep_tensorflow_off_accelerators()
  check_lengths(lengths)
  task = _find_task(mixture_or_task_name, split)
  _check_vocabularies(task)
  rows, targets, inputs, example_ids, is_truncated = [], [], [], [], []
  for number, (example, full) in enumerate(
      _read(task, split, lengths, num_examples)
  ):
    ids = np.asarray(example['inputs'], np.int32)
    text = _input_text(task, example)
    if len(full['inputs']) <= 1:  # nothing but its end
      raise ValueError(
          f'Example {number} of {task.name}, split {split}, has an empty'
          ' input. Remove it from the data.'
      )
    rows.append(ids)
    inputs.append(text)
    targets.append(_target(task, full))
    example_ids.append(_example_id(example, ids, f'{number} of {task.name}'))
    is_truncated.append(len(full['inputs']) > lengths['inputs'])
  if num_examples is not None and len(rows) < num_examples:
    raise ValueError(
        f'{num_examples} examples were asked for, but split {split} of'
        f' {task.name} has {len(rows)}. Ask for at most so many.'
    )
  if not rows:
    raise ValueError(
        f'Split {split} of {task.name} is empty. Give another split.'
    )
  tokens = np.full((len(rows), lengths['inputs']), loading.PAD_ID, np.int32)
  for row, ids in zip(tokens, rows, strict=True):
    row[: len(ids)] = ids
  return Examples(
      task,
      tokens,
      np.asarray(example_ids, np.int32),
      inputs,
      targets,
      np.asarray(is_truncated),
  )


def check_lengths(lengths: Mapping[str, int]) -> None:
  """Raises ValueError unless there are lengths of inputs and of targets."""
  for name in ('inputs', 'targets'):
    length = lengths.get(name) if isinstance(lengths, Mapping) else None
    if not isinstance(length, int) or length < 1:
      raise ValueError(
          'task_feature_lengths must give the most tokens of inputs and of'
          " targets, as {'inputs': 96, 'targets': 96}, each at least 1. Got"
          f' {lengths!r}.'
      )


def _find_task(name: str, split: str) -> seqio.Task:
  if name not in seqio.TaskRegistry.names():
    raise ValueError(
        f'There is no task named {name}. Registered are'
        f' {", ".join(sorted(seqio.TaskRegistry.names()))}; a gin file that'
        ' imports the module of a task registers it.'
    )
  task = seqio.TaskRegistry.get(name)
  if split not in task.splits:
    raise ValueError(
        f'Task {name} has no split {split}; it has'
        f' {", ".join(sorted(task.splits))}.'
    )
  return task


def _check_vocabularies(task: seqio.Task) -> None:
  inputs = task.output_features['inputs'].vocabulary
  targets = task.output_features['targets'].vocabulary
  for name, vocabulary in (('inputs', inputs), ('targets', targets)):
    loading.check_special_ids(
        f'of the {name} of {task.name}', vocabulary.pad_id, vocabulary.eos_id
    )
  if inputs != targets:
    raise loading.VocabularyError(
        f'Task {task.name} has one vocabulary for its inputs and another for'
        ' its targets; T5 embeds both with one table. Give both features the'
        ' same vocabulary.'
    )


def _read(task, split, lengths, num_examples) -> list[tuple[Any, Any]]:
  """Examples cut to their lengths, each with its uncut self."""
  read = lambda sequence_length: task.get_dataset(
      sequence_length=sequence_length,
      split=split,
      shuffle=False,
      use_cached=False,
  ).as_numpy_iterator()
  with quiet.quiet_stderr():  # SentencePiece logs how it normalizes
    pairs = zip(read(dict(lengths)), read(None), strict=True)
    return list(itertools.islice(pairs, num_examples))


def _example_id(example, tokens: np.ndarray, name: str) -> int:
  """The data set's own id of an example, or one that its inputs determine."""
  found = example.get(example_ids_lib.EXAMPLE_ID)
  if found is None:
    return example_ids_lib.of_inputs(tokens)
  try:
    token_decoder.check_int32(example_ids_lib.EXAMPLE_ID, found)
  except ValueError as error:
    raise ValueError(
        f'Example {name}: {error} Give each example'
        ' one, or remove the feature: the inputs then determine it.'
    ) from error
  return int(found)


def _input_text(task: seqio.Task, example) -> str:
  if 'inputs_pretokenized' in example:
    return example['inputs_pretokenized'].decode()
  return task.output_features['inputs'].vocabulary.decode(
      example['inputs'].tolist()
  )


def _target(task: seqio.Task, example) -> Any:
  if 'targets_pretokenized' in example:
    text = example['targets_pretokenized'].decode()
  else:
    text = task.output_features['targets'].vocabulary.decode(
        example['targets'].tolist()
    )
  return task.postprocess_fn(text, example=example, is_target=True)
