# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders alone, compared with NumPy, and decoded by all that decodes T5."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.networks import decoder_only
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import contracts
from tests import reference_decoder
from tests import tiny
from tests import tiny_decoders

LENGTH, PROMPTS = tiny_decoders.LENGTH, tiny_decoders.prompts()
pytestmark = pytest.mark.usefixtures('chunks_of_eight')


def test_a_row_does_not_depend_on_its_batch():
  """Alone, without a batch axis, with padding before, or twice per example."""
  model, outputs = tiny_decoders.model('gemma3'), tiny_decoders.outputs()
  expected = tiny_decoders.logits('gemma3')
  short, long = PROMPTS[:1, :1], PROMPTS[3:4, :8]
  left = np.pad(long, ((0, 0), (5, 0)), constant_values=contracts.NO_TOKEN)
  for row, inputs in ((0, short), (3, long), (3, left)):
    found = tiny_decoders.decode(model, inputs, outputs[row : row + 1], 4)
    np.testing.assert_allclose(found[0], expected[row], atol=2e-4)
  twice = np.repeat(outputs[:3], 2, axis=0)
  found = tiny_decoders.decode(model, PROMPTS[:3], twice, 4)
  np.testing.assert_allclose(
      found, np.repeat(expected[:3], 2, axis=0), atol=2e-4
  )
  both = tiny_decoders.decode(model, PROMPTS[:1], twice[:2], 4)
  np.testing.assert_allclose(both, found[:2], atol=2e-4)


def test_prompts_that_attend_to_themselves():
  """At once, at half of their width; in a batch and alone, and scored."""
  config = tiny_decoders.PREFIX
  params = tiny_decoders.params(config)
  model = models.make_model(config, params)
  rows = tiny_decoders.prompts((1, 7, 15))
  empty = [(0, 0), (0, 40 - rows.shape[1])]
  rows = np.pad(rows, empty, constant_values=contracts.NO_TOKEN)
  outputs = tiny_decoders.outputs()[:3]
  expected, causal = (
      tiny_decoders.logits_after(each, rows)
      for each in (config, tiny_decoders.CONFIGS['t5x'])
  )
  assert np.abs(expected - causal).max() > 1
  found = tiny_decoders.decode(model, rows, outputs, 4)
  np.testing.assert_allclose(found, expected, atol=2e-4)
  alone = tiny_decoders.decode(model, rows[2:], outputs[2:], 4)
  np.testing.assert_allclose(alone[0], expected[2], atol=2e-4)
  with jax.default_matmul_precision('highest'):
    scores = jax.jit(config.score)(params, rows, outputs)
  np.testing.assert_allclose(scores, expected, atol=2e-4)


def test_scores_are_those_of_decoding():
  config = tiny_decoders.CONFIGS['llama']
  params = tiny_decoders.params(config)
  with jax.default_matmul_precision('highest'):
    logits = jax.jit(config.score)(params, PROMPTS, tiny_decoders.outputs())
    gradient = jax.grad(
        lambda params: config.score(params, PROMPTS, PROMPTS).sum()
    )(params)
  np.testing.assert_allclose(logits, tiny_decoders.logits('llama'), atol=2e-4)
  for leaf in jax.tree.leaves(gradient):
    assert np.any(leaf) and np.all(np.isfinite(leaf))


def decoder(name, drafter, **options):
  return token_decoder.TokenDecoder(
      tiny_decoders.model(name),
      drafter,
      gamma=3,
      max_tokens=LENGTH,
      inputs_length=PROMPTS.shape[1],
      **options,
  )


def rows():
  return [row[row >= 0].tolist() for row in PROMPTS]


def test_speculative_outputs_are_plain_ones():
  """With drafters that share the target, and its prompts."""
  drafter = drafters.InOrder([drafters.Lookup(), drafters.EarlyExit(2)])
  speculative = decoder('qwen3', drafter)
  (batch,) = tiny.batches(rows(), length=LENGTH)
  found, plain = (
      jax.device_get(run(batch))
      for run in reversed(whole_batches.ways(speculative))
  )
  np.testing.assert_array_equal(found.sequences, plain.sequences)
  assert found.statistics.num_accepted.sum() > 0


@pytest.mark.exhaustive  # `refill_test.py` has it without an engine
def test_a_sample_does_not_depend_on_its_row():
  """In an engine, requests take the rows of others that have ended."""
  one = decoder('gemma3', drafters.EarlyExit(2))
  sampling = st.Sampling(temperature=1.0)
  whole = one.generate(rows(), sampling=sampling, seed=3)
  engine = st.Engine(one, rows=2)
  found = engine.stream(
      st.Request(row, i, sampling=sampling, seed=3)
      for i, row in enumerate(rows())
  )
  assert [result.tokens[-1] for result in found] == whole


def test_positions_beyond_a_learned_table():
  """GPT-2's 128 hold a prompt of 113 and an output of 16."""
  target = tiny_decoders.model('gpt2')
  make = functools.partial(
      token_decoder.TokenDecoder, target, drafters.Lookup(), max_tokens=16
  )
  prompt = np.random.default_rng(2).integers(0, 96, 113).tolist()
  found = make(inputs_length=113, may_end=False).generate(prompt)
  config, params = target.config.decoder_alone(), tiny_decoders.params(
      tiny_decoders.CONFIGS['gpt2']
  )
  logits = reference_decoder.logits(config, params, [*prompt, *found][:-1])
  logits[:, config.special_ids.end] = -np.inf
  assert np.argmax(logits[112:], axis=-1).tolist() == found
  with pytest.raises(ValueError, match='need 129 positions'):
    make(inputs_length=114)


def test_queries_are_scaled_by_the_width_of_a_head():
  assert tiny_decoders.CONFIGS['llama'].query_scale == 10**-0.5


@pytest.mark.parametrize(
    'changes',
    [{'positions': 'alibi'}, {'norm': 'none'}, {'num_kv_heads': 3},
     {'max_positions': 9},
     {'prefix_bidirectional': True, 'kinds': [decoder_only.LayerKind(8)]}],
)  # fmt: skip
def test_parts_that_there_are_not(changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    dataclasses.replace(tiny_decoders.CONFIGS['llama'], **changes)


def test_a_dtype_without_room_for_masked_logits():
  with pytest.raises(ValueError, match='float16'):
    dataclasses.replace(tiny_decoders.CONFIGS['gpt2'], dtype='float16')
