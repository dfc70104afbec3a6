# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Options that benchmarks refuse before anything is loaded."""

import importlib

import pytest

_RECIPES = '--multi30k=a --target=b --work=c'


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('draft_lengths', '--gammas=0,3'),
        ('draft_lengths', '--gammas=3,x'),
        ('draft_recipes.__main__', f'{_RECIPES} --recipes=luck'),
        ('draft_recipes.__main__', f'{_RECIPES} --seeds=-1'),
        ('earlier_answers', '--requests=0'),
        ('earlier_answers', '--only'),  # cut short
        ('simulated_pairs', '--output_dir=x --target xl huge'),
        ('simulated_pairs', '--output_dir=x --batch_size 1 0'),
        ('side_by_side.cases', ''),
        ('side_by_side.cases', '--multi30k=a --target=b'),
        ('side_by_side.cases', '--size=base --draft=b'),
        ('side_by_side.cases', '--size=base --oracle=a'),
    ],
)
def test_refused(name, options):
  module = importlib.import_module(f'benchmarks.{name}')
  parse = getattr(module, 'parse_arguments', None) or module.parse
  with pytest.raises(SystemExit, match='2'):
    parse(options.split())
