# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the history of a training run.

Each quantity that the validation measures has its own axes, over the training
steps, with its mean in training where there is one. The best checkpoint is
marked.
"""

from collections.abc import Sequence
import re

from etils import epath
from matplotlib import figure as figure_lib

from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import figure_style
from speculative_t5x.training import history

FILE_NAME = 'curves.png'
_WIDTH_IN = 4.6
_MAX_MARKED = 40  # with more points, markers would hide the lines
_LOSS = 'loss per target token'
# The label and the least value of a quantity's axes, from the top. Others have
# their own name, and no least value.
_AXES = {
    'loss': (_LOSS, 0),
    'divergence': (_LOSS, 0),
    'accuracy': ('accuracy', 0),
    'acceptance': ('acceptance rate', 0),
    'tokens_per_call': ('tokens per target call', 1),
}
# As in tokens_per_call_3_t0: the quantity, gamma and the temperature.
_NAME = re.compile(r'(.+?)(?:_(\d+))?(?:_t(\d+))?')


def write(
    model_dir: epath.Path, points: Sequence[history.Point], best_step: int
) -> epath.Path:
  """Draw the points of a run to `curves.png`, and return its path.

  There is at least one point, and they are in their order.

  Raises:
    OSError: if the folder cannot be written to. The earlier picture stays.
  """
  picture = figure_style.for_screen(draw(points, best_step), points)
  return whole_files.replace(model_dir, FILE_NAME, picture)


def draw(points: Sequence[history.Point], best_step: int) -> figure_lib.Figure:
  """Draw the points of a run; see `write`."""
  # By the axes, and in them by the text of the legend: points and look.
  drawn = {axes: {} for axes in _AXES.values()}
  for name in dict.fromkeys(name for p in points for name in p.validation):
    quantity, gamma, temperature = _NAME.fullmatch(name).groups()
    axes = _AXES.get(quantity, (quantity, None))
    text = [
        'validation' if temperature is None or axes[0] == _LOSS else '',
        f'γ = {gamma}' if gamma else '',
        f'T = {temperature}' if temperature else '',
    ]
    drawn.setdefault(axes, {})[', '.join(filter(None, text))] = [
        (p.step, p.validation[name]) for p in points if name in p.validation
    ]
  for name in ('loss', 'accuracy'):
    rows = [(p.step, p.training[name]) for p in points if name in p.training]
    if rows and drawn[_AXES[name]]:
      drawn[_AXES[name]]['training'] = rows
  drawn = {axes: curves for axes, curves in drawn.items() if curves}
  with figure_style.applied():
    figure, all_axes = figure_style.panels(
        'training step', [label for label, _ in drawn]
    )
    figure.set_size_inches(_WIDTH_IN, figure.get_figheight())
    for axes, ((_, least), curves) in zip(all_axes, drawn.items(), strict=True):
      _draw(axes, curves, best_step)
      axes.set_ylim(bottom=least)
    all_axes[0].set_xlim(0, points[-1].step)
    all_axes[0].set_title(
        f'best checkpoint: step {best_step}', fontsize=figure_style.SMALL
    )
  return figure


def _draw(axes, curves: dict, best_step: int) -> None:
  """Draw curves, given by the text of the legend, and mark the best step."""
  looks = [
      {'color': color, 'linestyle': line}
      for line in figure_style.DASHES
      for color in figure_style.COLORS
  ]
  for look, (text, rows) in zip(looks, curves.items()):
    axes.plot(
        *zip(*rows, strict=True),
        **look,
        marker='o' if len(rows) <= _MAX_MARKED else '',
        markersize=1.8,
        label=text,
        clip_on=False,
    )
    if best_step in (values := dict(rows)):
      axes.plot(
          best_step,
          values[best_step],
          color=figure_style.POINT_COLOR,
          marker='o',
          markersize=figure_style.MARK_POINTS,
          markeredgecolor=look['color'],
          markeredgewidth=0.8,
          clip_on=False,
          zorder=3,
      )
  axes.axvline(best_step, color='#888888', linewidth=0.6, zorder=1)
  axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
