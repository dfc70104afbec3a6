# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders alone, compared with NumPy, and decoded by all that decodes T5."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import drafters
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import step_checks
from tests import reference_decoder
from tests import tiny
from tests import tiny_decoders

NAMES = list(tiny_decoders.CONFIGS)
# Around the chunk of 8 below and the window; the longest has several windows.
LENGTHS = 1, 2, 7, 8, 9, 25
WIDTH, LENGTH = max(LENGTHS), 16


@pytest.fixture(autouse=True)
def chunks_of_eight(monkeypatch):
  monkeypatch.setattr(decoder_only, 'CHUNK', 8)


def prompts(lengths=LENGTHS, width=WIDTH):
  """Return prompts [examples, width], in which id 0 is a token."""
  rows = np.full((len(lengths), width), contracts.NO_TOKEN, np.int32)
  generator = np.random.default_rng(0)
  for row, length in zip(rows, lengths):
    row[:length] = generator.integers(0, 96, length)
    row[length // 2] = 0
  return rows


def continuations(rows):
  return np.random.default_rng(1).integers(0, 96, (rows, LENGTH), np.int32)


@functools.cache
def expected(name):
  """Return the logits of each continuation's tokens, [rows, LENGTH, vocab]."""
  config = tiny_decoders.CONFIGS[name]
  params = tiny_decoders.params(config)
  found = []
  for row, output in zip(prompts(), continuations(len(LENGTHS))):
    prompt = row[row >= 0].tolist()
    text = [*prompt, *output[:-1].tolist()]
    found.append(
        reference_decoder.logits(config, params, text)[len(prompt) - 1 :]
    )
  return np.stack(found)


@pytest.mark.parametrize('name', NAMES)
def test_blocks_after_prompts_of_unequal_lengths(name):
  """Positions are unequal, and pass windows and T5's exact buckets."""
  model = tiny_decoders.model(name)
  assert np.abs(expected(name)).max() > 1
  for block in (1, 4, 8):
    outputs = continuations(len(LENGTHS))
    found = tiny_decoders.decode(model, prompts(), outputs, block)
    np.testing.assert_allclose(found, expected(name), atol=2e-4)


def test_a_row_does_not_depend_on_its_batch():
  """Alone, without a batch axis, with padding before, or twice per example."""
  name = 'gemma3'
  model, outputs = tiny_decoders.model(name), continuations(len(LENGTHS))
  for row in (0, 3, 5):
    prompt = prompts()[row]
    alone = prompt[prompt >= 0][None]
    left = np.roll(prompt, WIDTH - alone.shape[1])[None]
    for inputs in (alone, left):
      found = tiny_decoders.decode(model, inputs, outputs[row : row + 1], 4)
      np.testing.assert_allclose(found[0], expected(name)[row], atol=2e-4)
  twice = np.repeat(outputs[:3], 2, axis=0)
  found = tiny_decoders.decode(model, prompts()[:3], twice, 4)
  np.testing.assert_allclose(
      found, np.repeat(expected(name)[:3], 2, axis=0), atol=2e-4
  )
  both = tiny_decoders.decode(model, prompts()[:1], twice[:2], 4)
  np.testing.assert_allclose(both, found[:2], atol=2e-4)


def test_a_rewound_row():
  """What was written past a position is not read again."""
  name = 'gemma3'
  model, outputs = tiny_decoders.model(name), continuations(len(LENGTHS))
  config, params = model.config, model.params
  with jax.default_matmul_precision('highest'):
    started = config.start(params, jnp.asarray(prompts()), len(outputs), 40)
    decode = functools.partial(config.decode, params, started.memory)
    wrong = jnp.asarray(outputs[:, ::-1])
    _, cache = decode(started.cache, wrong, started.offsets, None)
    fed = np.concatenate([started.first_tokens[:, None], outputs], axis=1)
    at = jnp.asarray(np.arange(len(outputs)) % 4, jnp.int32)
    logits, _ = decode(cache, jnp.asarray(fed[:, :4]), started.offsets, at)
  rows = np.arange(len(outputs))
  np.testing.assert_allclose(
      logits[:, 0], expected(name)[rows, at], atol=2e-4
  )


def test_scores_are_those_of_decoding():
  config = tiny_decoders.CONFIGS['llama']
  params = tiny_decoders.params(config)
  with jax.default_matmul_precision('highest'):
    logits = jax.jit(config.score)(
        params, prompts(), continuations(len(LENGTHS))
    )
    gradient = jax.grad(
        lambda params: config.score(params, prompts(), prompts()).sum()
    )(params)
  np.testing.assert_allclose(logits, expected('llama'), atol=2e-4)
  for leaf in jax.tree.leaves(gradient):
    assert np.any(leaf) and np.all(np.isfinite(leaf))


def decoder(name, drafter, **options):
  return token_decoder.TokenDecoder(
      tiny_decoders.model(name),
      drafter,
      gamma=3,
      max_tokens=LENGTH,
      inputs_length=WIDTH,
      **options,
  )


def rows():
  return [row[row >= 0].tolist() for row in prompts()]


def test_speculative_outputs_are_plain_ones():
  """With drafters that share the target, and its prompts."""
  drafter = drafters.InOrder([drafters.Lookup(), drafters.EarlyExit(2)])
  speculative = decoder('qwen3', drafter)
  (batch,) = tiny.batches(rows(), length=LENGTH)
  found, plain = (
      jax.device_get(run(batch))
      for run in (speculative.speculative, speculative.plain)
  )
  np.testing.assert_array_equal(found.sequences, plain.sequences)
  assert found.statistics.num_accepted.sum() > 0


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


def test_outputs_follow_the_target():
  """All outputs of a tiny pair are enumerated."""
  sizes = dict(vocab_size=3, emb_dim=6, num_layers=1, num_heads=2, mlp_dim=8)
  kinds = [decoder_only.LayerKind(2)]
  config = decoder_only.DecoderOnly(**sizes, head_dim=4, kinds=kinds)
  params, other = (tiny_decoders.params(config, seed) for seed in (0, 1))
  ids = contracts.SpecialIds(end=1, padding=0, start=None)
  target = network_lib.NetworkModel(config, ids)
  inputs = np.array([(2, 0, 2, 0), (2, -1, -1, -1)], np.int32)

  def find_logits(example, tokens):
    prompt = inputs[example][inputs[example] >= 0].tolist()
    text = [*prompt, *tokens]
    return reference_decoder.logits(config, params, text)[-1]

  step_checks.check_pair(
      st.testing.Pair(
          target,
          params,
          draft_model.DraftModel(target, 2, config.vocab_size),
          other,
          inputs,
          (3, 2),
          find_logits,
      )
  )


def test_positions_beyond_a_learned_table():
  """GPT-2's 128 hold a prompt of 113 and an output of 16."""
  target = tiny_decoders.model('gpt2')
  make = functools.partial(
      token_decoder.TokenDecoder, target, drafters.Lookup(), max_tokens=LENGTH
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


@pytest.mark.parametrize(
    'changes',
    [{'positions': 'alibi'}, {'norm': 'none'}, {'num_kv_heads': 3},
     {'max_positions': 9}],
)  # fmt: skip
def test_parts_that_there_are_not(changes):
  (name,) = changes
  with pytest.raises(ValueError, match=name):
    dataclasses.replace(tiny_decoders.CONFIGS['llama'], **changes)


def test_a_dtype_without_room_for_masked_logits():
  with pytest.raises(ValueError, match='float16'):
    dataclasses.replace(tiny_decoders.CONFIGS[NAMES[0]], dtype='float16')
