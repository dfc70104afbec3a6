# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The time of one example by its parts: Figure 5 of the paper.

Of Leviathan et al. (2023), arXiv:2211.17192v2. A row shows one way to decode
the example. It is assembled from the times of parts, each compiled and measured
separately, since taking the compiled loop apart would change it. The time that
the loop takes beyond its parts is shown at the end of each step.
"""

from collections.abc import Sequence
import sys
from typing import NamedTuple

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import patches
import numpy as np

from speculative_t5x.decoder import text_decoder
from speculative_t5x.research import arguments
from speculative_t5x.research import figure_style
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times

ROUNDS = 15

# The parts of the work on one example: their names, colours and hatches.
# Inputs are read once, before decoding: by encoders, or as prompts by models
# that have none. A draft step makes one draft token. A target step is one
# target call, on one position in plain decoding and on gamma + 1 positions in
# verification; sampling and the acceptance test are part of the steps. The
# commit is the time of a step beyond its parts: committing tokens, other
# bookkeeping of the loop, and cache misses because draft and target evict each
# other. The colour stands for the model, and a hatch for reading the inputs. In
# grey the target is dark, the draft is light, and the commit is nearly white.
_LOOKS = {
    'target_input': ('target reads input', '#0b4f8a', '////'),
    'draft_input': ('draft reads input', '#e8911c', '\\\\\\\\'),
    'draft': ('draft step', '#e8911c', ''),
    'target_step': ('target step', '#0b4f8a', ''),
    'commit': ('commit and rest of a step', '#d0d0d0', ''),
}


class Span(NamedTuple):
  """A part, by its key, and its time in milliseconds from the row's start."""

  kind: str
  start_ms: float
  duration_ms: float

  @property
  def end_ms(self) -> float:
    return self.start_ms + self.duration_ms


class TraceRow(NamedTuple):
  """One way to decode the example, as consecutive spans."""

  label: str
  spans: tuple[Span, ...]

  @property
  def walltime_ms(self) -> float:
    return self.spans[-1].end_ms

  @property
  def num_target_calls(self) -> int:
    return sum(span.kind == 'target_step' for span in self.spans)


def make_row(
    times: step_times.PartTimes,
    gamma: int,
    num_steps: int,
    walltime_ms: float,
) -> TraceRow:
  """Return the row of speculative decoding, or of plain decoding at gamma 0.

  If the times of the parts add up to more than the measured time of the whole
  example, the row has no commits.
  """
  read = [('target_input', times.target_encoder_s * 1e3)]
  step = [('target_step', times.t_verify_ms if gamma else times.t1_ms)]
  if gamma:
    read.append(('draft_input', times.draft_encoder_s * 1e3))
    later = [('draft', times.t_draft_ms)] * (gamma - 1)
    step = [('draft', times.t_draft2_ms), *later, *step]
  parts_ms = sum(ms for _, ms in read + step * num_steps)
  if walltime_ms >= parts_ms:
    step.append(('commit', (walltime_ms - parts_ms) / num_steps))
  spans, now_ms = [], 0.0
  for kind, duration_ms in read + step * num_steps:
    spans.append(Span(kind, now_ms, duration_ms))
    now_ms = spans[-1].end_ms
  return TraceRow(f'γ = {gamma}' if gamma else 'plain', tuple(spans))


def measure(
    decoder: text_decoder.TextDecoder,
    text: str,
    gammas: int | Sequence[int],
    *,
    rounds: int = ROUNDS,
) -> list[TraceRow]:
  """Return a row of plain decoding and one per gamma, timed interleaved.

  The text is decoded at temperature 0, and the medians of the rounds count.

  Raises:
    ValueError: for gammas that are not whole numbers of at least 1.
  """
  gammas = arguments.several_counts('gammas', gammas)
  batch, _ = whole_batches.make_batch(decoder, [text])
  drafter = decoder.tokens.loaded_drafter
  decoders = [decoder.tokens.with_drafter(drafter, g) for g in gammas]
  all_parts = [
      step_times.Parts(part_programs.PartPrograms(each), batch)
      for each in decoders
  ]
  ways = [whole_batches.ways(decoders[0])[0]]
  ways += [whole_batches.ways(each)[1] for each in decoders]
  num_steps = [int(way(batch).work.num_steps) for way in ways]
  seconds = []
  for _ in range(rounds):
    for parts in all_parts:
      parts.time_encoders(batch)
      parts.time_round()
    seconds.append([step_times.seconds(lambda w=w: w(batch)) for w in ways])
  walltimes_ms = (np.median(seconds, axis=0) * 1e3).tolist()
  times = [parts.times() for parts in all_parts]
  rows = [
      make_row(*each)
      for each in zip(
          [times[0], *times], [0, *gammas], num_steps, walltimes_ms, strict=True
      )
  ]
  if any(row.spans[-1].kind != 'commit' for row in rows):
    print(
        'The parts took longer than the run that they make up, so commits are'
        ' left out of a row. Repeat on a quiet machine to see them.',
        file=sys.stderr,
    )
  return rows


_ROW_HEIGHT, _REST_HEIGHT = 0.34, 1.0  # inches
_BAR = 0.72  # height of a bar over that of a row
_ROOM = 1.18  # width of the axes over that of the longest row
_EDGE = 0.5  # points
# Narrower bars have no edge: viewers draw an edge at least a pixel wide, which
# would cover the bar.
_MIN_EDGED = 2.5  # points


def draw(rows: Sequence[TraceRow], setting: str) -> figure_lib.Figure:
  """Draw rows along one time axis, with their numbers of target calls.

  The setting says what was measured and where, below the axis.
  """
  with figure_style.applied():
    height = _ROW_HEIGHT * len(rows) + _REST_HEIGHT
    figure = figure_style.Figure(
        (figure_style.PAGE_IN, height), layout='constrained'
    )
    axes = figure.add_subplot()
    axes.set_xlim(0, _ROOM * max(row.walltime_ms for row in rows))
    axes.set_xlabel('time from the start of reading the input (ms)')
    figure.supxlabel(setting, size=figure_style.SMALL)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.tick_params('y', length=0)
    axes.spines['left'].set_visible(False)
    for place, row in enumerate(rows):
      _draw_row(axes, place, row)
    drawn = {span.kind for row in rows for span in row.spans}
    handles = [
        patches.Patch(
            facecolor=colour, edgecolor='white', hatch=hatch, label=name
        )
        for kind, (name, colour, hatch) in _LOOKS.items()
        if kind in drawn
    ]
    figure.legend(
        handles=handles, loc='outside upper center', ncols=len(handles)
    )
  return figure


def _draw_row(axes: axes_lib.Axes, place: int, row: TraceRow) -> None:
  points_per_ms = 72 * figure_style.PAGE_IN / axes.get_xlim()[1]
  for kind, (_, colour, hatch) in _LOOKS.items():
    spans = [span for span in row.spans if span.kind == kind]
    widths = [points_per_ms * span.duration_ms for span in spans]
    axes.broken_barh(
        [(span.start_ms, span.duration_ms) for span in spans],
        (place - _BAR / 2, _BAR),
        facecolor=colour,
        edgecolor='white',
        hatch=hatch,
        linewidth=[_EDGE * (width >= _MIN_EDGED) for width in widths],
    )
  calls = row.num_target_calls
  words = f'  {calls} target call' + ('' if calls == 1 else 's')
  axes.text(row.walltime_ms, place, words, va='center')
