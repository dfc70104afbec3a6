# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding against T5X's own sampler, both in T5X's eval job.

  python -m benchmarks.inside_t5x --multi30k=<folder> --target=<checkpoint> \
    --draft=<checkpoint>

Three ways decode the same inputs greedily: T5X's `temperature_sample` and this
package's `speculative_sample`, each by the function that T5X's eval and infer
jobs decode a data set with (`t5x.utils.get_infer_fn`), and this package's own
decoder. They take turns, round by round, in a random order. Prints a line of
JSON: the ratios of their times with 95 percent intervals over rounds, and how
many outputs differ.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
import functools
import pathlib
import time

import jax
import numpy as np
import seqio
from t5x import decoding
from t5x import partitioning
from t5x import utils
import tensorflow as tf

from benchmarks import running
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x import t5x_guest
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research import t5x_sampler
from speculative_t5x.research.measurement import intervals
from speculative_t5x.tasks import example_ids

T5X, SPECULATIVE, OWN = 't5x', 'speculative_in_t5x', 'speculative'
GREEDY = {'temperature': 0.0, 'topk': 0}

# Decodes some inputs, [inputs, length], and returns outputs [inputs, length].
Decode = Callable[[np.ndarray], np.ndarray]


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('inside_t5x', __doc__)
  for name in ('--multi30k', '--target', '--draft'):
    parser.add_argument(name, type=pathlib.Path, required=True)
  for name, default in (
      ('gamma', 7), ('batch', 1), ('inputs', 1000), ('repeats', 1)
  ):  # fmt: skip
    parser.add_argument(f'--{name}', type=running.positive, default=default)
  parser.add_argument(
      '--turn', type=running.positive, default=50, help='batches per turn'
  )
  parser.add_argument('--output', type=pathlib.Path)
  parser.set_defaults(assistant=None)
  return parser.parse_args(given)


