# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seconds of a decoder alone, plain and speculative, beside other systems.

  python -m benchmarks.decoder_only --folder=<folder> [--gamma=5]

The target has GPT-2 small's shape, the draft a twentieth of its parameters.
Both have random weights, which are kept in the folder as Hugging Face's
checkpoints, and all systems read them from there. Prompts are random, outputs
have one length, all is in float32 and greedy. For the rest see
`benchmarks.throughput`. The ways:

  plain_whole            this package's plain decoding
  speculative_whole      its speculative decoding, with simulated acceptance
  transformers           Hugging Face's `generate`
  transformers_assisted  the same with the draft as the assistant. Where a coin
                         of probability alpha says so, its next token is the
                         target's: acceptance as simulated by this package
  ctranslate2            CTranslate2's greedy search

Beside what `throughput` prints, a line has what the parts of this package's
ways add up to: see `bound_speedup` and `loop_efficiency` in the run record.
Outputs of simulated acceptance are not the target's.
"""

import argparse
from collections.abc import Iterator, Sequence
import functools
import os
import pathlib
import sys
from typing import Any

import numpy as np

from benchmarks import other_systems
from benchmarks import running
from benchmarks import throughput
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.speculation import simulated_acceptance

SHAPES = {
    'target': {'n_embd': 768, 'n_layer': 12, 'n_head': 12},
    'draft': {'n_embd': 112, 'n_layer': 3, 'n_head': 7},
}
_VOCAB_SIZE = 50257
_END = _VOCAB_SIZE - 1
_PARTS = (
    'speedup',
    'bound_speedup',
    'loop_efficiency',
    'loop_efficiency_ci95',
    't1_ms',
    't_verify_ms',
    't_draft_ms',
    'c',
    'floor_ms',
    'floor_ratio',
)


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('decoder_only', __doc__)
  parser.add_argument('--folder', type=pathlib.Path, required=True)
  parser.add_argument(
      '--batches', type=running.several(running.positive), default=(1,)
  )
  parser.add_argument('--alpha', type=float, default=0.75)
  running.add_counts(parser, gamma=5, inputs=8, length=64, repeats=7)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(given)


def prompts(options: argparse.Namespace) -> np.ndarray:
  """Return the prompts, [inputs, length] int32."""
  rng = np.random.default_rng(0)
  return rng.integers(0, _END, (options.inputs, options.length), np.int32)


def make_checkpoints(folder: pathlib.Path) -> None:
  """Write both models, where they are not there yet."""
  import torch
  import transformers

  for seed, (name, shape) in enumerate(SHAPES.items()):
    if (folder / name / 'config.json').exists():
      continue
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    # Its logits are 0, and the largest of many random ones is positive: no
    # system ends before the limit, at no cost.
    with torch.no_grad():
      model.transformer.wte.weight[_END] = 0
    model.save_pretrained(folder / name)


def own_decoder(
    options: argparse.Namespace, batch: int
) -> tuple[token_decoder.TokenDecoder, list[input_batch.InputBatch]]:
  """Return this package's decoder, and the batches to decode."""
  target, draft = (
      models_lib.load_model(options.folder / name) for name in SHAPES
  )
  decoder = token_decoder.TokenDecoder(
      target,
      draft,
      gamma=options.gamma,
      max_tokens=options.length,
      inputs_length=options.length,
      may_end=False,
  )
  settings = request_lib.Settings(
      max_tokens=options.length,
      rule=simulated_acceptance.make_rule(options.alpha),
  )
  requests = [
      settings.request(ids.tolist(), index)
      for index, ids in enumerate(prompts(options))
  ]
  batches = input_batch.whole_batches(
      requests, settings, size=batch, inputs_length=options.length
  )
  return decoder, list(batches)


def own_ways(
    options: argparse.Namespace, batch: int
) -> dict[str, throughput.Way]:
  """Return the ways of this package."""
  decoder, batches = own_decoder(options, batch)

  def decode(way) -> throughput.Turn:
    rows = np.concatenate([np.asarray(way(x).sequences) for x in batches])
    return throughput.Turn(list(map(tuple, rows[: options.inputs].tolist())))

  plain, speculative = whole_batches.ways(decoder)
  return {
      throughput.REFERENCE: functools.partial(decode, plain),
      'speculative_whole': functools.partial(decode, speculative),
  }


def reckon(given: Sequence[str], batch: int) -> dict[str, Any]:
  """Return the times of the parts, and what they add up to."""
  options = parse(given)
  decoder, batches = own_decoder(options, batch)
  settings = provenance.new_record(
      'walltime', repeats=3, rounds=walltimes.ROUNDS, gamma=options.gamma
  )
  programs = part_programs.PartPrograms(decoder)
  record, *_ = walltimes.measure(programs, batches, settings, 'parts')
  return {name: getattr(record, name) for name in _PARTS}


