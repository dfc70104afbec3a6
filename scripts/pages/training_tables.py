# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks.draft_recipes`."""

from collections.abc import Sequence

from scripts.pages import formats
from scripts.pages import records as records_lib
from speculative_t5x.reports import markdown

_TEMPERATURES = 0, 1


def recipe(
    recipes: Sequence[records_lib.Entry], name: str
) -> records_lib.Entry:
  """Returns the record of the recipe of a name."""
  (found,) = (each for each in recipes if each.recipe == name)
  return found


def recipes_table(recipes: Sequence[records_lib.Entry]) -> str:
  """Returns the draft's text and the acceptance rates of each recipe."""
  header = ['recipe', 'seeds', 'BLEU of the draft']
  for t in _TEMPERATURES:
    header += [f'acceptance, T {t}', 'over references']
  rows = []
  for each in recipes:
    bleu = '-' if each.bleu is None else f'{each.bleu:.1f}'
    row = [_name(each), str(len(each.seeds)), bleu]
    for t in _TEMPERATURES:
      row += [f'{each.mean[f"acceptance_t{t}"]:.3f}', over_references(each, t)]
    rows.append(row)
  return markdown.table(header, rows)


def over_references(recipe: records_lib.Entry, temperature: int) -> str:
  """Formats the difference from training on references, with its interval."""
  if 'over_references' not in recipe:
    return '-'
  mean, *interval = recipe.over_references[f'acceptance_t{temperature}']
  shown = formats.interval(interval, '+.3f') if interval else ''
  return f'{mean:+.3f} {shown}'.rstrip()


def recipe_speeds_table(
    recipes: Sequence[records_lib.Entry], temperature: int
) -> str:
  """Returns what each recipe's draft gains, by draft length."""
  gammas = [x.gamma for x in recipes[0].speed if x.temperature == temperature]
  header = ['recipe']
  for gamma in gammas:
    header += [f'tokens per target call, gamma {gamma}', 'speedup']
  rows = []
  for each in recipes:
    row = [_name(each)]
    for speed in each.speed:
      if speed.temperature == temperature:
        row += [f'{speed.tokens_per_target_call:.2f}', _speedup(speed)]
    rows.append(row)
  return markdown.table(header, rows)


def _name(recipe: records_lib.Entry) -> str:
  return recipe.recipe.replace('_', ' ')


def _speedup(speed: records_lib.Entry) -> str:
  return f'{speed.speedup:.2f}x {formats.interval(speed.speedup_ci95)}'
