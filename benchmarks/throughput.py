# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of many inputs, by batch size, beside other systems.

  python -m benchmarks.throughput --multi30k=<folder> --target=<checkpoint> \\
    --draft=<checkpoint> [--batches=1,8,32] [--output=<file>]

All systems decode the same inputs greedily with the same weights in float32,
from token ids to token ids. Each is in a process of its own. They take turns in
a random order per repeat, after a turn that is not timed, in which programs are
compiled. The ways:

  plain, speculative              this package's engine, which refills rows
  auto                            the same with the policy ByLoad
  plain_whole, speculative_whole  the same without refill: a batch is decoded to
                                  its last row before the next one begins
  t5x, speculative_in_t5x         T5X's own `temperature_sample`, and this
                                  package's `speculative_sample`, by the
                                  function that T5X's eval and infer jobs decode
                                  a data set with
  transformers                    Hugging Face's `generate`, and at batch 1, if
  transformers_assisted           the draft has an encoder, with the draft as
                                  the assistant
  ctranslate2                     CTranslate2's greedy search of all inputs, in
                                  batches that it forms itself

A way may use all cores. Prints a line of JSON per batch size. Per way:
seconds_of_turns, and their median as seconds; tokens_per_s; the ratio of its
rate to that of plain_whole, with its 95 percent interval over repeats;
idle_share, the share of row-steps in which a row had ended (null where it is
not known); and the inputs with other tokens than plain_whole (near ties can
differ). Systems that are not installed are listed. For their versions see
`benchmarks.other_systems`, and requirements-t5x.txt for T5X.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import os
import sys
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import cases
from benchmarks import other_systems
from benchmarks import running
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.policies import by_load
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import intervals
from speculative_t5x.rules import coupled
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification

REFERENCE = 'plain_whole'

# Threads spin for some milliseconds after their work. The pause lets them go to
# sleep, so that those of one system do not occupy a core while the next one is
# timed.
PAUSE_S = 0.02


class Turn(NamedTuple):
  """What a way made of all inputs.

  Attributes:
    tokens: Output tokens of each input, without the end of sequence.
    idle_share: See the head of this file.
    counts: What else the record says.
  """

  tokens: list[cases.Tokens]
  idle_share: float | None = None
  counts: Mapping[str, int] | None = None


# Decodes all inputs of a case.
Way = Callable[[], Turn]


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('throughput', __doc__)
  cases.add_options(parser)
  parser.add_argument(
      '--batches',
      type=running.several(running.positive),
      default=(1, 2, 4, 8, 16, 32, 64),
  )
  running.add_counts(parser, gamma=7, inputs=256, repeats=7)
  return parser.parse_args(given)


def own_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, Way]:
  """Return the ways of this package."""
  target = models_lib.load_model(options.target)
  make = functools.partial(
      token_decoder.TokenDecoder,
      target,
      options.draft,
      gamma=options.gamma,
      max_tokens=cases.LENGTH,
      inputs_length=cases.LENGTH,
  )
  decoder = make()
  settings = request_lib.Settings(max_tokens=cases.LENGTH)
  requests = [
      settings.request(np.trim_zeros(row, 'b').tolist(), index)
      for index, row in enumerate(case.inputs)
  ]
  whole = functools.partial(_whole, requests, settings, batch)
  plain, speculative = whole_batches.ways(decoder)
  refilled = functools.partial(_refilled, requests, batch)
  return {
      'plain': refilled(decoder.alone),
      'speculative': refilled(decoder),
      'auto': refilled(make(policy=by_load.ByLoad()), coupled.Coupled()),
      REFERENCE: whole(plain),
      'speculative_whole': whole(speculative),
  }


