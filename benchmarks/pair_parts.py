# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a pair's speedup is made of: the time of each part, and their bound.

Takes the records of an eval job at batch 1 and times, on this machine, the
parts that its two ways of decoding consist of: both encoders, one target step
on 1 and on gamma + 1 positions, the first and the later steps of a draft. Each
step is timed inside a compiled loop, standardization and drawing included.
The bound is what a loop without any other cost would reach with the record's
own tokens and calls.

  python benchmarks/pair_parts.py --results=runs/demo/results.jsonl \\
      --models=configs/models/bulletins_target.gin \\
      --models=configs/models/bulletins_draft.gin
"""

import argparse
import functools
import json
import time

import gin
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import loading
from speculative_t5x import run_record
from speculative_t5x import sampling
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding

STEPS = 64


class ConstantDrafter:
  """Guesses the same tokens at no cost, so that only verifying is timed."""

  def __init__(self, gamma: int, vocab_size: int):
    self.gamma = gamma
    self._draft = seam.Draft(
        tokens=jnp.full((1, gamma), 5, jnp.int32),
        lengths=jnp.full((1,), gamma, jnp.int32),
        probs=jnp.full((1, gamma, vocab_size), 1 / vocab_size),
        is_point_mass=jnp.zeros((1,), bool),
    )

  def propose(self, params, context, state, target_cache, *unused):
    return self._draft, state, target_cache


def repeated(step):
  """A compiled loop of STEPS steps that carries what the step returns."""
  return jax.jit(lambda carry: lax.fori_loop(0, STEPS, step, carry))


def rewound(state: speculation.State, position: int) -> speculation.State:
  """The state as if so many tokens were committed and the row went on."""
  return state.replace(
      num_tokens=jnp.full_like(state.num_tokens, position),
      has_ended=jnp.zeros_like(state.has_ended),
  )


def parts(target, draft, record, tokens) -> dict:
  """Functions without arguments, each a call of the part to be timed."""
  gamma, length = record['gamma'], record['targets_length']
  rules = sampling.make_sampling(
      record['temperature'], record['topk'], record['topp']
  )
  keys = speculation.row_keys(jnp.int32(0), jnp.zeros((1,), jnp.int32))
  rows = speculation.Rows(keys, jnp.full((1,), length, jnp.int32))
  position = length // 4  # about the middle of a typical output
  encode = lambda model: jax.jit(
      functools.partial(t5_decoding.encode, model.config)
  )
  encoders = {'target': encode(target), 'draft': encode(draft)}
  _, context = encoders['target'](target.params, tokens)
  _, draft_context = encoders['draft'](draft.params, tokens)
  decoder = t5_decoding.block_decoder(target.config)
  state = functools.partial(
      speculation.init_state, decoder, context, rows, length=length, gamma=gamma
  )
  plain = speculation.Plain(decoder, target.params, context, rules)
  constant = ConstantDrafter(gamma, target.config.vocab_size)
  verifying = speculation.Speculation(
      decoder, target.params, context, constant, None, None, rules, rules
  )

  def plain_step(i, state):
    uniforms = speculation.call_uniforms(rows, state.num_calls, 1)
    state = rewound(state, position)
    return speculation.plain_step(plain, rows, state, uniforms)

  def verify_step(i, state):
    uniforms = speculation.call_uniforms(rows, state.num_calls, 2 * gamma + 1)
    state = rewound(state, position)
    return speculation.speculative_step(verifying, rows, state, uniforms)

  def proposing(gamma):
    drafter = draft_model.DraftModel(
        t5_decoding.block_decoder(draft.config),
        lambda params, tokens: draft_context,
        gamma,
        target.config.vocab_size,
    )
    slots = speculation.cache_slots(length, gamma)
    _, draft_state = drafter.init(draft.params, tokens, None, 1, slots)
    num_tokens = jnp.full((1,), position, jnp.int32)

    def step(i, carry):
      draft_state, sequences = carry
      draft_state = draft_state.replace(num_fed=num_tokens - 1)
      uniforms = jnp.full((1, gamma), 0.5)
      guesses, draft_state, _ = drafter.propose(
          draft.params, draft_context, draft_state, None, sequences,
          num_tokens, uniforms, rules,
      )  # fmt: skip
      # The next draft must depend on this one, or it could be hoisted.
      return draft_state, sequences.at[:, :gamma].set(guesses.tokens)

    carry = draft_state, jnp.zeros((1, length), jnp.int32)
    return functools.partial(repeated(step), carry)

  return {
      'encoder_target': lambda: encoders['target'](target.params, tokens),
      'encoder_draft': lambda: encoders['draft'](draft.params, tokens),
      't1': functools.partial(repeated(plain_step), state()),
      't_verify': functools.partial(repeated(verify_step), state()),
      't_draft2': proposing(1),
      'draft': proposing(gamma),
  }


def measure(functions: dict, repeats: int) -> dict[str, float]:
  """Median seconds of each part, all taken in turns."""
  for function in functions.values():
    jax.block_until_ready(function())
  seconds = {name: [] for name in functions}
  for _ in range(repeats):
    for name, function in functions.items():
      start = time.perf_counter()
      jax.block_until_ready(function())
      seconds[name].append(time.perf_counter() - start)
  medians = {name: float(np.median(times)) for name, times in seconds.items()}
  return {
      name: value if name.startswith('encoder') else value / STEPS
      for name, value in medians.items()
  }


def explain(record, times) -> dict:
  """The parts under the run record's names, and the bound they give."""
  gamma, examples = record['gamma'], record['num_examples']
  run = record['speculative']
  encoders = {
      name: times[f'encoder_{name}'] * examples for name in ('target', 'draft')
  }
  t_draft = (times['draft'] - times['t_draft2']) / max(gamma - 1, 1)
  plain = encoders['target'] + record['baseline']['tokens'] * times['t1']
  call = times['draft'] + times['t_verify']
  bound = plain / (sum(encoders.values()) + run['target_calls'] * call)
  return {
      'task': record['task'],
      'temperature': record['temperature'],
      'gamma': gamma,
      'tokens_per_target_call': record['tokens_per_target_call'],
      'encoder_s': encoders,
      't1_ms': times['t1'] * 1e3,
      't_verify_ms': times['t_verify'] * 1e3,
      't_draft_ms': t_draft * 1e3,
      't_draft2_ms': times['t_draft2'] * 1e3,
      'c': t_draft / times['t1'],
      'verify_cost_ratio': times['t_verify'] / times['t1'],
      'bound_speedup': bound,
      'speedup': record['speedup'],
      'loop_efficiency': record['speedup'] / bound,
      'host': run_record.describe_host(),
  }


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--results', required=True)
  parser.add_argument('--models', action='append', required=True)
  parser.add_argument('--repeats', type=int, default=15)
  arguments = parser.parse_args()
  gin.add_config_file_search_path('.')
  gin.parse_config_files_and_bindings(arguments.models, [])
  configs = {}
  for role in ('target', 'draft'):
    with gin.config_scope(role):
      configs[role] = gin.get_configurable(t5.T5Config)()
  with open(arguments.results) as file:
    records = [json.loads(line) for line in file]
  models = [
      loading.load_model(configs[role], records[0][key]['checkpoint'])
      for role, key in (('target', 'target'), ('draft', 'drafter'))
  ]
  with jax.default_matmul_precision(records[0]['matmul_precision']):
    for record in records:
      tokens = jnp.full((1, record['inputs_length']), 5, jnp.int32)
      times = measure(parts(*models, record, tokens), arguments.repeats)
      print(json.dumps(explain(record, times)))


if __name__ == '__main__':
  main()
