# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the T5X model decodes like T5X, and otherwise is T5X's model."""

import dataclasses
import functools
import inspect

from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio
from t5x import binary_search
from t5x import decoding
from t5x.examples.t5 import network

from speculative_t5x import t5x_guest
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import sampling
from speculative_t5x.t5x_guest import module_sizes
from tests.t5x_guest import limits
from tests.t5x_guest import tiny_pair

PARAMS = tiny_pair.params()
HEAD = dataclasses.replace(
    tiny_pair.configs()[1], num_encoder_layers=0
).on_last_features(tiny_pair.configs()[0])
SAMPLED = {'temperature': 0.9, 'topk': 0}
SAMPLERS = pytest.mark.parametrize(
    'sampler', [t5x_guest.speculative_sample, t5x_guest.plain_sample]
)


def predict(model, batch, **kwargs):
  """Return sequences and auxiliary values, compiled as in T5X."""
  call = functools.partial(model.predict_batch_with_aux, **kwargs)
  return jax.device_get(jax.jit(call)(tiny_pair.state(model), batch))


def test_defaults_of_arguments_are_t5xs():
  theirs = inspect.signature(decoding.temperature_sample).parameters
  ours = inspect.signature(t5x_guest.speculative_sample).parameters
  shared = ours.keys() & theirs.keys() - {'num_decodes'}
  assert len(shared) == 6
  for name in shared:
    assert ours[name].default == theirs[name].default, name


@pytest.mark.parametrize(('max_steps', 'hard_limit', 'tokens'), limits.CASES)
def test_limits_are_t5xs(max_steps, hard_limit, tokens):
  """The decode functions take T5X's limits, see `samplers_test`."""
  shape = limits.EXAMPLES, limits.LENGTH

  @jax.jit
  def decode(steps):
    return decoding.temperature_sample(
        jnp.zeros(shape, jnp.int32),
        {},
        lambda state: (jnp.tile(jnp.arange(4.0), (shape[0], 1)), state.cache),
        eos_id=1,
        max_decode_steps=steps,
        max_decode_steps_hard_limit=hard_limit,
    )[0]

  texts = decode(max_steps)
  np.testing.assert_array_equal(np.sum(texts[:, 0] > 0, axis=-1), tokens)


@pytest.mark.parametrize(
    ('temperature', 'topk', 'topp'),
    [(0.4, 0, 0.0), (0.9, 4, 0.0), (0.9, 0, 0.6), (0.9, 9, 0.6)],
)
def test_distributions_are_t5xs(temperature, topk, topp):
  logits = np.random.default_rng(0).normal(0, 3, (20, 64)).astype(np.float32)
  masked = logits / temperature
  if topk:
    masked = binary_search.topk_mask(masked, topk, decoding.NEG_INF)
  if topp:
    masked = binary_search.topp_mask(masked, topp, decoding.NEG_INF)
  found = sampling.standardize(
      jnp.asarray(logits), sampling.Sampling(temperature, topk, topp)
  )
  np.testing.assert_allclose(found, jax.nn.softmax(masked), atol=1e-6)


def num_tokens(sequences) -> np.ndarray:
  """Return the tokens up to the end; padding can be sampled before it."""
  is_end = np.asarray(sequences) == 1
  to_end = is_end.argmax(axis=-1) + 1
  return np.where(is_end.any(axis=-1), to_end, tiny_pair.LENGTH)


