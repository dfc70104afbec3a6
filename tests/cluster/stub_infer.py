# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""An infer job without a model: the prediction of an input is its text.

One text cannot be decoded.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import itertools
import pathlib
from typing import Any, NamedTuple

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.jobs.cluster import infer_chunks
from speculative_t5x.jobs.inference import infer_on_cluster
from speculative_t5x.jobs.inference import infer_output
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading.files import json_files
from speculative_t5x.research import progress
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import provenance
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import text_files

POISON = 'poison'


class _Vocabulary:
  """Has a piece per character."""

  adds_space = False
  eos_id = 1

  def encode(self, text: str) -> list[int]:
    return list(text.encode())

  def knows(self, text: str, ids: Sequence[int]) -> bool:
    return True


class _Source(NamedTuple):
  read: Callable[[], Iterator[text_files.Line]]
  inputs_of: Callable[..., Iterator[inputs_lib.Input]]

  def inputs(self) -> Iterator[inputs_lib.Input]:
    return self.inputs_of(self.read(), 0)


@dataclasses.dataclass(frozen=True)
class Echo:
  """Predicts the text of an input."""

  part_size: int
  shown: progress.Progress

  def identity(self, part: infer_chunks.Part) -> list[Any]:
    return inputs_lib.identity(part)

  def decode(
      self, numbered: Iterator[tuple[int, inputs_lib.Input]]
  ) -> Iterator[chunks_lib.Content]:
    for part in batching.parts(numbered, self.part_size):
      yield self._content([each for _, each in part])

  def _content(self, part: infer_chunks.Part) -> chunks_lib.Content:
    rows = [
        {'example_id': x.example_id, 'input': x.text,
         'prediction': self._decode(x.text), **x.fields}
        for x in part
    ]  # fmt: skip
    num = len(part)
    run = interleaved.Run(
        counts.Counts(num, num, num, num, None), (0.5,), None
    )
    return chunks_lib.Content(
        list(map(json_files.dumps, rows)),
        {'run': run.stored(), **infer_chunks.counted(part)},
    )

  def _decode(self, text: str) -> str:
    if text == POISON:
      raise ValueError('its logits are not finite')
    return text


@dataclasses.dataclass(frozen=True)
class Setup:
  """What `infer` makes of its arguments, for `Echo`."""

  paths: Sequence[str]
  num_examples: int | None = None
  batch_size: int = 2
  chunk_batches: int = 2
  taken: Sequence[str] = ()

  def num_inputs(self) -> int | None:
    return None

  def source(self) -> _Source:
    return _Source(
        functools.partial(text_files.read, self.paths, field='inputs'),
        lambda lines, first: inputs_lib.from_lines(
            lines,
            _Vocabulary(),
            inputs_form.InputsForm(end=(_Vocabulary.eos_id,)),
            {'inputs': 64},
            first=first,
        ),
    )

  def inputs(self, source: _Source) -> Iterator[inputs_lib.Input]:
    return itertools.islice(source.inputs(), self.num_examples)

  def settings(self):
    record = provenance.new_record(
        'infer', temperature=0.0, batch_size=self.batch_size, lossless=True
    )
    return record, {'chunk_batches': self.chunk_batches}

  @contextlib.contextmanager
  def open(self, source: _Source) -> Iterator[Echo]:
    with progress.Progress('infer', None, 'rows') as shown:
      yield Echo(self.batch_size * self.chunk_batches, shown)


def write_alone(setup: Setup, output_dir: pathlib.Path) -> None:
  """Decode all inputs in this process."""
  record, options = setup.settings()
  chunks = infer_output.chunks_in(str(output_dir), record, options)
  source = setup.source()
  with setup.open(source) as job:
    infer_output.write_all(
        job, source.inputs(), record, str(output_dir), chunks
    )


def write_on(cluster: Any, setup: Setup, output_dir: pathlib.Path) -> None:
  """Have a cluster decode all inputs."""
  infer_on_cluster.write(cluster, setup, str(output_dir))


def predictions(output_dir: pathlib.Path) -> bytes:
  """Return the predictions in an output folder."""
  return (output_dir / 'predictions.jsonl').read_bytes()