def _refilled(
    requests: Sequence[request_lib.Request],
    rows: int,
    decoder: token_decoder.TokenDecoder,
    rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE,
) -> Way:
  engine = engine_lib.Engine(decoder, rows, rule=rule)

  def decode() -> Turn:
    engine.counters = counts.Counts()
    results = list(engine.stream(requests))
    tokens = [tuple(result.tokens[-1]) for result in results]
    return Turn(tokens, engine.counters.idle_share)

  return decode


def _whole(
    requests: Sequence[request_lib.Request],
    settings: request_lib.Settings,
    size: int,
    decode_batch: whole_batches.Way,
) -> Way:
  batches = list(
      input_batch.whole_batches(
          requests, settings, size=size, inputs_length=cases.LENGTH
      )
  )

  def decode() -> Turn:
    found = [jax.device_get(decode_batch(batch)) for batch in batches]
    rows = np.concatenate([each.sequences for each in found])[: len(requests)]
    tokens = list(map(cases.until_end, rows))
    num_steps = sum(int(each.work.num_steps) for each in found)
    num_calls = sum(int(np.sum(each.num_calls)) for each in found)
    return Turn(tokens, 1 - num_calls / (num_steps * size))

  return decode


def t5x_ways(
    options: argparse.Namespace, case: cases.Case, batch: int
) -> dict[str, Way]:
  """Return T5X's own way, and this package's in T5X."""
  from t5x import decoding

  from benchmarks import inside_t5x
  from speculative_t5x import t5x_guest

  samplers = {
      't5x': decoding.temperature_sample,
      'speculative_in_t5x': t5x_guest.speculative_sample,
  }
  decodes = {
      name: inside_t5x.decode_in_t5x(
          case,
          options,
          batch,
          functools.partial(sampler, temperature=0.0, topk=0),
      )
      for name, sampler in samplers.items()
  }
  return {
      name: lambda decode=decode: Turn(decode())
      for name, decode in decodes.items()
  }


def transformers_ways(
    options: argparse.Namespace, case: cases.Case, batch: int, beams: int = 1
) -> dict[str, Way]:
  """Return the ways of transformers."""
  import torch

  torch.set_num_threads(len(os.sched_getaffinity(0)))
  target = _generator(case.target)
  ids = torch.tensor(case.inputs, dtype=torch.int64)

  def decode(**arguments) -> Turn:
    found = []
    for part in ids.split(batch):
      mask = (part > 0).long()
      length = int(mask.sum(dim=1).max())
      with torch.inference_mode():
        outputs = target.generate(
            input_ids=part[:, :length],
            attention_mask=mask[:, :length],
            do_sample=False,
            num_beams=beams,
            max_new_tokens=cases.LENGTH,
            **arguments,
        )
      found += outputs[:, 1:].tolist()  # without the start
    return Turn(list(map(cases.until_end, found)))

  ways = {'transformers': decode}
  if batch == beams == 1 and case.assistant is not None:
    assistant = other_systems.as_assistant(
        _generator(case.assistant), options.gamma
    )
    ways['transformers_assisted'] = functools.partial(
        decode, assistant_model=assistant
    )
  return ways


def _generator(network: cases.Network):
  """Return a network with as many layers in the cache as its decoder has."""
  model = other_systems.in_transformers(network)
  model.config.num_layers = model.config.num_decoder_layers
  return model


def ctranslate2_ways(
    options: argparse.Namespace, case: cases.Case, batch: int, beams: int = 1
) -> dict[str, Way]:
  """Return CTranslate2's own way."""
  translator = other_systems.in_ctranslate2(case.target)
  inputs = [[str(i) for i in row if i] for row in case.inputs]

  def decode() -> Turn:
    found = translator.translate_batch(
        inputs,
        beam_size=beams,
        max_batch_size=batch,
        max_decoding_length=cases.LENGTH,
    )
    return Turn([cases.until_end(each.hypotheses[0]) for each in found])

  return {'ctranslate2': decode}


