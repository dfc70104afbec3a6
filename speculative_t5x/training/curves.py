# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the history of a training run.

Each quantity that the validation measures has its own axes, over the training
steps, with its mean in training where there is one. The best checkpoint is
marked.
"""

from collections.abc import Sequence
import dataclasses
import re

from etils import epath
from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib

from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import figure_style
from speculative_t5x.training import history

FILE_NAME = 'curves.png'
_WIDTH_IN = 4.6
_MAX_MARKED = 40  # with more points, markers would hide the lines
# The label and the least value of a measure's axes, from the top. Others have
# their own name, and no least value.
_AXES = {
    'loss': ('loss per target token', 0),
    'divergence': ('loss per target token', 0),
    'accuracy': ('accuracy', 0),
    'acceptance': ('acceptance rate', 0),
    'tokens_per_call': ('tokens per target call', 1),
}
_IN_TRAINING = ('loss', 'accuracy')
_NAME = re.compile(r'(.+?)(?:_(\d+))?(?:_t(\d+))?')


@dataclasses.dataclass(frozen=True)
class _Curve:
  """One measure over the training steps.

  Attributes:
    measure: what it measures, a key of _AXES or another name.
    gamma: draft tokens per call, None if it does not depend on them.
    temperature: of the target, None if it does not depend on it.
    steps: of the points that have the measure.
    values: at these points.
    in_training: whether it is a mean over training steps.
  """

  measure: str
  gamma: int | None
  temperature: int | None
  steps: Sequence[int]
  values: Sequence[float]
  in_training: bool = False

  @property
  def axes(self) -> tuple[str, int | None]:
    """The label and the least value of its axes."""
    return _AXES.get(self.measure, (self.measure, None))

  @property
  def label(self) -> str:
    """The text of the legend."""
    if self.in_training:
      return 'training'
    parts = []
    if self.temperature is None or self.axes in map(_AXES.get, _IN_TRAINING):
      parts.append('validation')
    if self.gamma is not None:
      parts.append(f'γ = {self.gamma}')
    if self.temperature is not None:
      parts.append(f'T = {self.temperature}')
    return ', '.join(parts)


def write(
    model_dir: epath.Path, points: Sequence[history.Point], best_step: int
) -> epath.Path:
  """Draws the points of a run to `curves.png`, and returns its path.

  Args:
    model_dir: gets the file.
    points: all of the training run, in their order; at least one.
    best_step: the step of the best checkpoint.
  Raises:
    OSError: if the folder cannot be written to. The earlier picture stays.
  """
  picture = figure_style.for_screen(draw(points, best_step), points)
  return whole_files.replace(model_dir, FILE_NAME, picture)


def draw(points: Sequence[history.Point], best_step: int) -> figure_lib.Figure:
  """Draws the points of a run; see `write`."""
  curves = _curves(points)
  kinds = _from_the_top(curves)
  with figure_style.applied():
    figure, all_axes = figure_style.panels(
        'training step', [label for label, _ in kinds]
    )
    figure.set_size_inches(_WIDTH_IN, figure.get_figheight())
    for axes, kind in zip(all_axes, kinds, strict=True):
      _draw(axes, [curve for curve in curves if curve.axes == kind], best_step)
      axes.set_ylim(bottom=kind[1])
    all_axes[0].set_xlim(0, points[-1].step)
    all_axes[0].set_title(
        f'best checkpoint: step {best_step}', fontsize=figure_style.SMALL
    )
  return figure


def _from_the_top(curves: Sequence[_Curve]) -> list[tuple[str, int | None]]:
  """Returns the axes of all curves."""
  found = dict.fromkeys(curve.axes for curve in curves)
  known = dict.fromkeys(axes for axes in _AXES.values() if axes in found)
  return list(known | found)


def _curves(points: Sequence[history.Point]) -> list[_Curve]:
  """Returns the curves of the validation, then those of training."""
  found = []
  names = dict.fromkeys(name for point in points for name in point.validation)
  for name in names:
    measure, *numbers = _NAME.fullmatch(name).groups()
    gamma, temperature = (None if x is None else int(x) for x in numbers)
    rows = [(p.step, p.validation.get(name)) for p in points]
    found.append(_Curve(measure, gamma, temperature, *_measured(rows)))
  shown = {curve.axes for curve in found}
  for name in _IN_TRAINING:
    steps, values = _measured([(p.step, p.training.get(name)) for p in points])
    if steps and _AXES[name] in shown:
      found.append(_Curve(name, None, None, steps, values, in_training=True))
  return found


def _measured(
    rows: Sequence[tuple[int, float | None]],
) -> tuple[list[int], list[float]]:
  """Returns steps and values, without the steps that have none."""
  steps, values = [], []
  for step, value in rows:
    if value is not None:
      steps.append(step)
      values.append(value)
  return steps, values


def _draw(
    axes: axes_lib.Axes, curves: Sequence[_Curve], best_step: int
) -> None:
  kind_of = lambda curve: curve.gamma or curve.temperature
  kinds = list(dict.fromkeys(map(kind_of, curves)))
  training_color, *colors = figure_style.COLORS
  for curve in curves:
    color = colors[kinds.index(kind_of(curve)) % len(colors)]
    if curve.in_training:
      color = training_color
    axes.plot(
        curve.steps,
        curve.values,
        color=color,
        linestyle=figure_style.DASHES[1 if curve.temperature else 0],
        marker='o' if len(curve.steps) <= _MAX_MARKED else '',
        markersize=1.8,
        label=curve.label,
        clip_on=False,
    )
    if best_step in curve.steps:
      axes.plot(
          best_step,
          curve.values[curve.steps.index(best_step)],
          color=figure_style.POINT_COLOR,
          marker='o',
          markersize=figure_style.MARK_POINTS,
          markeredgecolor=color,
          markeredgewidth=0.8,
          clip_on=False,
          zorder=3,
      )
  axes.axvline(best_step, color='#888888', linewidth=0.6, zorder=1)
  axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
