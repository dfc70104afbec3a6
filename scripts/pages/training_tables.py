# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks.draft_recipes`."""

from collections.abc import Sequence

from scripts.pages import formats
from scripts.pages import records as records_lib
from speculative_t5x.research.reports import markdown

_TEMPERATURES = 0, 1
_GAMMAS = 3, 5, 7


def recipes_table(recipes: Sequence[records_lib.Entry]) -> str:
  """Returns the draft's text and the acceptance rates of each recipe."""
  header = ['recipe', 'seeds', 'BLEU of the draft']
  for t in _TEMPERATURES:
    header += [f'acceptance, T {t}', 'over references']
  rows = []
  for each in recipes:
    bleu = '-' if each.bleu is None else f'{each.bleu:.1f}'
    row = [f'`{each.recipe}`', str(len(each.seeds)), bleu]
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
  """Returns the tokens per target call and the speedup of each recipe."""
  header = ['recipe']
  header += [f'tokens per target call, gamma {gamma}' for gamma in _GAMMAS]
  header += [f'speedup, gamma {recipes[0].speed[0].gamma}']
  rows = []
  for each in recipes:
    (speed,) = (x for x in each.speed if x.temperature == temperature)
    row = [f'`{each.recipe}`']
    for gamma in _GAMMAS:
      row.append(f'{each.mean[f"tokens_per_call_{gamma}_t{temperature}"]:.2f}')
    rows.append([*row, formats.speedup_and_interval(speed)])
  return markdown.table(header, rows)
