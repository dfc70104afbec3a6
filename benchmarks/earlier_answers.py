# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures what a store of earlier answers gains, and what it costs.

The embedded translation target answers the first texts of a task, which fills a
store, and then the second ones, at batch 1 and temperature 0, in four ways:

  plain     one token per target call
  searched  likewise, after a search for answers, which are not used
  lookup    drafts are looked up in the input and in the output
  answers   likewise, and in the answers to the nearest inputs of the store

All ways are timed interleaved for each request, from its token ids to those of
the output. The times of `searched` and `answers` include the search; the
encoder runs once, for the search and for decoding. Two tasks are measured:
`paraphrases`, whose second texts state the facts of the first ones in other
words, and `unrelated`, whose second texts have other topics than the first
ones, so that the store has no answer for them and only costs time.

  python -m benchmarks.earlier_answers [--gamma=10] [--only_hints] \\
    [--output=<file>]

Prints a line of JSON. It has for each task the number of answers in the store;
the share of the requests for which an answer was found; and by way, the
milliseconds per request, the speedup over plain decoding with its 95 percent
interval, the tokens per target call, and the number of requests whose output
differs from that of plain decoding (near ties can differ).
"""

import argparse
from collections.abc import Sequence
import pathlib
from typing import Any

import numpy as np

from benchmarks import running
from speculative_t5x import embedded
from speculative_t5x.decoder import answers
from speculative_t5x.decoder import batching
from speculative_t5x.decoder import text_decoder
from speculative_t5x.jobs.command_line import process
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.tasks import paraphrases

_FILL_BATCH = 20
_COUNT = 1  # answers per request
_TASKS = {
    'paraphrases': paraphrases.read_pairs,
    'unrelated': paraphrases.read_unrelated_pairs,
}


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse and check the options."""
  parser = running.parser('earlier_answers', __doc__)
  parser.add_argument('--gamma', type=running.positive, default=10)
  parser.add_argument(
      '--only_hints',
      action='store_true',
      help='look up drafts in answers only, not in the input and the output',
  )
  parser.add_argument(
      '--requests', type=running.positive, help='per task; default: all'
  )
  parser.add_argument('--repeats', type=running.positive, default=5)
  parser.add_argument('--output', type=pathlib.Path, help='file for the line')
  return parser.parse_args(given)


def fill_store(
    decoder: text_decoder.TextDecoder, texts: Sequence[str]
) -> answers.Store:
  """Return a store of the target's own answers."""
  embedder = answers.Embedder(
      decoder.tokens, decoder.vocabulary, decoder.options.inputs_length
  )
  store = answers.Store(embedder)
  for part in batching.parts(texts, _FILL_BATCH):
    store.add(part, decoder.decode_plain(part).best)
  return store


def measure(
    decoder: text_decoder.TextDecoder,
    finder: answers.Finder,
    texts: Sequence[str],
    repeats: int,
    name: str,
) -> dict[str, Any]:
  """Time all ways on the same requests, and return the record of a task."""
  batches = [decoder.make_batch([text])[0] for text in texts]
  tokens = decoder.tokens
  ways = {
      'plain': tokens.plain,
      'searched': lambda batch: tokens.plain(finder(batch)),
      'lookup': tokens.speculative,
      'answers': lambda batch: tokens.speculative(finder(batch)),
  }
  runs = running.time_ways(ways, batches, repeats, name)
  return {
      'requests': len(batches),
      'answers_in_store': len(finder.store),
      'share_with_answer': float(
          np.mean([finder(batch).hints.any() for batch in batches])
      ),
      **{way: describe(run, runs['plain']) for way, run in runs.items()},
  }


def describe(run: interleaved.Run, plain: interleaved.Run) -> dict[str, Any]:
  """Return what the record says about a way."""
  pairs = zip(run.decoded, plain.decoded, strict=True)
  return {
      'ms_per_request': 1e3 * float(np.mean(run.seconds)),
      **running.describe(run, plain),
      'different_outputs': sum(
          not np.array_equal(x.sequences, y.sequences) for x, y in pairs
      ),
  }


def main(given: Sequence[str] | None = None) -> None:
  """Run the benchmark."""
  options = parse_arguments(given)
  process.keep_libtpu_from_searching()
  drafter = lookup_drafting.Lookup(only_hints=options.only_hints)
  pair = embedded.load_decoder()
  decoder = text_decoder.TextDecoder(
      pair.tokens.target,
      drafter,
      pair.vocabulary,
      pair.options,
      gamma=options.gamma,
  )
  measured = {}
  for name, read in _TASKS.items():
    first, second = (
        [text for text, _ in read(split)] for split in paraphrases.SPLITS
    )
    store = fill_store(decoder, first)
    finder = answers.Finder(store, _COUNT)
    measured[name] = measure(
        decoder, finder, second[: options.requests], options.repeats, name
    )
  line = running.line(
      'earlier_answers',
      drafter=decoder.tokens.loaded_drafter.description.name,
      gamma=options.gamma,
      count=_COUNT,
      min_similarity=answers.MIN_SIMILARITY,
      repeats=options.repeats,
      **measured,
  )
  running.write([line], options.output)


if __name__ == '__main__':
  running.run(main)
