# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inputs of an infer job, before weights are read."""

from collections.abc import Callable, Iterator
import dataclasses
import functools
import itertools
from typing import Any

from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import text_files


@dataclasses.dataclass(frozen=True)
class Source:
  """The inputs of a job, and the target that decodes them."""

  count: int | None  # how many are decoded, from the first one on; None for all
  # The target, with its end of sequence; its vocabulary encodes them.
  target: models.Found
  read: Callable[[], Iterator[Any]]  # reads lines, or examples of a task
  # Returns the inputs of these, from one with a number on.
  inputs_of: Callable[[Iterator[Any], int], Iterator[Any]]
  # How texts become inputs. Outputs of a task are texts of their own, as in
  # T5X.
  form: inputs_form.InputsForm = inputs_form.InputsForm()

  def inputs(self) -> Iterator[Any]:
    """Yield the inputs that the job decodes."""
    return itertools.islice(self.inputs_of(self.read(), 0), self.count)


def find(setup: infer_setup.InferSetup) -> Source:
  """Find the inputs and the target of a job."""
  workload = setup.workload
  file = setup.paths and setup.vocabulary_file
  target = workload.find_target(workload.vocabulary(file))
  make = functools.partial(Source, setup.num_examples, target)
  lengths = workload.task_feature_lengths
  if setup.paths is None:
    # Imports seqio and TensorFlow, which lines of files do not need.
    from speculative_t5x.tasks import examples

    name = workload.mixture_or_task_name
    read = functools.partial(examples.stream, name, workload.split, lengths)
    return make(read, lambda found, first: found)
  if setup.is_batch:
    # Imports pydantic, which other lines do not need.
    from speculative_t5x.serving import batch_lines

    read = functools.partial(text_files.read_bytes, setup.paths)
    return make(read, lambda lines, first: batch_lines.parse(lines))
  read = functools.partial(
      text_files.read,
      setup.paths,
      taken=setup.taken,
      field=setup.input_field,
      file_format=setup.input_format,
  )
  vocabulary = target.vocabulary
  form = inputs_form.of(vocabulary, target)
  inputs_of = lambda lines, first: inputs_lib.from_lines(
      lines, vocabulary, form, lengths, setup.on_empty, first
  )
  return make(read, inputs_of, form)