class TestDecoding:

  @pytest.mark.parametrize(
      ('sampler', 'rows'),
      [
          (t5x_guest.speculative_sample, 1),
          (t5x_guest.speculative_sample, 5),
          (t5x_guest.plain_sample, 5),
      ],
  )
  def test_argmax_is_t5xs(self, sampler, rows):
    batch = tiny_pair.batch(rows)
    expected, expected_aux = jax.device_get(
        tiny_pair.of_target().predict_batch_with_aux(
            PARAMS['target'],
            batch,
            decoder_params={'temperature': 0.0, 'rescale_log_probs': False},
        )
    )
    decode = functools.partial(
        sampler, temperature=0.0, rescale_log_probs=False
    )
    sequences, aux = predict(tiny_pair.model(decode), batch)
    np.testing.assert_array_equal(sequences, expected)
    np.testing.assert_allclose(aux['scores'], expected_aux['scores'], atol=2e-4)

  @SAMPLERS
  def test_a_sample_depends_on_its_example_alone(self, sampler):
    """Samples are equal at batch sizes 1, 7 and 32."""
    model = tiny_pair.model(functools.partial(sampler, **SAMPLED))
    call, params = jax.jit(model.predict_batch), tiny_pair.state(model)
    samples = {
        size: np.concatenate(
            [
                call(params, tiny_pair.batch(size, first))
                for first in range(0, 32, size)
            ]
        )[:32]
        for size in (1, 7, 32)
    }
    np.testing.assert_array_equal(samples[1], samples[32])
    np.testing.assert_array_equal(samples[7], samples[32])

  def test_counts_of_each_example(self):
    batch = tiny_pair.batch(6)
    sequences, aux = predict(
        tiny_pair.model(
            functools.partial(t5x_guest.speculative_sample, **SAMPLED)
        ),
        batch,
    )
    assert set(aux) == {
        'scores', 'tokens', 'target_calls', 'drafted', 'drafted_computed',
        'tested', 'accepted', 'tested_per_position', 'accepted_per_position',
    }  # fmt: skip
    for key in ('tested', 'accepted'):
      per_position = aux.pop(f'{key}_per_position')
      assert per_position.shape == (6, 3)
      np.testing.assert_array_equal(per_position.sum(axis=1), aux[key])
    assert {x.shape for x in aux.values()} == {(6,)}
    np.testing.assert_array_equal(aux['tokens'], num_tokens(sequences))
    np.testing.assert_array_equal(aux['drafted_computed'], aux['drafted'])
    assert (aux['drafted'] <= 3 * aux['target_calls']).all()
    assert (aux['accepted'] <= aux['tested']).all()
    assert (aux['tested'] <= aux['drafted']).all()
    assert (aux['target_calls'] < aux['tokens']).any()


@pytest.mark.parametrize('role', ['target', 'draft'])
def test_network_settings_apply_to_decoding(role):
  config = network.T5Config(
      vocab_size=72, dtype='bfloat16', emb_dim=24, num_heads=3, head_dim=8,
      num_encoder_layers=1, num_decoder_layers=3, mlp_dim=40,
      mlp_activations=('silu', 'linear'), dropout_rate=0.3,
      logits_via_embedding=True,
  )  # fmt: skip
  found = module_sizes.read(role, network.Transformer(config))
  ignored = {'float32_attention_logits'}  # False, or it is refused
  for name in vars(config).keys() - ignored:
    assert getattr(found, name) == getattr(config, name)


@SAMPLERS
def test_best_decode_is_last_as_t5x_orders_them(sampler):
  model = tiny_pair.model(functools.partial(sampler, **SAMPLED))
  batch = tiny_pair.batch(3)
  options = {'num_decodes': 4}
  every, aux = predict(model, batch, return_all_decodes=True, **options)
  assert every.shape == (3, 4, tiny_pair.LENGTH)
  assert {x.shape[:2] for x in aux.values()} == {(3, 4)}
  assert (np.diff(aux['scores'], axis=1) >= 0).all()
  assert (aux['scores'][:, 0] < aux['scores'][:, -1]).all()
  np.testing.assert_array_equal(aux['tokens'], num_tokens(every))
  best, best_aux = predict(model, batch, **options)
  np.testing.assert_array_equal(best, every[:, -1])
  np.testing.assert_array_equal(best_aux['scores'], aux['scores'][:, -1])


@pytest.mark.parametrize(('beams', 'rows'), [(1, 2), (2, 1), (4, 5)])
def test_beam_search_is_t5xs(beams, rows):
  """All hypotheses, their order and scores; see `tests/speculation` too."""
  batch = tiny_pair.batch(rows)
  options = {'return_all_decodes': True, 'num_decodes': beams}
  expected, expected_aux = predict(
      tiny_pair.model(decoding.beam_search), batch, **options
  )
  model = tiny_pair.model(t5x_guest.speculative_beam_search)
  sequences, aux = predict(model, batch, **options)
  np.testing.assert_array_equal(sequences, expected)
  np.testing.assert_allclose(aux['scores'], expected_aux['scores'], atol=2e-4)
  assert (aux['target_calls'] <= aux['beam_steps']).all()
  best, best_aux = predict(model, batch, num_decodes=beams)
  np.testing.assert_array_equal(best, sequences[:, -1])
  assert best_aux['tokens'].shape == (rows,)


