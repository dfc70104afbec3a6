# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares beam searches with T5X's own, hypothesis by hypothesis.

  python -m benchmarks.beam_exactness --multi30k=<folder> \\
    --target=<checkpoint> --draft=<checkpoint> [--beams=4] [--draft_beams=6] \\
    [--gamma=2] [--inputs=1000] [--batch=8]

The first inputs of the validation split are searched by T5X's `beam_search`,
and by this package's search, plain and speculative. Prints a line of JSON. Of
each two ways it has how many inputs have the same hypotheses in the same order,
the largest difference of their scores, and the inputs that differ: if there are
any, the program ends with status 1.
"""

import argparse
from collections.abc import Sequence
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import seqio
from t5x import decoding
from t5x import models as t5x_models

from benchmarks import beam_search
from benchmarks import cases
from benchmarks import running
from speculative_t5x.research import t5x_sampler
from speculative_t5x.research import whole_batches


class Found(NamedTuple):
  """Hypotheses of all inputs, each input's best one last.

  Attributes:
    sequences: [inputs, beams, length] int32.
    scores: [inputs, beams] float32.
  """

  sequences: np.ndarray
  scores: np.ndarray


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('beam_exactness', __doc__)
  cases.add_options(parser)
  running.add_counts(
      parser, beams=4, draft_beams=6, gamma=2, batch=8, inputs=1000
  )
  return parser.parse_args(given)


def t5xs(case: cases.Case, options: argparse.Namespace) -> Found:
  """Return what T5X's model finds, whose default is a beam search."""
  config = case.target.config
  vocabulary = seqio.PassThroughVocabulary(
      config.vocab_size, eos_id=config.special_ids.end
  )
  model = t5x_models.EncoderDecoderModel(
      module=t5x_sampler.make_module(config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=decoding.beam_search,
  )

  @jax.jit
  def search(params, inputs):
    batch = {
        'encoder_input_tokens': inputs,
        'decoder_input_tokens': jax.numpy.zeros_like(inputs),
    }
    sequences, aux = model.predict_batch_with_aux(
        params, batch, num_decodes=options.beams, return_all_decodes=True
    )
    return Found(sequences, aux['scores'])

  size, count = options.batch, len(case.inputs)
  inputs = np.pad(case.inputs, ((0, -count % size), (0, 0)))
  parts = np.split(inputs, len(inputs) // size)
  return _join([search(case.target.params, part) for part in parts], count)


def own(
    search: whole_batches.Way,
    beams: int,
    batches: Sequence[Any],
    count: int,
) -> Found:
  """Return what a search of this package finds."""
  found = list(map(search, batches))
  return _join([Found(*each.hypotheses(beams)) for each in found], count)


def _join(parts: Sequence[Found], count: int) -> Found:
  """Return the parts as one; what follows the inputs only fills a batch."""
  parts = jax.device_get(parts)
  return Found(*(np.concatenate(x)[:count] for x in zip(*parts, strict=True)))


def compare(one: Found, other: Found) -> dict[str, Any]:
  """Return what a line says of two ways."""
  is_same = np.all(one.sequences == other.sequences, axis=(1, 2))
  difference = np.abs(one.scores - other.scores)[is_same].max(initial=0)
  return {
      'identical': int(np.sum(is_same)),
      'largest_score_difference': float(difference),
      'inputs_that_differ': np.flatnonzero(~is_same).tolist(),
  }


def run(options: argparse.Namespace) -> tuple[str, bool]:
  """Return the line, and whether all hypotheses are the same."""
  case = cases.read(options)
  decoder, batches, search = beam_search.prepare(options, case, options.batch)
  count = len(case.inputs)
  ways = {'t5x': t5xs(case, options)}
  own_ways = whole_batches.ways(decoder, search)
  for name, way in zip(('plain', 'speculative'), own_ways):
    ways[name] = own(way, search.beams, batches, count)
  compared = {
      f'{x}_{y}': compare(ways[x], ways[y])
      for x, y in itertools.combinations(ways, 2)
  }
  line = running.line(
      'beam_exactness',
      num_inputs=count,
      target_params=decoder.target.num_params,
      batch=options.batch,
      beams=options.beams,
      draft_beams=options.draft_beams,
      gamma=options.gamma,
      versions={'t5x': t5x_sampler.version()},
      **compared,
  )
  return line, not any(each['inputs_that_differ'] for each in compared.values())


def main(given: Sequence[str] | None = None) -> int:
  options = parse(given)
  line, is_exact = run(options)
  running.write([line], options.output)
  return int(not is_exact)


if __name__ == '__main__':
  running.run(main)
