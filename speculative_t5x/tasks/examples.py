# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads a split of a seqio task into arrays.

Legend: examples, inputs_length.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x import batching
from speculative_t5x import hints as hints_lib
from speculative_t5x import token_decoder
from speculative_t5x import vocabularies
from speculative_t5x.runtime import quiet
from speculative_t5x.tasks import example_ids as example_ids_lib
from speculative_t5x.tasks import task_vocabulary


@dataclasses.dataclass(frozen=True)
class Examples:
  """Examples of a task, with their references.

  Attributes:
    task: the task of the examples.
    tokens: [examples, inputs_length] int32, padded.
    example_ids: [examples] int32, from the data set or hashes of the inputs.
    inputs: input texts.
    targets: references, postprocessed for the task's metrics.
    is_truncated: [examples] bool, True where the input was truncated to
      inputs_length.
    is_known: [examples] bool, see `vocabularies.Vocabulary.knows`.
    hints: token ids of each example's hints, see `hints.encode`.
  """

  task: seqio.Task
  tokens: np.ndarray
  example_ids: np.ndarray
  inputs: list[str]
  targets: list[Any]
  is_truncated: np.ndarray
  is_known: np.ndarray
  hints: list[list[list[int]]]

  @property
  def num_truncated(self) -> int:
    return int(np.sum(self.is_truncated))

  @property
  def num_unknown(self) -> int:
    return int(np.sum(~self.is_known))

  def first(self, count: int) -> 'Examples':
    """Returns the first `count` examples."""
    return self.part(0, count)

  def part(self, start: int, end: int) -> 'Examples':
    """Returns the examples from `start` up to `end`, which is excluded."""
    columns = {
        field.name: getattr(self, field.name)[start:end]
        for field in dataclasses.fields(self)
        if field.name != 'task'
    }
    return Examples(self.task, **columns)

  @property
  def vocabulary(self) -> task_vocabulary.TaskVocabulary:
    return task_vocabulary.TaskVocabulary(vocabulary_of(self.task))


def load(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
    padding: int = 0,
) -> Examples:
  """Reads, tokenizes and truncates a split of a task.

  Args:
    mixture_or_task_name: name of a registered seqio task.
    split: name of the split.
    lengths: maximum tokens of 'inputs' and 'targets', with EOS. If it has
      'hints', those of an example are cut to that.
    num_examples: number of examples to read, from the first on; None for all.
    padding: id that fills the tokens.
  Raises:
    ValueError: for an unknown task or split, a length that is missing or below
      1, an empty input, an example id that is not a 32-bit integer, fewer
      examples than `num_examples` or none at all, or different
      vocabularies for inputs and targets.
  """
  columns = zip(*stream(mixture_or_task_name, split, lengths, num_examples))
  rows, *columns = columns
  example_ids, inputs, targets, is_truncated, is_known, hints = columns
  if num_examples is not None and len(rows) < num_examples:
    raise ValueError(
        f'num_examples is {num_examples}, but split {split} of'
        f' {mixture_or_task_name} has {len(rows)} examples. Give at most that'
        ' number.'
    )
  return Examples(
      find_task(mixture_or_task_name, split),
      batching.pad(rows, lengths['inputs'], padding),
      np.asarray(example_ids, np.int32),
      list(inputs),
      list(targets),
      np.asarray(is_truncated),
      np.asarray(is_known),
      list(hints),
  )


class Example(NamedTuple):
  """One example of a task; its fields are as in `Examples`.

  Attributes:
    tokens: [at most inputs_length] int32, not padded.
    example_id: from the data set, or a hash of the inputs.
    text: input text.
    target: reference.
    is_truncated: whether the input was truncated.
    is_known: whether it was encoded without unknown pieces.
    hints: token ids of its hints.
  """

  tokens: np.ndarray
  example_id: int
  text: str
  target: Any
  is_truncated: bool
  is_known: bool
  hints: list[list[int]]


def stream(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
) -> Iterator[Example]:
  """Yields examples one at a time; arguments and errors are those of `load`."""
  quiet.keep_tensorflow_off_accelerators()
  check_lengths(lengths)
  task = find_task(mixture_or_task_name, split)
  _check_vocabularies(task)
  vocabulary = task_vocabulary.TaskVocabulary(vocabulary_of(task))
  number = -1
  for number, (example, full) in enumerate(
      _read(task, split, lengths, num_examples)
  ):
    ids = np.asarray(example['inputs'], np.int32)
    text = _input_text(task, example)
    if len(full['inputs']) <= 1:  # only EOS
      raise ValueError(
          f'Example {number} of {task.name}, split {split}, has an empty'
          ' input. Remove it from the data.'
      )
    yield Example(
        ids,
        _example_id(example, ids, f'{number} of {task.name}'),
        text,
        _target(task, full),
        len(full['inputs']) > lengths['inputs'],
        vocabulary.knows(text, full['inputs'].tolist()),
        hints_lib.encode(
            _hints(task, example), vocabulary, lengths.get('hints')
        ),
    )
  if number < 0:
    raise ValueError(
        f'Split {split} of {task.name} is empty. Give another split.'
    )