class TestAsT5X:
  """Everything but decoding is done by the target alone."""

  @pytest.mark.parametrize(
      'decode_fn',
      [decoding.temperature_sample, decoding.beam_search],
      ids=['temperature_sample', 'beam_search'],
  )
  def test_t5xs_own_decode_functions(self, decode_fn):
    batch = tiny_pair.batch(3)
    options = {'num_decodes': 2, 'return_all_decodes': True}
    rng = jax.random.PRNGKey(0)
    expected = tiny_pair.of_target(decode_fn).predict_batch_with_aux(
        PARAMS['target'], batch, rng=rng, **options
    )
    model = tiny_pair.model(decode_fn)
    found = model.predict_batch_with_aux(
        tiny_pair.state(model), batch, rng=rng, **options
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)

  def test_scores_and_loss(self):
    batch = tiny_pair.batch(3)
    model, target = tiny_pair.model(), tiny_pair.of_target()
    params = tiny_pair.state(model)
    np.testing.assert_array_equal(
        model.score_batch(params, batch),
        target.score_batch(PARAMS['target'], batch),
    )
    loss = model.loss_fn(params, batch, None)[0]
    expected = target.loss_fn(PARAMS['target'], batch, None)[0]
    np.testing.assert_array_equal(loss, expected)


class TestVocabulary:

  @pytest.mark.parametrize('eos_id', [1, 21])
  def test_its_end_of_sequence_ends_outputs(self, eos_id):
    """The outputs are greedy, by T5X's own sampler."""
    vocabulary = seqio.PassThroughVocabulary(size=64, eos_id=eos_id)

    def run(decode_fn):
      model = tiny_pair.model(decode_fn, output_vocabulary=vocabulary)
      return predict(model, tiny_pair.batch(12))[0]

    expected = run(decoding.temperature_sample)  # by default argmax
    assert np.any(expected == eos_id)
    for decode_fn in (t5x_guest.speculative_sample, t5x_guest.plain_sample):
      np.testing.assert_array_equal(run(decode_fn), expected)


class TestInitialVariables:

  def variables(self, model):
    return jax.eval_shape(
        lambda rng: model.get_initial_variables(rng, tiny_pair.SHAPES),
        jax.random.PRNGKey(0),
    )

  def axes(self, variables, role):
    names = partitioning.get_axis_names(variables['params_axes'][role])
    return jax.tree.leaves(
        names, is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec)
    )

  def test_parameters_nest_by_role(self):
    shapes = lambda tree: jax.tree.map(lambda x: x.shape, tree)
    model = tiny_pair.model()
    params = self.variables(model)['params']
    assert shapes(params) == shapes(tiny_pair.state(model))
    trained = self.variables(tiny_pair.distillation())['params']
    assert shapes(trained) == shapes(PARAMS)

  def test_axes_of_the_draft_model(self):
    def names(model, role):
      axes = self.axes(self.variables(model), role)
      return {name for each in axes for name in each}

    for model in (tiny_pair.model(), tiny_pair.distillation()):
      assert names(model, 'draft') == {None}
      assert 'vocab' in names(model, 'target')
    model = tiny_pair.distillation(is_model_parallel=True)
    assert 'vocab' in names(model, 'draft')


class TestRefusals:

  def test_block_longer_than_the_outputs(self):
    TestInitialVariables().variables(tiny_pair.model(gamma=tiny_pair.LENGTH))
    model = tiny_pair.model(gamma=tiny_pair.LENGTH + 1)
    with pytest.raises(ValueError, match='smaller gamma'):
      TestInitialVariables().variables(model)

  @pytest.mark.parametrize(
      ('options', 'error'),
      [
          ({'decode_rng': 0}, TypeError),
          ({'state_callback_fn': len}, TypeError),
          ({'eos_id': 2}, TypeError),  # it is the vocabulary's
          ({'seed': 2**32}, ValueError),
      ],
  )
  def test_decoder_params(self, options, error):
    with pytest.raises(error, match=next(iter(options))):
      predict(tiny_pair.model(), tiny_pair.batch(1), decoder_params=options)

  def test_prompts_of_the_decoder(self):
    with pytest.raises(NotImplementedError, match='prompt_with_targets'):
      predict(
          tiny_pair.model(), tiny_pair.batch(1), prompt_with_targets=True
      )

  def test_networks_that_are_not_t5xs(self):
    """A subclass may compute anything."""

    class Other(network.Transformer):
      pass

    target, draft = tiny_pair.modules()
    wide = draft.config.replace(float32_attention_logits=True, dtype='bfloat16')
    own = transformer.Transformer(tiny_pair.configs()[1])
    for pair, named in (
        ((target, own), 'draft.*networks.transformer.Transf'),
        ((Other(target.config), draft), 'target is a .*Other'),
        ((target, draft.clone(config=wide)), 'draft.*float32_attention_logits'),
    ):
      with pytest.raises(ValueError, match=named):
        tiny_pair.distillation(pair=pair)
