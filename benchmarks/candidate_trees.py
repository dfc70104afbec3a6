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

--candidates, which may be given several times, is a tree; --nodes adds two of
so many nodes, root included. One has the best shape, chosen on as many other
inputs: where the target's greedy token is the draft model's k-th likeliest one,
the k-th candidate is accepted. How often runs of such ranks occur is the worth
of a node, and the tree takes the worthiest. The other has the likeliest nodes
of each call, of --width per depth that the draft model decodes. At temperature
0 the outputs are compared with those of plain decoding.
"""

import argparse
import ast
import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import heapq
import itertools
import sys
from typing import Any

import jax
import jax.numpy as jnp
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
from speculative_t5x.speculation import candidates as candidates_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification
from speculative_t5x.speculation import views

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
  both = argparse.Namespace(**{**vars(options), 'inputs': 2 * options.inputs})
  case = cases.read(both)
  others = dataclasses.replace(case, inputs=case.inputs[options.inputs :])
  case = dataclasses.replace(case, inputs=case.inputs[: options.inputs])
  chain = token_decoder.TokenDecoder(
      models_lib.load_model(options.target),
      options.draft,
      gamma=options.gamma,
      max_tokens=cases.LENGTH,
      inputs_length=cases.LENGTH,
  )
  shapes = [{'candidates': each} for each in options.candidates]
  if options.nodes:
    ranks = list(_ranks(chain, others, options.batch))
    shapes += [
        {'candidates': best_tree(ranks, nodes, options.gamma)}
        for nodes in options.nodes
    ]
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


def best_tree(
    ranks: Sequence[np.ndarray], num_nodes: int, gamma: int
) -> candidates_lib.Branching:
  """Return the tree whose nodes are met most often.

  Args:
    ranks: Of each text [tokens] int, which candidate each token would be.
    num_nodes: Nodes of the tree, its root included.
    gamma: Depth of the tree.
  """
  worth = collections.Counter(
      tuple(text[start : start + depth].tolist())
      for text in ranks
      for depth in range(1, gamma + 1)
      for start in range(len(text) - depth + 1)
  )
  num_children = collections.Counter()
  offers = [(-worth[0,], (0,))]
  for _ in range(num_nodes - 1):
    _, path = heapq.heappop(offers)
    num_children[path[:-1]] += 1
    sibling, child = (*path[:-1], path[-1] + 1), (*path, 0)
    for each in (sibling, child) if len(path) < gamma else (sibling,):
      heapq.heappush(offers, (-worth[each], each))
  level, tree = [()], []
  while any(counts := [num_children[path] for path in level]):
    tree.append(tuple(counts))
    level = [
        (*path, rank) for path, x in zip(level, counts) for rank in range(x)
    ]
  return tuple(tree)


def _ranks(
    decoder: token_decoder.TokenDecoder, case: cases.Case, batch: int
) -> Iterator[np.ndarray]:
  """Yield, per text that the target writes, which candidate each token is."""
  settings = _settings(0.0, {})
  rank = jax.jit(functools.partial(_rank, decoder))
  for each in _batches(case, settings, batch):
    decoded = whole_batches.decode(decoder.alone, each)
    with decoder.scope():
      found = rank(
          decoder.target.params,
          decoder.loaded_drafter.params,
          each.inputs,
          decoded.sequences,
      )
    for row, count in zip(*jax.device_get((found, decoded.num_tokens))):
      if count:  # others only fill a batch
        yield row[:count]


def _rank(decoder, target_params, draft_params, inputs, sequences) -> jax.Array:
  """Return how many tokens the draft model prefers to each, [rows, length]."""
  rows, length = sequences.shape
  setup = decoder.setup(target_params, draft_params, verification.TOKENWISE)
  started = state_lib.start(setup, inputs, rows, 1)
  context = views.Context(
      inputs, None, started.view(target_params), started.features
  )
  drafter = decoder.drafter
  memory, state = drafter.init(draft_params, context, rows, length)
  none = jnp.zeros((rows,), jnp.int32)
  logits, _ = drafter.model.decode(
      draft_params,
      memory.memory,
      state.cache,
      state_lib.decoder_inputs(sequences, memory.first_tokens, none, length),
      memory.offsets,
      None,
  )
  own = jnp.take_along_axis(logits, sequences[..., None], axis=-1)
  return jnp.sum(logits > own, axis=-1, dtype=jnp.int32)


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