def hugging_face_ways(
    options: argparse.Namespace, batch: int
) -> dict[str, throughput.Way]:
  """Return the ways of transformers."""
  import torch
  import transformers

  torch.set_num_threads(len(os.sched_getaffinity(0)))
  load = lambda kind, name: kind.from_pretrained(options.folder / name).eval()
  target = load(transformers.GPT2LMHeadModel, 'target')
  ids = torch.tensor(prompts(options), dtype=torch.int64)

  def decode(size: int = batch, **arguments) -> throughput.Turn:
    found = []
    for number in range(0, options.inputs, size):
      part = ids[number : number + size]
      outputs = target.generate(
          part,
          attention_mask=torch.ones_like(part),
          do_sample=False,
          max_new_tokens=options.length,
          pad_token_id=_END,
          **arguments,
      )
      found += outputs[:, options.length :].tolist()
    return throughput.Turn(list(map(tuple, found)))

  ways = {'transformers': decode}
  if batch == 1:  # more are refused by it
    expected = np.array(decode().tokens)
    assistant = other_systems.as_assistant(
        load(_coin_assistant(options), 'draft'), options.gamma
    )
    assistant.known = {
        tuple(prompt): row.tolist()
        for prompt, row in zip(ids.tolist(), expected, strict=True)
    }
    ways['transformers_assisted'] = functools.partial(
        decode, assistant_model=assistant
    )
  return ways


def _coin_assistant(options: argparse.Namespace):
  """Return the class of an assistant with acceptance as simulated.

  It runs in full, and then a coin per position decides whether its next token
  is the target's. Each position is drafted once until it is rejected, so that
  acceptance is independent as in this package's simulation.
  """
  import torch
  import transformers

  rng = np.random.default_rng(0)

  class Assistant(transformers.GPT2LMHeadModel):
    known: dict[tuple[int, ...], list[int]]

    def generate(self, input_ids=None, **arguments):
      prompt = tuple(input_ids[0, : options.length].tolist())
      self.outputs = self.known[prompt]
      return super().generate(input_ids, **arguments)

    def forward(self, *args, cache_position=None, **arguments):
      found = super().forward(
          *args, cache_position=cache_position, **arguments
      )
      index = int(cache_position[-1]) + 1 - options.length
      if index < len(self.outputs):
        token = self.outputs[index]
        chosen = found.logits[0, -1]
        if rng.random() < options.alpha:
          chosen[token] = torch.inf
        else:  # else the draft could hit by itself
          chosen[token] = -torch.inf
      return found

  return Assistant


def ctranslate2_ways(
    options: argparse.Namespace, batch: int
) -> dict[str, throughput.Way]:
  """Return CTranslate2's own way."""
  import ctranslate2

  folder = options.folder / 'ctranslate2'
  if not (folder / 'model.bin').exists():
    # In another process: torch's threads would take part of the cores.
    with running.process() as other:
      other.submit(_convert, options.folder / 'target', folder).result()
  generator = ctranslate2.Generator(
      str(folder), **other_systems.ctranslate2_options()
  )
  inputs = [list(map(str, row)) for row in prompts(options).tolist()]

  def decode() -> throughput.Turn:
    found = generator.generate_batch(
        inputs,
        max_batch_size=batch,
        max_length=options.length,
        sampling_topk=1,
        include_prompt_in_result=False,
    )
    ids = (each.sequences_ids[0] for each in found)
    return throughput.Turn([tuple(x[: options.length]) for x in ids])

  return {'ctranslate2': decode}


def _convert(source: pathlib.Path, folder: pathlib.Path) -> None:
  import transformers

  model = transformers.GPT2LMHeadModel.from_pretrained(source)
  other_systems.convert('GPT2Loader', model, _END, folder)


SYSTEMS = {
    'speculative_t5x': own_ways,
    'transformers': hugging_face_ways,
    'ctranslate2': ctranslate2_ways,
}


def load(name: str, batch: int, given: Sequence[str]) -> list[str]:
  """Load a system into this process; see `throughput.load`."""
  return throughput.hold(SYSTEMS[name](parse(given), batch))


def lines(
    options: argparse.Namespace, given: Sequence[str]
) -> Iterator[str]:
  """Yield the record of each batch size."""
  for batch in options.batches:
    with running.process() as process:
      parts = process.submit(reckon, given, batch).result()
    yield from throughput.lines(
        'decoder_only',
        load,
        list(SYSTEMS),
        argparse.Namespace(**{**vars(options), 'batches': (batch,)}),
        given,
        length=options.length,
        alpha=options.alpha,
        parts=parts,
    )


def main(given: list[str] | None = None) -> None:
  given = sys.argv[1:] if given is None else given
  options = parse(given)
  options.folder.mkdir(parents=True, exist_ok=True)
  with running.process() as process:
    process.submit(make_checkpoints, options.folder).result()
  running.write(lines(options, given), options.output)


if __name__ == '__main__':
  running.run(main)