def stream_targets(
    mixture_or_task_name: str,
    split: str,
    lengths: Mapping[str, int],
    num_examples: int | None = None,
) -> Iterator[np.ndarray]:
  """Yields the token ids of each reference, truncated, with EOS.

  Arguments and errors are those of `load`; the inputs are not looked at.
  """
  quiet.keep_tensorflow_off_accelerators()
  check_lengths(lengths)
  task = find_task(mixture_or_task_name, split)
  with quiet.quiet_stderr():  # SentencePiece logs how it normalizes
    dataset = task.get_dataset(
        sequence_length=dict(lengths),
        split=split,
        shuffle=False,
        use_cached=False,
    )
    for example in itertools.islice(dataset.as_numpy_iterator(), num_examples):
      yield example['targets']


def check_lengths(lengths: Mapping[str, int]) -> None:
  """Raises ValueError unless lengths of inputs and targets are given."""
  names = ['inputs', 'targets']
  if isinstance(lengths, Mapping) and 'hints' in lengths:
    names.append('hints')
  for name in names:
    length = lengths.get(name) if isinstance(lengths, Mapping) else None
    if not isinstance(length, int) or length < 1:
      raise ValueError(
          'task_feature_lengths must give the maximum tokens of inputs and'
          " targets, each at least 1, as in {'inputs': 96, 'targets': 96}. Got"
          f' {lengths!r}.'
      )


def vocabulary_of(task: seqio.Task) -> seqio.Vocabulary:
  """Returns the vocabulary of a task's inputs and targets.

  Raises:
    vocabularies.VocabularyError: if its file cannot be read, for example one in
      a bucket.
  """
  vocabulary = task.output_features['targets'].vocabulary
  try:
    _ = vocabulary.eos_id  # seqio reads the file at first use
  except tf.errors.OpError as error:
    raise vocabularies.VocabularyError(
        f'The vocabulary of task {task.name} cannot be read ({error.message}).'
        ' Set VOCABULARY_FILE to a SentencePiece model on this machine.'
    ) from error
  return vocabulary


def find_task(name: str, split: str) -> seqio.Task:
  """Returns a registered task that has a split.

  Raises:
    ValueError: if there is no such task or split.
  """
  if name in seqio.MixtureRegistry.names():
    raise ValueError(
        f'{name} is a mixture, of whose tasks one ends before the others. Name'
        ' a task.'
    )
  if name not in seqio.TaskRegistry.names():
    raise ValueError(
        f'There is no task named {name}; registered tasks are'
        f' {", ".join(sorted(seqio.TaskRegistry.names()))}. Choose one of them,'
        ' or import the module that registers the task in a gin file.'
    )
  task = seqio.TaskRegistry.get(name)
  if split not in task.splits:
    raise ValueError(
        f'Task {name} has no split {split}. Choose one of'
        f' {", ".join(sorted(task.splits))}.'
    )
  return task


def _check_vocabularies(task: seqio.Task) -> None:
  inputs = task.output_features['inputs'].vocabulary
  targets = task.output_features['targets'].vocabulary
  if inputs != targets:
    raise vocabularies.VocabularyError(
        f'Task {task.name} has different vocabularies for inputs and targets,'
        ' but T5 embeds both with one table. Give both features the same'
        ' vocabulary.'
    )


def _read(task, split, lengths, num_examples) -> Iterator[tuple[Any, Any]]:
  """Yields pairs of a truncated example and the same example in full."""
  lengths = {key: x for key, x in lengths.items() if key != 'hints'}
  read = lambda sequence_length: task.get_dataset(
      sequence_length=sequence_length,
      split=split,
      shuffle=False,
      use_cached=False,
  ).as_numpy_iterator()
  with quiet.quiet_stderr():  # SentencePiece logs how it normalizes
    pairs = zip(read(lengths), read(None), strict=True)
    first = list(itertools.islice(pairs, 1))
  yield from itertools.islice(itertools.chain(first, pairs), num_examples)


def _example_id(example, tokens: np.ndarray, name: str) -> int:
  """Returns the data set's id of an example, or else a hash of its inputs."""
  found = example.get(example_ids_lib.EXAMPLE_ID)
  if found is None:
    return example_ids_lib.of_inputs(tokens)
  try:
    token_decoder.check_int32(example_ids_lib.EXAMPLE_ID, found)
  except ValueError as error:
    raise ValueError(
        f'Example {name}: {error} Give each example such an id, or remove the'
        ' feature; ids are then hashes of the inputs.'
    ) from error
  return int(found)


def _hints(task: seqio.Task, example) -> list[str]:
  """Returns the texts of the feature `hints`, tokenized or not."""
  found = example.get('hints_pretokenized', example.get('hints', ()))
  texts = np.atleast_1d(found).tolist()
  if not all(isinstance(text, bytes) for text in texts):
    raise ValueError(
        f'The feature hints of {task.name} is not text, got {found!r}. Give a'
        ' text or several as `hints`, or as `hints_pretokenized`.'
    )
  return [text.decode() for text in texts]


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
