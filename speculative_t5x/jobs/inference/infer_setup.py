# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of an infer job, with checks on them, and its inputs."""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools
import os
from typing import Any, Literal

from speculative_t5x.decoder import beam_search
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.loading import drafters
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import arguments
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import text_files


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferSetup:
  """An infer job, which can be pickled.

  The attributes are explained in `configs/runs/infer.gin`, but for:

  Attributes:
    workload: Target, and the task if there is one.
    drafter: Drafts for the target; None to decode plainly.
    draft_sampling: Sampling of the drafter; None for the target's.
    search: Beam search in place of samples; None for none.
    batch_size: Rounded up to a multiple of the mesh's data axis.
    cluster: Decodes on its nodes; None to decode in this process.
  """

  workload: workload_lib.Workload
  drafter: drafters.Drafting | None = None
  inputs: str | Sequence[str] | None = None
  input_field: str = 'inputs'
  input_format: Literal['text', 'jsonl', 'batch'] | None = None
  on_empty: Literal['refuse', 'pass', 'skip'] = 'refuse'
  vocabulary_file: str | None = None
  output_dir: str | None = None
  gamma: int | Literal['auto'] = 5
  num_examples: int | None = None
  sampling: sampling_lib.Sampling = sampling_lib.GREEDY
  draft_sampling: sampling_lib.Sampling | None = None
  num_decodes: int = 1
  search: beam_search.BeamSearch | None = None
  batch_size: int | None = None
  scores: bool = False
  statistics: bool = False
  tokens: bool = False
  chunk_batches: int = 16
  model_name: str | None = None
  cluster: ray_cluster.RayCluster | None = None

  def __post_init__(self):
    arguments.check_counts(
        gamma=None if self.gamma == 'auto' else self.gamma,
        num_decodes=self.num_decodes,
        batch_size=self.batch_size,
        chunk_batches=self.chunk_batches,
        num_examples=self.num_examples,
    )
    inputs_lib.check_lengths(self.workload.task_feature_lengths)
    if self.search is not None:
      self._check_search()
    if self.is_batch:
      self._check_batch()
    if self.cluster is not None:
      self._check_cluster()
    if (self.inputs, self.workload.mixture_or_task_name) == (None, None):
      raise ValueError(
          'There is nothing to decode. Set INPUTS to files or to -, or name a'
          ' task with MIXTURE_OR_TASK_NAME.'
      )

  def _check_search(self) -> None:
    if self.gamma == 'auto':
      raise ranges.ArgumentError(
          "gamma 'auto' chooses drafts by what else is decoded, and all trees"
          ' of a beam search have one depth. Give a number.',
          gamma=self.gamma,
      )
    draft = [] if self.draft_sampling is None else [self.draft_sampling]
    workload_lib.check_search(
        self.search, self.workload, [self.sampling], draft, self.num_decodes
    )

  def _check_batch(self) -> None:
    """Check that a batch is asked for nothing that its requests decide."""
    greedy = sampling_lib.GREEDY
    samplings = {self.sampling, self.draft_sampling or greedy}
    if samplings != {greedy} or self.num_outputs > 1:
      raise ValueError(
          'The requests of a batch say how they are sampled. Leave out'
          ' TEMPERATURE, TOPK, TOPP, MINP, TYPICALP, those of the drafter,'
          ' NUM_DECODES and BEAMS.'
      )
    if any(self.columns.values()):
      raise ValueError(
          'The requests of a batch say what is written of them. Leave out'
          ' SCORES, STATISTICS and TOKENS.'
      )
    ranges.check_settings(ranges.NATURAL, seed=self.workload.seed)

  def _check_cluster(self) -> None:
    """Check that other processes can do the job."""
    problem = None
    if self.output_dir is None:
      problem = 'writes files, and there is no folder. Set INFER_OUTPUT_DIR'
    elif text_files.STANDARD_INPUT in (self.paths or ()):
      problem = 'reads files on its nodes. Write the standard input to a file'
    elif self.is_batch:
      problem = "does not read OpenAI's batches. Leave out CLUSTER"
    if problem:
      raise ValueError(f'A cluster (CLUSTER) {problem}.')

  @property
  def paths(self) -> list[str] | None:
    """Paths of the input files; None for the inputs of a task."""
    if self.inputs is None:
      return None
    paths = [self.inputs] if isinstance(self.inputs, str) else self.inputs
    # A file has one name in records, also if it is given as a URL.
    return [os.fspath(user_paths.expand(path)) for path in paths]

  @property
  def is_batch(self) -> bool:
    """True if the inputs are a batch of OpenAI's."""
    return self.inputs is not None and self.input_format == text_files.BATCH

  @property
  def taken(self) -> Sequence[str]:
    """Names that fields of the inputs may not have."""
    own = () if self.cluster is None else (predictions_lib.ERROR,)
    return *predictions_lib.TAKEN, *own

  @property
  def num_outputs(self) -> int:
    """Outputs per input."""
    return self.num_decodes if self.search is None else self.search.beams

  @property
  def columns(self) -> dict[str, bool]:
    """Optional columns of predictions, and whether they are written."""
    names = 'scores', 'statistics', 'tokens'
    return {name: getattr(self, name) for name in names}

  def resolved(self) -> 'InferSetup':
    """Check the input files, and choose what the settings leave open."""
    if self.inputs is not None:
      text_files.check(
          self.paths,
          self.input_format,
          self.input_field,
          self.taken,
      )
    workload, gamma = self.workload, self.gamma
    if gamma == 'auto':
      workload, gamma = workload_lib.by_load(workload)
    if self.is_batch:
      # As the server's, so that both give the same answers.
      workload = workload_lib.coupled_by_default(workload)
    return dataclasses.replace(
        self, workload=workload, gamma=gamma, inputs=self.paths
    )


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


def find_source(setup: InferSetup) -> Source:
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
