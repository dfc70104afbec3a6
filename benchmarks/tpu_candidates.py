# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles trees of candidates of T5 1.1 for a TPU that is not there.

  python -m benchmarks.tpu_candidates --target=xxl --draft=small \\
    [--gamma=7] [--nodes=32] [--width=6] [--topology=v4:1x1x1]

Prints a line of JSON with the compiler's estimate of cycles, at batch 1 on one
chip in bfloat16 and temperature 0: of a step of the decoding loop, drafting and
verification, that drafts the chain, and of one that drafts the likeliest nodes.
Nothing runs. For what cycles leave out see
`research.ahead_of_time.program_reading`.

From records of `candidate_trees` (--tokens=<file>) it reckons the rows of the
paper's Tables 2 and 4 that have this draft and gamma: if the tree made as many
more tokens per call of the paper's pair as it makes of the one counted.
"""

import argparse
from collections.abc import Iterator, Sequence
import json
import pathlib
from typing import Any

from benchmarks import running
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.research.ahead_of_time import bench as bench_lib
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import t5_published


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('tpu_candidates', __doc__)
  for name, default in (('target', 'xxl'), ('draft', 'small')):
    parser.add_argument(
        f'--{name}', choices=t5_published.SIZES, default=default
    )
  parser.add_argument('--topology', default='v4:1x1x1')
  running.add_counts(
      parser, gamma=7, nodes=32, width=6, inputs_length=512, targets_length=128
  )
  parser.add_argument('--tokens', type=pathlib.Path)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(given)


def compiled(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
  """Return the cost of a step with a chain and with a tree."""
  target, draft = (
      t5_published.make_config(size, 'bfloat16')
      for size in (options.target, options.draft)
  )
  bench = bench_lib.Bench(
      topology.describe(options.topology).with_mesh(None),
      bench_lib.Sizes(
          inputs_length=options.inputs_length,
          targets_length=options.targets_length,
      ),
      options.target,
      target,
  )
  chain = bench.make_draft(draft)
  tree = tree_drafting.CandidateTree(
      chain, nodes=options.nodes, width=options.width
  )
  return {
      name: bench.describe_loop(name, drafter, options.gamma)
      for name, drafter in (('chain', chain), ('tree', tree))
  }


def reckoned(
    options: argparse.Namespace, tree_over_chain: float
) -> Iterator[dict[str, Any]]:
  """Yield how much faster the tree would be, per row of the paper."""
  records = map(json.loads, options.tokens.read_text().splitlines())
  of_nodes = {
      record['temperature']: record
      for record in records
      if (record['num_nodes'], record['gamma'], record.get('width'))
      == (options.nodes, options.gamma, options.width)
  }
  for row in published.TABLES_2_AND_4:
    if (row.draft, row.gamma) != (options.draft, options.gamma):
      continue
    record = of_nodes[row.temperature]
    tokens = record['tree']['tokenwise'] / record['chain']['tokenwise']
    yield {
        'task': row.task,
        'temperature': row.temperature,
        'alpha': row.alpha,
        'tokens_over_chain': tokens,
        'speed_over_chain': tokens / tree_over_chain,
    }


def lines(options: argparse.Namespace) -> Iterator[str]:
  """Yield the line of a pair."""
  found = compiled(options)
  tree_over_chain = found['tree']['step_s'] / found['chain']['step_s']
  rows = None
  if options.tokens:
    rows = list(reckoned(options, tree_over_chain))
  paths = 'output', 'tokens'
  settings = {k: v for k, v in vars(options).items() if k not in paths}
  yield running.line(
      'tpu_candidates',
      **settings,
      dtype='bfloat16',
      tree_over_chain=tree_over_chain,
      table_2=rows,
      **found,
  )


def main(given: Sequence[str] | None = None) -> None:
  options = parse(given)
  running.write(lines(options), options.output)


if __name__ == '__main__':
  running.run(main)
