# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding of a T5X model by T5X's own sampler and by this package.

Three ways through one `SpeculativeModel`, float32, batch 1, 64 tokens in and at
most 64 out: `t5x.decoding.temperature_sample`, `plain_sample` and
`speculative_sample`. Each is timed whole and from the encoder's output on
(which leaves out the draft's encoder too). The ways take turns input by input;
compilation is left out. They must write the same tokens.

  python -m benchmarks.t5x_decoding --size=base
  python -m benchmarks.t5x_decoding --oracle=<folder of t5x_oracle>

A size has random weights and is decoded without a draft. Needs T5X.
"""

import argparse
from collections.abc import Callable
import dataclasses
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import seqio
from t5x import decoding
from t5x import models
from t5x.examples.t5 import network

from benchmarks import plain_decoding_floor
from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x import loops
from speculative_t5x import run_record
from speculative_t5x import t5x_guest
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding

LENGTH = 64
GAMMA = 4


class Encoded(network.Transformer):
  """T5X's network, whose inputs have been encoded already.

  Attributes:
    encoded: [batch, inputs_length, embed].
  """

  encoded: Any = None

  def encode(self, *args, **kwargs):
    return self.encoded


@dataclasses.dataclass(frozen=True)
class Case:
  """What is decoded, and by what."""

  name: str
  target: t5.T5Config
  draft: t5.T5Config | None
  params: dict[str, Any]  # by role
  inputs: np.ndarray  # [examples, LENGTH] int32


def read_oracle(folder: pathlib.Path) -> Case:
  """The oracle's pair and its inputs."""
  configs, params = {}, {}
  for role in ('target', 'draft'):
    sizes = json.loads((folder / role / 'oracle.json').read_text())['config']
    configs[role] = t5.T5Config(**sizes)
    params[role] = checkpoints.restore_params(
        folder / role / 't5x_orbax', loading.abstract_params(configs[role])
    )
  with np.load(folder / 'target/oracle.npz') as arrays:
    inputs = arrays['encoder_input_tokens']
  return Case('oracle', **configs, params=params, inputs=inputs)


def make_random(size: str) -> Case:
  """A target of random weights, without a draft."""
  config, params = plain_decoding_floor.random_params(size)
  inputs = np.random.default_rng(0).integers(3, 32000, (1, LENGTH))
  return Case(size, config, None, {'target': params}, inputs.astype(np.int32))


def make_model(case: Case, decode_fn: Callable, target=network.Transformer):
  """The T5X model that decodes in one way."""
  sizes = [field.name for field in dataclasses.fields(network.T5Config)]

  def make(config: t5.T5Config, kind) -> network.Transformer:
    known = {n: getattr(config, n) for n in sizes if hasattr(config, n)}
    return kind(network.T5Config(**known))

  vocabulary = seqio.PassThroughVocabulary(case.target.vocab_size, eos_id=1)
  common = dict(
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=functools.partial(decode_fn, temperature=0.0, topk=0),
  )
  if decode_fn is decoding.temperature_sample:
    module = make(case.target, target)
    return models.EncoderDecoderModel(module=module, **common)
  module = t5x_guest.Pair(
      make(case.target, network.Transformer),
      make(case.draft or case.target, network.Transformer),
  )
  return t5x_guest.SpeculativeModel(module=module, gamma=GAMMA, **common)


def features(tokens: jax.Array) -> dict[str, jax.Array]:
  """What T5X hands to a model for one input."""
  return {
      'encoder_input_tokens': tokens[None],
      'decoder_input_tokens': jnp.zeros((1, LENGTH), jnp.int32),
      'example_id': jnp.zeros((1,), jnp.int32),
  }


def whole(case: Case, decode_fn: Callable) -> Callable:
  """`input -> sequence`, encoders included."""
  model = make_model(case, decode_fn)
  is_t5xs = decode_fn is decoding.temperature_sample
  params = case.params['target'] if is_t5xs else case.params
  predict = jax.jit(model.predict_batch)
  return lambda tokens: predict(params, features(tokens))


def from_encoded(case: Case, decode_fn: Callable) -> Callable:
  """`input -> function without arguments`, which decodes what is encoded."""
  if decode_fn is decoding.temperature_sample:
    return _t5x_from_encoded(case)
  config, params = preparation.prepare(case.target, case.params['target'])
  encode = jax.jit(functools.partial(t5_decoding.encode, config))
  decoder = t5_decoding.block_decoder(config)
  options = dict(
      example_ids=jnp.zeros((1,), jnp.int32), length=LENGTH, eos_id=1,
      temperature=0.0, topk=0,
  )  # fmt: skip

  def decode(params, draft, tokens, encoded, context, draft_context):
    target = loops.Target(decoder, params, tokens, encoded, context)
    if decode_fn is t5x_guest.plain_sample:
      return decode_fn(target, **options)[0]
    guesser = _guesser(case, draft, draft_context)
    return decode_fn(target, guesser, **options)[0]

  compiled = jax.jit(decode)

  def start(tokens):
    draft = draft_context = None
    if decode_fn is t5x_guest.speculative_sample:
      draft_config, draft = preparation.prepare(
          case.draft, case.params['draft']
      )
      encode_draft = functools.partial(t5_decoding.encode, draft_config)
      draft_context = jax.jit(encode_draft)(draft, tokens[None])[1]
    encoded, context = encode(params, tokens[None])
    arguments = params, draft, tokens[None], encoded, context, draft_context
    return lambda: compiled(*arguments)

  return start


def _guesser(case: Case, params, context) -> loops.Guesser:
  model = make_model(case, t5x_guest.speculative_sample)
  guesser = model._guesser(params)
  drafter = dataclasses.replace(
      guesser.drafter, encode=lambda params, tokens: context
  )
  return loops.Guesser(drafter, params)


def _t5x_from_encoded(case: Case) -> Callable:
  params = case.params['target']
  encode = jax.jit(functools.partial(t5_decoding.encode, case.target))

  def decode(params, batch, encoded):
    model = make_model(
        case,
        decoding.temperature_sample,
        functools.partial(Encoded, encoded=encoded),
    )
    return model.predict_batch(params, batch)

  compiled = jax.jit(decode)

  def start(tokens):
    encoded, _ = encode(params, tokens[None])
    batch = features(tokens)
    return lambda: compiled(params, batch, encoded)

  return start


def measure(ways: dict[str, Callable], repeats: int) -> dict[str, np.ndarray]:
  """Seconds [repeats] of each way, which take turns."""
  outputs = {n: np.asarray(jax.block_until_ready(w())) for n, w in ways.items()}
  first = next(iter(outputs.values())).reshape(-1)
  for name, output in outputs.items():
    if not np.array_equal(output.reshape(-1), first):
      raise SystemExit(f'{name} wrote other tokens.')
  seconds = {name: np.zeros(repeats) for name in ways}
  for repeat in range(repeats):
    names = list(ways) if repeat % 2 == 0 else list(reversed(ways))
    for name in names:
      seconds[name][repeat] = plain_decoding_floor.seconds(ways[name])
  return seconds


def summarize(times: dict[str, np.ndarray]) -> dict[str, Any]:
  """Totals, and what T5X's way takes over each of the others.

  The intervals are a paired bootstrap over inputs and repeats.
  """
  t5x = times['temperature_sample']
  rng = np.random.default_rng(0)
  chosen = rng.integers(0, t5x.size, (10_000, t5x.size))
  summary = {'walltime_s': {name: float(x.sum()) for name, x in times.items()}}
  for name, own in times.items():
    if own is t5x:
      continue
    ratios = t5x[chosen].sum(1) / own[chosen].sum(1)
    summary[f't5x_over_{name}'] = {
        'ratio': float(t5x.sum() / own.sum()),
        'ci95': [float(x) for x in np.quantile(ratios, (0.025, 0.975))],
    }
  return summary


def run(case: Case, repeats: int) -> dict[str, Any]:
  """Times all ways over all inputs, whole and from the encoder on."""
  functions = [decoding.temperature_sample, t5x_guest.plain_sample]
  if case.draft is not None:
    functions.append(t5x_guest.speculative_sample)
  times = {'whole': [], 'from_encoded': []}
  ways = {name: {} for name in times}
  compiled = {f: (whole(case, f), from_encoded(case, f)) for f in functions}
  for tokens in jnp.asarray(case.inputs):
    for f, (decode, start) in compiled.items():
      ways['whole'][f.__name__] = functools.partial(decode, tokens)
      ways['from_encoded'][f.__name__] = start(tokens)
    for name in ways:
      times[name].append(measure(ways[name], repeats))
  return {
      name: summarize({
          f.__name__: np.concatenate([each[f.__name__] for each in parts])
          for f in functions
      })
      for name, parts in times.items()
  }


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--size', choices=plain_decoding_floor.SIZES)
  parser.add_argument('--oracle', type=pathlib.Path)
  parser.add_argument('--repeats', type=int, default=5)
  arguments = parser.parse_args()
  if (arguments.size is None) == (arguments.oracle is None):
    parser.error('give either --size or --oracle')
  if arguments.oracle:
    case = read_oracle(arguments.oracle)
  else:
    case = make_random(arguments.size)
  print(
      json.dumps(
          {
              'benchmark': 't5x_decoding',
              'case': case.name,
              'num_examples': len(case.inputs),
              'dtype': 'float32',
              'batch_size': 1,
              'gamma': GAMMA if case.draft else None,
              'temperature': 0.0,
              'inputs_length': LENGTH,
              'targets_length': LENGTH,
              'repeats': arguments.repeats,
              **run(case, arguments.repeats),
              'host': run_record.describe_host(),
              'device': run_record.describe_device(),
          }
      )
  )


if __name__ == '__main__':
  main()