SYSTEMS = {
    'speculative_t5x': own_ways,
    't5x': t5x_ways,
    'transformers': transformers_ways,
    'ctranslate2': ctranslate2_ways,
}
_ways: dict[str, Way] = {}  # of this process


def load(name: str, batch: int, given: Sequence[str]) -> list[str]:
  """Load a system into this process; return the names of its ways.

  Raises:
    ModuleNotFoundError: if the system is not installed.
  """
  options = parse(given)
  case = cases.read(options)
  return hold(SYSTEMS[name](options, case, batch))


def hold(ways: Mapping[str, Way]) -> list[str]:
  """Keep ways for the turns of this process; return their names."""
  _ways.update(ways)
  return list(_ways)


def take_turn(way: str) -> tuple[float, Turn]:
  """Decode all inputs, and return the seconds that it took."""
  start = time.perf_counter()
  turn = _ways[way]()
  return time.perf_counter() - start, turn


def measure(
    load: Callable[[str, int, Sequence[str]], list[str]],
    systems: Sequence[str],
    batch: int,
    options: argparse.Namespace,
    given: Sequence[str],
) -> dict[str, Any]:
  """Return the record of one batch size, of systems that `load` loads."""
  missing, found = {}, {}
  with contextlib.ExitStack() as stack:
    for name in systems:
      process = stack.enter_context(running.process())
      try:
        ways = process.submit(load, name, batch, given).result()
      except ModuleNotFoundError as error:
        missing[name] = str(error)
        continue
      found |= {
          way: lambda way=way, process=process: process.submit(
              take_turn, way
          ).result()
          for way in ways
      }
    turns = {way: turn()[1] for way, turn in found.items()}  # compile
    seconds = {way: [] for way in found}
    rng = np.random.default_rng(0)
    for repeat in range(options.repeats):
      for way in rng.permutation(list(found)):
        time.sleep(PAUSE_S)
        seconds[way].append(found[way]()[0])
      print(f'batch {batch}: {repeat + 1} repeats', file=sys.stderr)
  return {
      'batch': batch,
      'not_installed': missing,
      **{way: describe(way, turns, seconds) for way in found},
  }


def describe(
    way: str,
    turns: Mapping[str, Turn],
    seconds: Mapping[str, Sequence[float]],
) -> dict[str, Any]:
  """Return what the record says about a way."""
  own, reference = turns[way], turns[REFERENCE]
  num_tokens = sum(map(len, own.tokens)) + len(own.tokens)  # with their ends
  median = float(np.median(seconds[way]))
  return {
      'seconds': median,
      'seconds_of_turns': list(seconds[way]),
      'tokens_per_s': num_tokens / median,
      'over_plain_whole': float(
          np.median(np.divide(seconds[REFERENCE], seconds[way]))
      ),
      'over_plain_whole_ci95': intervals.ratio_interval(
          seconds[REFERENCE], seconds[way]
      ),
      'idle_share': own.idle_share,
      **(own.counts or {}),
      'different_outputs': sum(
          x != y for x, y in zip(own.tokens, reference.tokens, strict=True)
      ),
  }


def lines(
    name: str,
    load: Callable[[str, int, Sequence[str]], list[str]],
    systems: Sequence[str],
    options: argparse.Namespace,
    given: Sequence[str],
    **settings: int,
) -> Iterator[str]:
  """Yield the record of each batch size, as a line of JSON; see `measure`."""
  for batch in options.batches:
    yield running.line(
        name,
        num_inputs=options.inputs,
        gamma=options.gamma,
        dtype='float32',
        cores=len(os.sched_getaffinity(0)),
        repeats=options.repeats,
        **settings,
        **measure(load, systems, batch, options, given),
    )


def main(given: list[str] | None = None) -> None:
  given = sys.argv[1:] if given is None else given
  options = parse(given)
  records = lines('throughput', load, list(SYSTEMS), options, given)
  running.write(records, options.output)


if __name__ == '__main__':
  running.run(main)
