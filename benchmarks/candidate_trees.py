# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokens per target call of trees of candidates, beside chains.

  python -m benchmarks.candidate_trees --multi30k=<folder> \\
    --target=<checkpoint> --draft=<checkpoint> [--candidates='(4, 2)'] \\
    [--nodes=32] [--width=6] [--gamma=7] [--inputs=200] [--output=<file>]

Prints a line of JSON per temperature and tree. Each has the tokens per target
call of the draft model's chain and of its tree, of equal depth: as the paper's
rule tests candidates, at temperature 1 also the likeliest ones (a draft of
temperature 0) and independent ones (KSequential). Counts do not depend on the
machine.

--candidates, which may be given several times, is a tree; --nodes adds one of
so many likeliest nodes of each call, root included, of --width per depth that
the draft model decodes. At temperature 0 the outputs are compared with those of
plain decoding.
"""

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
import itertools
import sys
from typing import Any

import jax
import numpy as np

from benchmarks import cases
from benchmarks import running
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.rules import k_sequential
from speculative_t5x.speculation import sampling as sampling_lib

# What is changed of a request, by temperature and name.
WAYS = {
    0.0: {'tokenwise': {}},
    1.0: {
        'tokenwise': {},
        'likeliest': {'draft_sampling': sampling_lib.GREEDY},
        'k_sequential': {'rule': k_sequential.KSequential()},
    },
}


def parse(given: Sequence[str]) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('candidate_trees', __doc__)
  cases.add_options(parser)
  parser.add_argument(
      '--candidates', type=ast.literal_eval, action='append', default=[]
  )
  parser.add_argument(
      '--nodes', type=running.several(running.positive), default=()
  )
  parser.add_argument(
      '--width', type=running.several(running.positive), default=(6,)
  )
  running.add_counts(parser, gamma=7, inputs=200, batch=50)
  options = parser.parse_args(given)
  if not options.candidates and not options.nodes:
    parser.error('give --candidates or --nodes')
  return options


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
  """Yield the record of each temperature and tree."""
  case = cases.read(options)
  chain = token_decoder.TokenDecoder(
      models_lib.load_model(options.target),
      options.draft,
      gamma=options.gamma,
      max_tokens=cases.LENGTH,
      inputs_length=cases.LENGTH,
  )
  shapes = [{'candidates': each} for each in options.candidates]
  shapes += [
      {'nodes': nodes, 'width': width}
      for nodes, width in itertools.product(options.nodes, options.width)
  ]
  trees = [
      chain.with_drafter(
          tree_drafting.CandidateTree(chain.loaded_drafter.models[0], **shape),
          options.gamma,
      )
      for shape in shapes
  ]
  batches = lambda *settings: _batches(
      case, _settings(*settings), options.batch
  )
  decode, _ = whole_batches.ways(chain)
  plain = [jax.device_get(decode(x).sequences) for x in batches(0.0, {})]
  for temperature, ways in WAYS.items():
    run = lambda decoder, changes, temperature=temperature: _run(
        decoder, batches(temperature, changes)
    )
    of_chain = {name: run(chain, each)[0] for name, each in ways.items()}
    for shape, tree in zip(shapes, trees, strict=True):
      # Of the likeliest nodes none is drawn, by any rule.
      own = {'tokenwise': {}} if 'nodes' in shape else ways
      runs = {name: run(tree, each) for name, each in own.items()}
      identical = None
      if temperature == 0:
        pairs = zip(plain, runs['tokenwise'][1], strict=True)
        same = [np.all(one == other, axis=1) for one, other in pairs]
        identical = int(np.sum(np.concatenate(same)[: options.inputs]))
      yield {
          'gamma': options.gamma,
          'num_inputs': options.inputs,
          'temperature': temperature,
          **{'candidates': None, 'nodes': None, 'width': None, **shape},
          'num_nodes': tree.drafter.num_nodes,
          'chain': of_chain,
          'tree': {name: rate for name, (rate, _) in runs.items()},
          'identical': identical,
      }


def _settings(
    temperature: float, changes: Mapping[str, Any]
) -> request_lib.Settings:
  return request_lib.Settings(
      max_tokens=cases.LENGTH,
      sampling=sampling_lib.Sampling(temperature),
      **changes,
  )


def _batches(
    case: cases.Case, settings: request_lib.Settings, batch: int
) -> Iterator[input_batch.InputBatch]:
  requests = [
      settings.request(np.trim_zeros(row, 'b').tolist(), index)
      for index, row in enumerate(case.inputs)
  ]
  return input_batch.whole_batches(
      requests, settings, size=batch, inputs_length=cases.LENGTH
  )


def _run(
    decoder: token_decoder.TokenDecoder,
    batches: Iterator[input_batch.InputBatch],
) -> tuple[float, list[np.ndarray]]:
  """Return tokens per target call over all inputs, and the outputs."""
  num_tokens, num_calls, outputs = 0, 0, []
  for each in batches:
    decoded = jax.device_get(whole_batches.decode(decoder, each))
    decoded.check_whole()
    # Rows that only fill the last batch make none.
    num_tokens += int(np.sum(decoded.num_tokens))
    num_calls += int(np.sum(decoded.num_calls))
    outputs.append(decoded.sequences)
  return num_tokens / num_calls, outputs


def main(given: list[str] | None = None) -> None:
  options = parse(sys.argv[1:] if given is None else given)
  lines = (
      running.line('candidate_trees', **each) for each in measure(options)
  )
  running.write(lines, options.output)


if __name__ == '__main__':
  running.run(main)