def decode_in_t5x(
    case: cases.Case,
    options: argparse.Namespace,
    decode_fn: Callable,
    num_decodes: int = 1,
) -> Decode:
  """Return a decode function of T5X as T5X's jobs call it."""
  vocabulary = seqio.PassThroughVocabulary(
      case.target.config.vocab_size, eos_id=case.target.config.special_ids.end
  )
  model = t5x_guest.SpeculativeModel(
      module=t5x_sampler.make_module(case.target.config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
      decode_fn=decode_fn,
      drafter=model_drafting.DraftModel(options.draft),
      gamma=options.gamma,
  )
  partitioner = partitioning.PjitPartitioner(
      num_partitions=1,
      logical_axis_rules=partitioning.standard_logical_axis_rules(),
  )
  shape = options.batch, cases.LENGTH
  initializer = utils.TrainStateInitializer(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes=dict.fromkeys(
          ('encoder_input_tokens', 'decoder_input_tokens'), shape
      ),
      partitioner=partitioner,
  )
  restorer = functools.partial(t5x_guest.PairRestorer, model=model)
  path = str(options.target)
  state, _ = utils.create_checkpoint_manager_and_restore(
      initializer,
      partitioner,
      utils.RestoreCheckpointConfig(path, checkpoint_manager_cls=restorer),
      path,
      None,
      use_orbax=True,
  )
  infer = utils.get_infer_fn(
      functools.partial(
          model.predict_batch_with_aux, num_decodes=num_decodes
      ),
      options.batch,
      initializer.train_state_axes,
      partitioner,
  )

  def decode(inputs: np.ndarray) -> np.ndarray:
    features = {
        'encoder_input_tokens': inputs,
        'decoder_input_tokens': np.zeros_like(inputs),
        example_ids.EXAMPLE_ID: np.arange(len(inputs), dtype=np.int32),
    }
    dataset = tf.data.Dataset.from_tensor_slices(features).enumerate()
    found, _ = infer(dataset, state, jax.random.PRNGKey(0))
    return np.stack([tokens for _, tokens in found])

  return decode


def decode_alone(case: cases.Case, options: argparse.Namespace) -> Decode:
  """Return this package's own decoder."""
  target = models_lib.load_model(options.target)
  decoder = token_decoder.TokenDecoder(
      target,
      options.draft,
      gamma=options.gamma,
      max_tokens=cases.LENGTH,
  )
  settings = request_lib.Settings(max_tokens=cases.LENGTH)

  def decode(inputs: np.ndarray) -> np.ndarray:
    requests = [
        settings.request(np.trim_zeros(row, 'b').tolist(), index)
        for index, row in enumerate(inputs)
    ]
    batches = input_batch.whole_batches(
        requests, settings, size=options.batch, inputs_length=cases.LENGTH
    )
    decoded = map(decoder.speculative, batches)
    sequences = jax.device_get([each.sequences for each in decoded])
    return np.concatenate(sequences)[: len(inputs)]

  return decode


def measure(
    ways: Mapping[str, Decode], rounds: Sequence[np.ndarray], repeats: int
) -> dict[str, measuring.Timings]:
  """Time ways of decoding interleaved, after a round that is not timed."""
  for decode in ways.values():
    decode(rounds[0])
  timings = {name: measuring.Timings() for name in ways}
  rng = np.random.default_rng(0)
  for inputs in rounds:
    taken, written = {name: [] for name in ways}, {}
    for _ in range(repeats):
      for name in rng.permutation(list(ways)):
        time.sleep(measuring.PAUSE_S)
        start = time.perf_counter()
        written[name] = ways[name](inputs)
        taken[name].append(time.perf_counter() - start)
    for name, own in timings.items():
      own.seconds.append(taken[name])
      own.written += map(measuring.until_end, written[name])
  return timings


def ratio(
    one: measuring.Timings, other: measuring.Timings
) -> tuple[float, tuple[float, float] | None]:
  """Return the ratio of two ways' times, and its 95 percent interval.

  The time of a round is the median of its repeats.
  """
  times = [np.median(each.seconds, axis=1) for each in (one, other)]
  sums = map(np.sum, times)
  return float(np.divide(*sums)), intervals.ratio_interval(*times)


def run(options: argparse.Namespace) -> str:
  """Return the record as a line of JSON."""
  case = cases.read_multi30k(options)
  decode = lambda function: decode_in_t5x(
      case, options, functools.partial(function, **GREEDY)
  )
  ways = {
      T5X: decode(decoding.temperature_sample),
      SPECULATIVE: decode(t5x_guest.speculative_sample),
      OWN: decode_alone(case, options),
  }
  size = options.turn * options.batch
  # Rounds of one size, so that nothing is compiled on the way.
  count = len(case.inputs) // size * size
  rounds = np.split(case.inputs[:count], count // size)
  timings = measure(ways, rounds, options.repeats)
  speedup, speedup_ci95 = ratio(timings[T5X], timings[SPECULATIVE])
  overhead, overhead_ci95 = ratio(timings[SPECULATIVE], timings[OWN])
  written = [each.written for each in timings.values()]
  return running.line(
      'inside_t5x',
      num_inputs=count,
      batch_size=options.batch,
      gamma=options.gamma,
      repeats=options.repeats,
      rounds=len(rounds),
      versions={'t5x': t5x_sampler.version()},
      walltime_s={
          name: float(np.sum(np.median(each.seconds, axis=1)))
          for name, each in timings.items()
      },
      speedup_over_t5x=speedup,
      speedup_over_t5x_ci95=speedup_ci95,
      time_over_own_decoder=overhead,
      time_over_own_decoder_ci95=overhead_ci95,
      outputs_that_differ=sum(len(set(row)) > 1 for row in zip(*written)),
  )


def main() -> None:
  options = parse()
  running.write([run(options)], options.output)


if __name__ == '__main__':
  running.run(main)
