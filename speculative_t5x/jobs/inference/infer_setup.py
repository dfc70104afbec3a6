# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What an infer job decodes, by what, and what it writes of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import itertools
from typing import Any

from speculative_t5x.decoder import answers as answers_lib
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.inference import inference as inference_lib
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import drafters
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import text_files


@dataclasses.dataclass(frozen=True)
class Source:
  """The inputs, before weights are read.

  Attributes:
    vocabulary: Encodes them.
    target: The target that decodes them, with its end of sequence.
    read: Reads lines, or examples of a task.
    inputs_of: Returns the inputs of these, from one with a number on.
    form: How texts become inputs. Outputs of a task are texts of their own, as
      in T5X.
  """

  vocabulary: vocabularies.Vocabulary
  target: models.ModelSource
  read: Callable[[], Iterator[Any]]
  inputs_of: Callable[[Iterator[Any], int], Iterator[Any]]
  form: inputs_form.InputsForm = inputs_form.InputsForm()

  def inputs(self) -> Iterator[Any]:
    """Yield all inputs."""
    return self.inputs_of(self.read(), 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
  """An infer job, as something that can be pickled.

  The attributes are arguments of `infer`; paths are its inputs, and columns its
  `scores`, `statistics` and `tokens`.
  """

  workload: workload_lib.Workload
  drafter: drafters.Choice | None
  paths: Sequence[str] | None
  input_field: str
  input_format: str | None
  hints_field: str | None
  on_empty: str
  vocabulary_file: str | None
  gamma: int
  num_examples: int | None
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling | None
  num_decodes: int  # outputs per input, of a search too
  search: beam_search.BeamSearch | None
  batch_size: int | None
  columns: Mapping[str, bool]
  chunk_batches: int
  model_name: str | None
  # Names that fields of the inputs may not have.
  taken: Sequence[str] = predictions_lib.TAKEN

  @property
  def is_batch(self) -> bool:
    """Whether the inputs are a batch of OpenAI's."""
    return self.paths is not None and self.input_format == text_files.BATCH

  def padded(self) -> 'Setup':
    """Return the setup with a batch size that suits the mesh."""
    mesh = self.workload.make_mesh()
    size = workload_lib.pad_batch(mesh, self.batch_size)
    return dataclasses.replace(self, batch_size=size)

  def source(self) -> Source:
    """Find the inputs and the target."""
    workload = self.workload
    file = self.paths and self.vocabulary_file
    target, vocabulary = workload.find_texts(file)
    lengths = workload.task_feature_lengths
    if self.paths is None:
      # Imports seqio and TensorFlow, which lines of files do not need.
      from speculative_t5x.tasks import examples

      name = workload.mixture_or_task_name
      read = functools.partial(examples.stream, name, workload.split, lengths)
      return Source(vocabulary, target, read, lambda found, first: found)
    if self.is_batch:
      # Imports pydantic, which other lines do not need.
      from speculative_t5x.serving import batch_lines

      read = functools.partial(text_files.read_bytes, self.paths)
      inputs_of = lambda lines, first: batch_lines.parse(lines)
      return Source(vocabulary, target, read, inputs_of)
    read = functools.partial(
        text_files.read,
        self.paths,
        taken=self.taken,
        field=self.input_field,
        file_format=self.input_format,
        hints_field=self.hints_field,
    )
    form = inputs_form.of(vocabulary, target)
    inputs_of = lambda lines, first: inputs_lib.from_lines(
        lines, vocabulary, form, lengths, self.on_empty, first
    )
    return Source(vocabulary, target, read, inputs_of, form)

  def inputs(self, source: Source) -> Iterator[Any]:
    """Yield the inputs that the job decodes."""
    return itertools.islice(source.inputs(), self.num_examples)

  def num_inputs(self) -> int | None:
    """Return how many inputs there are; None where it is not known."""
    if self.paths is not None:  # to count lines, files would be read twice
      return None
    found = self.workload.num_examples()
    if None in (found, self.num_examples):
      return found
    return min(found, self.num_examples)

  def load(self, source: Source) -> tuple[token_decoder.TokenDecoder, int]:
    """Return the decoder, whose weights are still to be read, and batch size.

    See `Workload.load_decoder`.
    """
    return self.workload.load_decoder(
        source.target,
        self.drafter,
        source.vocabulary,
        gamma=self.gamma,
        num_decodes=self.num_decodes,
        batch_size=self.batch_size,
        defer=True,
    )

  def inference(
      self,
      source: Source,
      decoder: token_decoder.TokenDecoder,
      batch_size: int,
      shown: progress.Progress,
      finder: answers_lib.Finder | None = None,
  ) -> inference_lib.Inference:
    """Return what decodes; read no weights and compile nothing yet."""
    is_plain = self.drafter is None

    @functools.cache
    def make() -> engine_lib.Engine:
      loaded = workload_lib.loaded(decoder)
      return engine_lib.Engine(
          loaded.alone if is_plain else loaded,
          batch_size * self.num_decodes,
          rule=self.workload.rule,
          hints_length=self.workload.task_feature_lengths.get('hints'),
          answers=finder,
      )

    return inference_lib.Inference(
        is_plain,
        make,
        self._rows(source, decoder, make, finder and finder.identity),
        batch_size * self.chunk_batches,
        shown,
        self.search,
    )

  def _rows(
      self,
      source: Source,
      decoder: token_decoder.TokenDecoder,
      make_engine: Callable[[], engine_lib.Engine],
      answers: list[Any] | None,
  ) -> inference_lib.Rows:
    """Return what is decoded of each input, and what is written of it."""
    workload = self.workload
    if self.is_batch:
      from speculative_t5x.jobs.inference import batch_rows
      from speculative_t5x.serving import batch_lines

      texts = workload_lib.text_decoder(decoder, source.vocabulary)
      batch = batch_lines.Batch(
          texts,
          workload.model_name(self.model_name),
          workload.fingerprint(texts),
          workload.seed,
      )
      return batch_rows.BatchRows(batch, answers)
    return text_rows.TextRows(
        decoder,
        make_engine,
        source.vocabulary,
        source.form,
        workload.settings(self.sampling, self.draft_sampling),
        self.search,
        {name for name, is_wanted in self.columns.items() if is_wanted},
        answers,
    )

  def settings(self) -> tuple[run_record.RunRecord, dict[str, Any]]:
    """Return the record before anything is decoded, and options of chunks.

    They are found without weights.
    """
    setup, source = self.padded(), self.source()
    decoder, batch_size = setup.load(source)
    record = setup.record(decoder, batch_size)
    return record, setup.options(decoder, source.vocabulary)

  @contextlib.contextmanager
  def open(self, source: Source) -> Iterator[inference_lib.Inference]:
    """Find the model, whose weights the first chunk reads."""
    setup = self.padded()
    loaded = setup.load(source)
    with progress.Progress('infer', None, 'rows') as shown:
      yield setup.inference(source, *loaded, shown)

  def options(
      self,
      decoder: token_decoder.TokenDecoder,
      vocabulary: vocabularies.Vocabulary,
  ) -> dict[str, Any]:
    """Return what chunks depend on beside the record's settings, as JSON."""
    return {
        'input_field': self.input_field,
        'input_format': self.input_format,
        'vocabulary': resumption.of_vocabulary(vocabulary),
        'chunk_batches': self.chunk_batches,
        'network_configs': provenance.network_configs(decoder),
        **self.columns,
    }

  def record(
      self, decoder: token_decoder.TokenDecoder, batch_size: int
  ) -> run_record.RunRecord:
    """Return the record before anything is decoded."""
    workload = self.workload
    record = workload.new_record(
        'infer',
        decoder,
        self.sampling,
        self.draft_sampling,
        batch_size=batch_size,
        repeats=1,
        **workload_lib.search_settings(self.search),
    )
    if self.paths is not None:
      task = ', '.join(self.paths)
      record = dataclasses.replace(record, task=task, split=None)
    if self.drafter is None:
      unused = ['drafter', 'draft_sampling', 'gamma', 'gamma_policy']
      unused.append('draft_beams')
      # What a coupled rule draws plain decoding draws too.
      if not isinstance(workload.rule, contracts.CoupledRule):
        unused.append('verification')
      record = dataclasses.replace(
          record, lossless=True, **dict.fromkeys(unused)
      )
    if self.is_batch:  # requests say how they are sampled
      record = dataclasses.replace(
          record,
          drafter=record.drafter
          and dataclasses.replace(record.drafter, temperature=None),
          num_decodes=None,
          **dict.fromkeys(run_record.SAMPLING_KEYS.values()),
      )
    return record
