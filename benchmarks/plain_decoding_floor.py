# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far plain decoding is from the time of reading its weights once a token.

Random weights of a T5 1.1 size, 64 tokens in and 64 out, batch 1. The decode
loop is timed without the encoder. Beside it, in the same process and in turns
with it, as many bytes as a step must read are read in three ways: a sum, and a
matrix-vector product from either side. The floor is the fastest of the three. A
step must read the decoder's kernels but for those that make keys and values of
the inputs, and the output head.

  python benchmarks/plain_decoding_floor.py [--size=base] [--repeats=15]
"""

import argparse
import functools
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import loading
from speculative_t5x import run_record
from speculative_t5x import sampling
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding

LENGTH = 64
SIZES = {
    'small': dict(
        emb_dim=512, num_heads=6, num_encoder_layers=8, num_decoder_layers=8,
        mlp_dim=1024,
    ),
    'base': dict(
        emb_dim=768, num_heads=12, num_encoder_layers=12,
        num_decoder_layers=12, mlp_dim=2048,
    ),
    'large': dict(
        emb_dim=1024, num_heads=16, num_encoder_layers=24,
        num_decoder_layers=24, mlp_dim=2816,
    ),
}  # fmt: skip


def random_params(size: str) -> tuple[t5.T5Config, seam.Params]:
  """Sizes of a model, and random float32 weights under T5X's names."""
  config = t5.T5Config(vocab_size=32128, **SIZES[size])
  leaves, tree = jax.tree.flatten(loading.abstract_params(config))
  keys = jax.random.split(jax.random.key(0), len(leaves))
  scale = lambda leaf: 1.0 if leaf.ndim == 1 else leaf.shape[0] ** -0.5
  values = [
      jax.random.normal(key, leaf.shape) * scale(leaf)
      for key, leaf in zip(keys, leaves)
  ]
  return config, jax.tree.unflatten(tree, values)


def decode_loop(model: loading.Model):
  """A compiled plain decode loop without the encoder, and its arguments."""
  decoder = t5_decoding.block_decoder(model.config)
  greedy = sampling.make_sampling(temperature=0.0)

  def decode(params, context):
    keys = speculation.row_keys(jnp.int32(0), jnp.zeros((1,), jnp.int32))
    rows = speculation.Rows(keys, jnp.full((1,), LENGTH, jnp.int32))
    state = speculation.init_state(
        decoder, context, rows, length=LENGTH, gamma=0
    )
    setup = speculation.Plain(decoder, params, context, greedy)
    step = functools.partial(speculation.plain_step, setup)
    return speculation.run(step, rows, state, 1)[0].num_tokens

  tokens = jax.random.randint(jax.random.key(1), (1, LENGTH), 3, 32000)
  encode = jax.jit(functools.partial(t5_decoding.encode, model.config))
  _, context = encode(model.params, tokens)
  return jax.jit(decode), (model.params, context)


def num_bytes_read(model: loading.Model) -> int:
  """Bytes of weights that one decode step cannot do without."""
  decoder = model.params['decoder']
  total = sum(x.nbytes for x in jax.tree.leaves(decoder))
  cross = [
      layer['encoder_decoder_attention'][name]['kernel'].nbytes
      for key, layer in decoder.items()
      if key.startswith('layers_')
      for name in ('key', 'value')
  ]
  return total - sum(cross)


def readers(num_bytes: int) -> dict:
  """Ways to read so many bytes, each a function without arguments."""
  width = 2048
  matrix = jnp.ones((num_bytes // 4 // width, width), jnp.float32)
  rows, columns = (jnp.ones((n,), jnp.float32) for n in matrix.shape)
  add = jax.jit(jnp.sum)
  left = jax.jit(lambda m, v: v @ m)
  right = jax.jit(lambda m, v: m @ v)
  return {
      'sum': lambda: add(matrix),
      'vector_matrix': lambda: left(matrix, rows),
      'matrix_vector': lambda: right(matrix, columns),
  }


def seconds(function) -> float:
  start = time.perf_counter()
  jax.block_until_ready(function())
  return time.perf_counter() - start


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--size', choices=SIZES, default='base')
  parser.add_argument('--repeats', type=int, default=15)
  arguments = parser.parse_args()
  model = loading.make_model(*random_params(arguments.size))
  num_bytes = num_bytes_read(model)
  decode, decode_arguments = decode_loop(model)
  num_tokens = int(decode(*decode_arguments)[0])
  if num_tokens != LENGTH:
    raise SystemExit(f'The random model ended after {num_tokens} tokens.')
  ways = readers(num_bytes)
  for way in ways.values():
    jax.block_until_ready(way())
  steps, reads = [], {name: [] for name in ways}
  for _ in range(arguments.repeats):
    steps.append(seconds(lambda: decode(*decode_arguments)) / LENGTH)
    for name, way in ways.items():
      # As many reads as make a span comparable to the loop's.
      spans = [seconds(way) for _ in range(LENGTH // 8)]
      reads[name].append(float(np.mean(spans)))
  ratios = {
      name: np.array(steps) / np.array(times) for name, times in reads.items()
  }
  fastest = min(reads, key=lambda name: np.median(reads[name]))
  low, median, high = np.quantile(ratios[fastest], (0.25, 0.5, 0.75))
  print(
      json.dumps(
          {
              'benchmark': 'plain_decoding_floor',
              'size': arguments.size,
              'dtype': 'float32',
              'batch_size': 1,
              'inputs_length': LENGTH,
              'tokens': LENGTH,
              'bytes_per_step': num_bytes,
              'step_ms': float(np.median(steps) * 1e3),
              'read_ms': {
                  name: float(np.median(times) * 1e3)
                  for name, times in reads.items()
              },
              'floor': fastest,
              'floor_ratio': float(median),
              'floor_ratio_quartiles': [float(low), float(high)],
              'ratio_to': {
                  name: float(np.median(each)) for name, each in ratios.items()
              },
              'repeats': arguments.repeats,
              'host': run_record.describe_host(),
              'device': run_record.describe_device(),
          }
      )
  )


if __name__ == '__main__':
  main()
