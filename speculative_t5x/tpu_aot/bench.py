# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 1.1 of any sizes, compiled for one place and described by numbers.

What is described goes into the record of the tpu-preflight job as it is, and
`report` says what the keys mean.
"""

from collections.abc import Callable, Hashable, Sequence
import dataclasses
import sys
from typing import Any

from speculative_t5x import dialled
from speculative_t5x import loading
from speculative_t5x import sharding
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5
from speculative_t5x.paper import published
from speculative_t5x.preflight import memory
from speculative_t5x.tpu_aot import abstract_pair
from speculative_t5x.tpu_aot import programs
from speculative_t5x.tpu_aot import roofline
from speculative_t5x.tpu_aot import row_writes
from speculative_t5x.tpu_aot import t5x_step

PREFIX = 't5_1_1_'  # of a network's name, before its size
_ONE_ROW = 1
_BLOCKS = (1, 8)  # positions of the calls whose least time is told

Description = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Shapes:
  """What is decoded, and how it lies on several devices.

  Attributes:
    batch_size: examples decoded together.
    inputs_length: tokens of each.
    targets_length: tokens of each output.
    dtype: 'bfloat16' or 'float32', of weights and products.
    mesh_shape: devices along data and along model; None for all along model.
    draft_model_parallel: whether the draft is divided along model too.
  """

  batch_size: int = 1
  inputs_length: int = 512
  targets_length: int = 128
  dtype: str = 'bfloat16'
  mesh_shape: Sequence[int] | None = None
  draft_model_parallel: bool = False


class Bench:
  """Compiles for one place, and says each time what."""

  def __init__(self, place: abstract_pair.Place, shapes: Shapes):
    self._place = place
    self._shapes = shapes
    self._models: dict[Hashable, loading.Model] = {}
    self._request = abstract_pair.make_request(
        place, shapes.batch_size, shapes.inputs_length
    )

  def needed_bytes(self, target: str, draft: str, gamma: int) -> int:
    """What decoding holds on each device, counted and not compiled."""
    shapes = self._shapes
    mesh_shape = sharding.describe(self._place.mesh).values()
    workload = memory.Workload(
        batch_size=shapes.batch_size,
        num_decodes=1,
        inputs_length=shapes.inputs_length,
        targets_length=shapes.targets_length,
        gamma=gamma,
        mesh_shape=tuple(mesh_shape) or (1, 1),
        draft_model_parallel=shapes.draft_model_parallel,
    )
    held = (
        memory.target_bytes(self._config(target), workload),
        memory.draft_bytes(
            self._config(draft), workload, dialled.VOCAB_SIZE
        ),
    )
    return sum(each.total for each in held)

  def describe_model(self, size: str, *, is_draft: bool) -> Description:
    """A model's calls, counted, and its steps, compiled in both forms."""
    model = self._make(size, is_draft=is_draft)
    return {
        'name': PREFIX + size,
        'num_params': dialled.count_params(self._config(size)),
        'calls': [self._count(model, block) for block in _BLOCKS],
        'steps': {
            form: self._compile(
                f'a step of {PREFIX}{size}, {form.replace("_", " ")}',
                programs.compile_plain,
                self._make(size, is_draft=is_draft, min_block=min_block),
            )
            for form, min_block in (('one_row', _ONE_ROW), ('padded', None))
        },
    }

  def describe_verify(self, target: str, gamma: int) -> Description:
    """The target's scoring of gamma guesses, compiled."""
    model = self._make(target)
    return {
        'gamma': gamma,
        'call': self._count(model, gamma + 1),
        'program': self._compile(
            f'verifying by {PREFIX}{target}, gamma {gamma}',
            programs.compile_verify,
            model,
            gamma=gamma,
        ),
    }

  def describe_pair(self, target: str, draft: str, gamma: int) -> Description:
    """A pair's whole loop, compiled."""
    return {
        'draft': PREFIX + draft,
        'gamma': gamma,
        'loop': self._compile(
            f'the loop of {PREFIX}{target} with {PREFIX}{draft}, gamma {gamma}',
            programs.compile_speculative,
            self._make(target),
            self._make(draft, is_draft=True),
            gamma,
        ),
    }

  def describe_row(self, target: str, row: published.Row) -> Description:
    """What the roofline says of a row of Table 2."""
    model = self._make(target)
    calls = (
        self._call(model, 1),
        self._call(self._make(row.draft, is_draft=True), 1),
        self._call(model, row.gamma + 1),
    )
    plain, draft, verify = (
        call.seconds(self._place.topology.chip) for call in calls
    )
    return {
        'c': draft / plain,
        'speedup': roofline.speedup(row, plain, draft, verify),
    }

  def describe_row_writes(self, target: str, gamma: int) -> list[Description]:
    """Both forms of writing several rows, where there are several."""
    if self._rows == 1 or self._place.mesh is not None:
      return []
    return [
        {
            'form': name,
            'block': block,
            'program': self._run(
                f'{name} of {block} positions in {self._rows} rows',
                lambda form=form, block=block: row_writes.compile_form(
                    form,
                    self._config(target),
                    self._place,
                    rows=self._rows,
                    block=block,
                    slots=self._slots(gamma),
                ),
            ),
        }
        for block in (1, gamma + 1)
        for name, form in row_writes.FORMS.items()
    ]

  def describe_t5x(self, target: str) -> Description | None:
    """T5X's own step, where it can be imported and for one device."""
    if self._place.mesh is not None or not t5x_step.IS_IMPORTABLE:
      return None
    return self._run(
        f"T5X's own step of {PREFIX}{target}",
        lambda: t5x_step.compile_plain(
            self._config(target),
            self._place,
            examples=self._shapes.batch_size,
            inputs_length=self._shapes.inputs_length,
            length=self._shapes.targets_length,
        ),
    )

  @property
  def _rows(self) -> int:
    """Rows on one device."""
    mesh = sharding.describe(self._place.mesh)
    return self._shapes.batch_size // mesh.get(sharding.DATA_AXIS, 1)

  def _slots(self, gamma: int) -> int:
    return speculation.cache_slots(self._shapes.targets_length, gamma)

  def _config(self, size: str) -> t5.T5Config:
    return dialled.make_config(size, self._shapes.dtype)

  def _make(
      self, size: str, *, is_draft: bool = False, min_block: int | None = None
  ) -> loading.Model:
    is_whole = is_draft and not self._shapes.draft_model_parallel
    rules = sharding.REPLICATED if is_whole else sharding.MODEL_PARALLEL
    key = size, rules, min_block
    if key not in self._models:  # shapes of XXL take a second
      self._models[key] = abstract_pair.make_model(
          self._config(size), self._place, rules, min_block
      )
    return self._models[key]

  def _call(self, model: loading.Model, block: int) -> roofline.Call:
    return roofline.count(
        model,
        rows=self._rows,
        block=block,
        slots=self._slots(block - 1),
        inputs_length=self._shapes.inputs_length,
    )

  def _count(self, model: loading.Model, block: int) -> Description:
    call = self._call(model, block)
    seconds = call.seconds(self._place.topology.chip)
    return {'block': block, **vars(call), 'seconds': seconds}

  def _compile(
      self,
      name: str,
      compile_program: Callable[..., programs.Program],
      target: loading.Model,
      draft: loading.Model | None = None,
      gamma: int = 1,
  ) -> Description:
    decoder = token_decoder.TokenDecoder(
        target,
        target if draft is None else draft,
        gamma=gamma,
        length=self._shapes.targets_length,
    )
    return self._run(name, lambda: compile_program(decoder, self._request))

  def _run(
      self, name: str, make: Callable[[], programs.Program]
  ) -> Description:
    print(f'compiling {name}', file=sys.stderr)
    program = make()
    chip = self._place.topology.chip
    return {
        **dataclasses.asdict(program),
        'step_s': chip.seconds(program.step.cycles),
    }
