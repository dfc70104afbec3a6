# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seconds of a beam search, plain and speculative, beside other systems.

  python -m benchmarks.beam_search --multi30k=<folder> --target=<checkpoint> \\
    --draft=<checkpoint> [--beams=4] [--draft_beams=6] [--gamma=2]

As `benchmarks.throughput`, from token ids to the best hypothesis, and with its
options. The ways:

  plain_whole        this package's search, a step per target call
  speculative_whole  the same, several steps per call
  t5x                T5X's own `beam_search` by the function that its infer job
                     decodes a data set with
  transformers       Hugging Face's `generate`, and CTranslate2's search, each
  ctranslate2        with scores and a stop of its own

Beside what `throughput` prints, a line has of this package's ways num_steps,
num_calls and num_positions: steps of the search, target calls, and the
positions that these compute, to which their operations are proportional.
"""

import argparse
from collections.abc import Sequence
import functools
import sys

import jax
import numpy as np

from benchmarks import cases
from benchmarks import running
from benchmarks import throughput
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import beams as beams_lib


def parse(given: Sequence[str]) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('beam_search', __doc__)
  running.add_counts(parser, beams=4, draft_beams=6)
  own, rest = parser.parse_known_args(given)
  return argparse.Namespace(**vars(own), **vars(throughput.parse(rest)))


def prepare(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> tuple[
    token_decoder.TokenDecoder,
    list[input_batch.InputBatch],
    beam_search.BeamSearch,
]:
  """Return the decoder of a case, its inputs in whole batches, and the search.
  """
  decoder = token_decoder.TokenDecoder(
      models_lib.load_model(options.target),
      options.draft,
      gamma=options.gamma,
      max_tokens=cases.LENGTH,
      inputs_length=cases.LENGTH,
  )
  settings = request_lib.Settings(max_tokens=cases.LENGTH)
  requests = [
      settings.request(np.trim_zeros(row, 'b').tolist(), index)
      for index, row in enumerate(case.inputs)
  ]
  batches = input_batch.whole_batches(
      requests, settings, size=batch, inputs_length=cases.LENGTH
  )
  search = beam_search.BeamSearch(
      beams=options.beams, draft_beams=options.draft_beams
  )
  return decoder, list(batches), search


def own_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, throughput.Way]:
  """Return the ways of this package."""
  decoder, batches, search = prepare(options, case, batch)
  tree_size = options.beams + options.gamma * options.draft_beams
  plain, speculative = whole_batches.ways(decoder, search)
  ways = {
      throughput.REFERENCE: (plain, options.beams),
      'speculative_whole': (speculative, tree_size),
  }
  return {
      name: functools.partial(
          _search,
          way,
          batches,
          len(case.inputs),
          options.beams,
          positions,
      )
      for name, (way, positions) in ways.items()
  }


def _search(
    search: whole_batches.Way,
    batches: Sequence[input_batch.InputBatch],
    count: int,
    beams: int,
    positions: int,
) -> throughput.Turn:
  found = [jax.device_get(search(batch)) for batch in batches]
  calls = np.concatenate([x.num_calls[::beams] for x in found])[:count]
  sums = {'num_steps': calls.sum().item(), 'num_calls': calls.sum().item()}
  if found[0].statistics is not None:
    further = [x.statistics.num_accepted[::beams] for x in found]
    sums['num_steps'] += np.concatenate(further)[:count].sum().item()
  sums['num_positions'] = positions * sums['num_calls']
  best = [each.hypotheses(beams)[0][:, -1] for each in found]
  rows = np.concatenate(best)[:count]
  return throughput.Turn(list(map(cases.until_end, rows)), None, sums)


def t5x_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, throughput.Way]:
  """Return T5X's own way."""
  from t5x import decoding

  from benchmarks import inside_t5x

  decode = inside_t5x.decode_in_t5x(
      case,
      options,
      batch,
      functools.partial(
          decoding.beam_search, alpha=beams_lib.BREVITY_PENALTY
      ),
      num_decodes=options.beams,
  )
  return {'t5x': lambda: throughput.Turn(decode())}


def transformers_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, throughput.Way]:
  """Return transformers' own way."""
  return throughput.transformers_ways(options, case, batch, options.beams)


def ctranslate2_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, throughput.Way]:
  """Return CTranslate2's own way."""
  return throughput.ctranslate2_ways(options, case, batch, options.beams)


SYSTEMS = {
    'speculative_t5x': own_ways,
    't5x': t5x_ways,
    'transformers': transformers_ways,
    'ctranslate2': ctranslate2_ways,
}


def load(name: str, batch: int, given: Sequence[str]) -> list[str]:
  """Load a system into this process; see `throughput.load`."""
  options = parse(given)
  case = cases.read(options)
  return throughput.hold(SYSTEMS[name](options, case, batch))


def main(given: list[str] | None = None) -> None:
  given = sys.argv[1:] if given is None else given
  options = parse(given)
  records = throughput.lines(
      'beam_search',
      load,
      list(SYSTEMS),
      options,
      given,
      beams=options.beams,
      draft_beams=options.draft_beams,
  )
  running.write(records, options.output)


if __name__ == '__main__':
  running.run(main)
