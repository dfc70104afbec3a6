# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pair of checkpoints, and arguments of the jobs that decode by it.

All files share its shapes, so that one cache of compiled programs serves them.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import json
import pathlib
from typing import Any

import pytest

from speculative_t5x.decoder import text_decoder as text_decoder_lib
from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import workload
from speculative_t5x.jobs.inference import infer_setup as infer_setup_lib
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.speculation import sampling
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from tests import tiny

CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
LENGTHS = {'inputs': 24, 'targets': 16}

_NAMES = {field.name for field in dataclasses.fields(workload.Workload)}
_SAMPLING = {field.name for field in dataclasses.fields(sampling.Sampling)}


@dataclasses.dataclass(frozen=True)
class Pair:
  """Paths of a target, and of a draft model that resembles it."""

  target: str
  draft: str


def save_pair(folder: pathlib.Path, **changes: Any) -> Pair:
  """Write checkpoints of `CONFIG`, or of changed sizes, the draft's of step 2.
  """
  config = dataclasses.replace(CONFIG, **changes)
  checkpoints.save(folder / 'target', 1, tiny.params(config))
  checkpoints.save(folder / 'draft', 2, tiny.params(config, noise=0.1))
  return Pair(str(folder / 'target'), str(folder / 'draft'))


def text_decoder(
    drafter: drafting.Drafting | None = None, **options: Any
) -> text_decoder_lib.TextDecoder:
  """Return a decoder of texts by `CONFIG`, by default with a draft model."""
  settings = dict(gamma=2, inputs_length=24, max_tokens=12) | options
  if drafter is None:
    drafter = model_drafting.of_model(tiny.model(CONFIG, noise=0.1))
  vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
  return text_decoder_lib.TextDecoder(
      tiny.model(CONFIG), drafter, vocabulary, **settings
  )


@contextlib.contextmanager
def instant_parts() -> Iterator[None]:
  """Have the timed parts do nothing, as they take long to compile.

  What they do is tested in `step_times_test.py`.
  """

  def bind(programs, *_):
    widths = programs.width_names.values()
    names = 't1', 't_verify', 't_draft2', 'drafts', 't_call', *widths
    return dict.fromkeys(names, lambda: None)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(part_programs.PartPrograms, 'bind', bind)
    yield


def read(path: pathlib.Path) -> list[dict[str, Any]]:
  """Return the objects of a JSONL file."""
  return [json.loads(line) for line in path.read_text()[:-1].split('\n')]


def job_arguments(**values: Any) -> dict[str, Any]:
  """Return the arguments of a walltime job or an eval setup, and its workload.

  By default it is of the embedded task, `CONFIG` and `LENGTHS`. Of sampling,
  temperature and draft_temperature may be several.
  """
  own = dict(
      mixture_or_task_name=ende.BULLETINS,
      split='validation',
      target_config=CONFIG,
      task_feature_lengths=LENGTHS,
  )
  own |= {name: values.pop(name) for name in _NAMES & values.keys()}
  setting = {name: values.pop(name) for name in _SAMPLING & values.keys()}
  found = {'workload': workload.Workload(**own), **values}
  draft = found.pop('draft_temperature', None)
  if setting:
    found['samplings'] = sampling.each(**{'temperature': 0.0} | setting)
  if draft is not None:
    found['draft_samplings'] = sampling.each(**setting | {'temperature': draft})
  return found


def eval_setup(**values: Any) -> evaluation.EvalSetup:
  """Return an eval job; see `job_arguments`."""
  return evaluation.EvalSetup(**job_arguments(**values))


def infer_setup(**values: Any) -> infer_setup_lib.InferSetup:
  """Return an infer job; see `job_arguments`."""
  found = job_arguments(**values)
  for name in ('sampling', 'draft_sampling'):
    if several := found.pop(f'{name}s', None):
      (found[name],) = several
  return infer_setup_lib.InferSetup(**found)


def drafter(
    path: str, config: Any = None, **options: Any
) -> model_drafting.DraftModel:
  """Return a draft model in a checkpoint."""
  return model_drafting.DraftModel(path, config, **options)
