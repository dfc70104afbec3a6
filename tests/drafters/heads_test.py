# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of heads on the target's last features, and of those with masks.

Outputs are enumerated, and what is drafted is compared with the head's
distribution without any cache: over the whole text, it is fed the target's
features up to the last committed token, and its own predictions from there on;
one with masks reads a text as it does in training.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.drafters import block_head
from speculative_t5x.drafters import feature_head
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import likeliest_tree
from speculative_t5x.drafters import lookup
from speculative_t5x.drafters import shaped_tree
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import encoder_decoder
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5gemma
from speculative_t5x.policies import confidence
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import all_drafts
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules as rules_lib
from speculative_t5x.testing import step_programs
from tests import candidate_paths
from tests import combinations
from tests import exhaustive
from tests import tiny
from tests import tiny_decoders
from tests import tiny_drafters

VOCAB, LIMITS, GAMMA = 3, (3, 2), 2
LENGTH = max(LIMITS) + GAMMA  # of the texts that are read without a cache
INPUTS = np.asarray(tiny_drafters.network_inputs())
PROMPTS = np.array([(2, 0, 2, 2), (2, -1, -1, -1)], np.int32)
T5 = tiny_drafters.CONFIG
_STACK = config_lib.Stack(
    VOCAB + 1, emb_dim=8, num_layers=1, num_heads=2, head_dim=4, mlp_dim=8
)
ALONE = decoder_only.DecoderOnly(**vars(_STACK))
ALONE_HEAD = dataclasses.replace(
    ALONE, emb_dim=6, num_heads=1, num_kv_heads=1
).on_last_features(ALONE)

T5GEMMA = t5gemma.T5Gemma(**vars(_STACK), encoder=_STACK)
T5GEMMA_HEAD = dataclasses.replace(T5GEMMA, emb_dim=6).on_last_features(T5GEMMA)
# With a prompt, behind which an output begins.
BART = encoder_decoder.EncoderDecoder(
    VOCAB + 1, 8, 2, 1, 1, 8, max_positions=8, decoder_prompt=(2, 0)
)


class Pair(NamedTuple):
  """A target and a head on it, which are read without a cache by `read`."""

  target: network_lib.Network
  head: network_lib.Network
  inputs: np.ndarray

  def params(self) -> tuple[Any, Any]:
    if isinstance(self.target, t5.T5Config):
      return tiny.params(self.target), tiny.params(self.head, noise=0.5)
    return tuple(
        tiny_decoders.params(x, seed)
        for seed, x in enumerate((self.target, self.head))
    )

  def loaded(self) -> tuple[models.Model, models.Model]:
    networks = self.target, self.head
    return tuple(map(models.make_model, networks, self.params()))

  def read(
      self, network, params, texts, fed=None, anchors=None
  ) -> network_lib.Scored:
    """Read texts [rows, LENGTH] after the input of each; see `Scored`."""
    return _read(self, network, params, jnp.asarray(texts), fed, anchors)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _read(pair: '_Hashable', network, params, texts, fed, anchors):
  inputs = jnp.asarray(pair.inputs)
  inputs = jnp.repeat(inputs, len(texts) // len(inputs), axis=0)
  if isinstance(network, decoder_only.DecoderOnly):
    return network.score_with_features(
        params, inputs, texts, fed=fed, anchors=anchors
    )
  encoded = pair.target.encode(pair.params()[0], inputs)
  return network.score_with_features(
      params, inputs, texts, features=encoded, fed=fed, anchors=anchors
  )


class _Hashable(Pair):
  """A pair that is static, as all of it is fixed."""

  __hash__ = object.__hash__
  __eq__ = object.__eq__


# With masks for more tokens than are drafted, and a recurrence over them.
_masked = functools.partial(
    dataclasses.replace, num_masks=2, recurrence_dim=3
)
PAIRS = {
    't5': _Hashable(T5, tiny_drafters.FEATURE_HEAD, INPUTS),
    'decoder alone': _Hashable(ALONE, ALONE_HEAD, PROMPTS),
    't5gemma': _Hashable(T5GEMMA, T5GEMMA_HEAD, INPUTS),
    'block': _Hashable(T5, _masked(tiny_drafters.DECODER), INPUTS),
    'block with features': _Hashable(
        T5, _masked(tiny_drafters.FEATURE_HEAD), INPUTS
    ),
    'independent block': _Hashable(
        T5, _masked(tiny_drafters.DECODER, recurrence_dim=None), INPUTS
    ),
    'block of a decoder alone': _Hashable(ALONE, _masked(ALONE_HEAD), PROMPTS),
    'independent block of t5gemma': _Hashable(
        T5GEMMA, _masked(T5GEMMA_HEAD, recurrence_dim=None), INPUTS
    ),
    'block of bart': _Hashable(
        BART,
        _masked(dataclasses.replace(BART, num_heads=1).on_features(8)),
        INPUTS,
    ),
    'block of t5 on bart': _Hashable(
        BART, _masked(tiny_drafters.FEATURE_HEAD), INPUTS
    ),
    'block of a language model': _Hashable(
        ALONE, _masked(ALONE, emb_dim=6), PROMPTS
    ),
}
BLOCKS = [name for name in PAIRS if 'block' in name]


def read_all(pair, network, params, find_fed=lambda texts: None):
  """Return what a network has for all texts, [examples, texts, ...]."""
  texts = np.array(list(itertools.product(range(VOCAB), repeat=LENGTH)))
  texts = np.tile(texts, (len(pair.inputs), 1)).astype(np.int32)
  return pair.read(network, params, texts, find_fed(texts))


class Expected:
  """What a head should draft, and what its target says, without caches."""

  def __init__(self, name: str):
    self.pair = PAIRS[name]
    self.params = self.pair.params()
    with jax.default_matmul_precision('highest'):
      self._target = jax.device_get(
          read_all(self.pair, self.pair.target, self.params[0])
      )

  def _at(self, example: int, tokens: tuple[int, ...]) -> int:
    padded = (*tokens, *[0] * (LENGTH - len(tokens)))
    text = sum(x * VOCAB**i for i, x in enumerate(reversed(padded)))
    return example * VOCAB**LENGTH + text

  def find_logits(self, example, tokens) -> np.ndarray:
    """Return the target's logits of the token after some tokens."""
    logits = self._target.logits[self._at(example, tokens), len(tokens)]
    return np.where(np.arange(len(logits)) < VOCAB, logits, -np.inf)

  def draft_logits(self, example, prefix, drafted, count=0) -> np.ndarray:
    """Return the head's logits of the token after draft tokens.

    The first `count` draft tokens are another drafter's.
    """
    tokens = (*prefix, *drafted)
    shown = self._target.all_features[self._at(example, tokens)]
    # The position that is fed the last token of the prefix, of all positions.
    last = shown.shape[0] - LENGTH + len(prefix)
    if self.pair.inputs is PROMPTS:
      last = int((PROMPTS[example] >= 0).sum()) - 1 + len(prefix)
    text = np.zeros((len(self.pair.inputs), LENGTH), np.int32)
    text[:, : len(tokens)] = tokens
    if network_lib.is_block_head(self.pair.head):
      fed = None
      if network_lib.is_feature_head(self.pair.head):
        fed = np.array(network_lib.one_later(jnp.asarray(shown)))
        fed[last + 1 :] = 0  # the target has not been before these
        fed = jnp.broadcast_to(fed, (len(text), *fed.shape))
      anchors = np.full((len(text), 1), len(prefix) + count, np.int32)
      scored = self.pair.read(
          self.pair.head, self.params[1], text, fed, anchors
      )
      logits = np.asarray(
          scored.logits[example, 0, len(drafted) - count], np.float64
      )
      return np.where(np.arange(len(logits)) < VOCAB, logits, -np.inf)
    for i in range(len(drafted) + 1):
      fed = network_lib.one_later(jnp.asarray(shown))
      scored = self.pair.read(
          self.pair.head,
          self.params[1],
          text,
          jnp.broadcast_to(fed, (len(text), *fed.shape)),
      )
      shown = np.array(shown)
      shown[last + i] = scored.all_features[example, last + i]
    logits = np.asarray(scored.logits[example, len(tokens)], np.float64)
    return np.where(np.arange(len(logits)) < VOCAB, logits, -np.inf)


expected = functools.cache(Expected)


def make_pair(name: str, gamma: int = GAMMA) -> pairs.Pair:
  """Return a pair to be enumerated."""
  target, head = PAIRS[name].loaded()
  ids = contracts.SpecialIds(1, 0, target.config.special_ids.start)
  model = network_lib.NetworkModel(target.config, ids, num_valid_tokens=VOCAB)
  own = dataclasses.replace(ids, start=head.config.special_ids.start)
  head = dataclasses.replace(head, special_ids=own)
  drafter = model_drafting.of_model(head).make(model, gamma)
  return pairs.Pair(
      model,
      target.params,
      drafter,
      head.params,
      PAIRS[name].inputs,
      LIMITS,
      expected(name).find_logits,
      2e-5,
  )


def errors(name: str, pair: pairs.Pair, sampling) -> tuple[float, float]:
  """Return the largest error of an output's probability, and of a draft's."""
  program = step_programs.Program(
      pair, draft_length.Fixed(), sampling_lib.Sampling(**sampling)
  )
  found = reachable.reach(
      program,
      combinations.RULES['tokenwise'],
      combinations.enumerator('tokenwise'),
  )
  (known,) = program.known.values()
  drafted = [
      (example, prefix, tokens, np.frombuffer(probs).reshape(len(tokens), -1))
      for example, prefix, tokens, probs in known
  ]
  return combinations.error(program, found), draft_error(
      expected(name), program, drafted
  )


def draft_error(expected: Expected, program, drafted) -> float:
  """Return the largest error of the distribution of a token that was drawn.

  Of what is drafted there are the example, the tokens before, the draft tokens
  and their distributions.
  """
  # One place may be drawn at from several states.
  places, drawn = zip(*(
      ((example, prefix, tokens[:i], sum(np.max(q) == 1 for q in probs)), q)
      for example, prefix, tokens, probs in drafted
      for i, q in enumerate(probs)
      if np.max(q) < 1  # not copied
  ))
  find = functools.cache(expected.draft_logits)
  logits = np.array([find(*place) for place in places])
  q = sampling_lib.standardize(jnp.asarray(logits), program.samplings[1])
  return np.max(np.abs(q - np.array(drawn)))


@pytest.fixture(autouse=True)
def exact_products():
  with jax.default_matmul_precision('highest'):
    yield


@pytest.mark.parametrize(
    ('name', 'sampling'),
    exhaustive.all_but(
        [
            (name, {})
            for name in PAIRS
            if 'of t5gemma' not in name and name != 'block of t5 on bart'
        ],
        itertools.product(PAIRS, [{}, {'temperature': 0.6, 'top_k': 2}]),
    ),
)
def test_outputs_and_drafts(name, sampling):
  of_outputs, of_drafts = errors(name, make_pair(name), sampling)
  assert of_outputs < 2e-5
  assert of_drafts < 2e-5


@pytest.mark.parametrize(
    ('name', 'rule', 'temperature'),
    exhaustive.all_but(
        [('block', 'tokenwise', 1.0), ('block', 'likeliest', 0.0),
         ('independent block', 'k_sequential', 1.0)],
        itertools.product(
            ['block', 'independent block'], candidate_paths.RULES, [1.0, 0.0]
        ),
    ),
)  # fmt: skip
def test_trees(name, rule, temperature):
  """A branch has the distributions of its own draft tokens."""
  assert tree_error(name, rule, temperature) < 2e-5


def tree_error(name, rule, temperature) -> float:
  """Return the largest error of the probability of an example's outputs."""
  pair, (rule, draws) = make_pair(name), candidate_paths.RULES[rule]
  if draws is None:
    drafter = likeliest_tree.LikeliestTree(pair.drafter, 5, 3)
  else:
    shape = candidates.as_shape((2, 1), GAMMA)
    drafter = shaped_tree.ShapedTree(pair.drafter, shape)
  program = step_programs.Program(
      dataclasses.replace(pair, drafter=drafter), draft_length.Fixed()
  ).with_sampling(*[sampling_lib.Sampling(temperature)] * 2)
  find = functools.cache(expected(name).draft_logits)
  if draws is None:
    paths = candidate_paths.LikeliestPaths(program, rule, find)
  else:
    paths = candidate_paths.Paths(program, rule, draws, find)
  exact = reachable.exact_distributions(program)
  return max(map(rules_lib.total_variation, exact, paths.distributions()))


class OfTree(block_head.BlockHead):
  """States the distributions that nodes with its draft tokens have in a tree.

  They are the last children of their parents, whose others are other tokens.
  """

  def propose(self, params, memory, state, view):
    draft, after = super().propose(params, memory, state, view)
    shape = candidates.TreeShape((2,) * self.gamma)
    tree = shaped_tree.ShapedTree(self, shape)
    memory, positions, roots, block = tree.begin(
        params, memory, state, view, shape.num_nodes
    )
    tokens, probs = roots.tokens, []
    for depth, level in enumerate(shape.levels[:-1]):
      logits, block = tree.decode(
          params, memory, state, block, shape.tree(tokens), positions,
          level.start, len(level),
      )  # fmt: skip
      probs.append(sampling_lib.standardize(logits[:, -1], view.sampling))
      own = draft.tokens[:, depth, None]
      others = jnp.repeat((own + 1) % VOCAB, 2 * len(level) - 1, axis=1)
      tokens = jnp.concatenate([tokens, others, own], axis=1)
    return draft.replace(probs=jnp.stack(probs, axis=1)), after


@pytest.mark.parametrize(
    'name',
    exhaustive.all_but(
        ['block'],
        ['block', 'independent block', 'block of bart',
         'block of a language model'],
    ),
)  # fmt: skip
def test_distributions_of_nodes_are_those_of_chains(name):
  pair = make_pair(name, gamma=3)
  pair = dataclasses.replace(pair, drafter=OfTree(**vars(pair.drafter)))
  of_outputs, of_drafts = errors(name, pair, {})
  assert of_outputs < 2e-5
  assert of_drafts < 2e-5


def test_no_node_is_drafted_behind_the_last_mask():
  pair = make_pair('block', gamma=4)
  pair = dataclasses.replace(pair, drafter=OfTree(**vars(pair.drafter)))
  program = step_programs.Program(pair, draft_length.Fixed())
  rule = combinations.RULES['tokenwise']
  uniforms = np.full((2, program.num_uniforms(rule)), 0.5)
  draft = program.draft(rule, np.arange(2), program.begin(rule), uniforms)
  is_drafted = np.sum(draft.probs, axis=-1) > 0
  np.testing.assert_array_equal(is_drafted, [[True] * 3 + [False]] * 2)


@pytest.mark.parametrize(
    'name',
    exhaustive.all_but(
        ['independent block'], ['block', 'independent block']
    ),
)
def test_a_draft_ends_where_the_policy_ends_it(name):
  """Behind the token that it was asked about, and no other."""
  program = step_programs.Program(
      make_pair(name, gamma=3), confidence.Confidence(0.5)
  )
  rule, lengths = combinations.RULES['tokenwise'], set()
  # A threshold per row.
  state, rows = program.begin(rule), np.repeat([0, 1], 15)
  least = np.tile(np.linspace(0.1, 0.8, 15, dtype=np.float32), 2)
  state = step_programs.take(state, rows).replace(policy_state=least)
  for each in all_drafts.drafts(program, rule, rows, state):
    goes_on = [
        q[x] > least[each.row] and x != 1
        for x, q in zip(each.tokens, each.probs)
    ]
    most = LIMITS[rows[each.row]]
    assert all(goes_on[:-1]) and goes_on[-1] <= (len(goes_on) == most)
    lengths.add((len(goes_on), most))
  assert {(1, 3), (2, 3), (3, 3)} <= lengths


def behind_lookup(name: str) -> pairs.Pair:
  """Return a head that drafts behind what is copied of a hint."""
  pair = make_pair(name, gamma=3)
  copying = lookup.LookupDrafter(3, 2, 1, only_hints=True)
  return dataclasses.replace(
      pair,
      drafter=in_order.DraftersInOrder((copying, pair.drafter), pair.target),
      draft_params=(None, pair.draft_params),
      hints=np.array([(2, 0), (-1, -1)], np.int32),
  )


BEHIND = 't5', 'block', 'independent block', 'block with features'


@pytest.mark.exhaustive
@pytest.mark.parametrize('name', BEHIND)
def test_after_tokens_of_another_drafter(name):
  """They are fed with predicted features, as tokens of the head's own are.

  Behind them masks have none.
  """
  of_outputs, of_drafts = errors(name, behind_lookup(name), {})
  assert of_outputs < 2e-5
  assert of_drafts < 2e-5


@pytest.mark.parametrize(
    'name', exhaustive.all_but(['t5', 'block with features'], BEHIND)
)
def test_beside_a_row_with_tokens_of_another_drafter(name):
  """A row without any is fed nothing while the other catches up."""
  program = step_programs.Program(behind_lookup(name), draft_length.Fixed())
  rule = combinations.RULES['tokenwise']
  drafts = all_drafts.drafts(program, rule, np.arange(2), program.begin(rule))
  drafted = [(each.row, (), each.tokens, each.probs) for each in drafts]
  assert {np.max(each.probs[0]) == 1 for each in drafts} == {True, False}
  assert draft_error(expected(name), program, drafted) < 2e-5


def _one_late(original):
  """Feed each token the features of its own position, as if they were known."""

  def propose(self, params, memory, state, view):
    features = jnp.roll(view.target.last_features, -1, axis=1)
    target = view.target._replace(last_features=features)
    return original(self, params, memory, state, view._replace(target=target))

  return propose


def _stale(original):
  """Show the features of the target call before the last one."""

  def step(setup, batch, state, uniforms):
    after, outcome = original(setup, batch, state, uniforms)
    return after.replace(last_features=state.last_features), outcome

  return step


def _predictions_kept(original):
  """Feed the last committed token alone."""

  def propose(self, params, memory, state, view):
    shown = view.target.last_features
    count = jnp.maximum(view.last_outcome.num_committed, 1)
    at = (count - 1)[:, None, None]
    shown = shown.at[:, :1].set(jnp.take_along_axis(shown, at, axis=1))
    target = view.target._replace(last_features=shown)
    outcome = view.last_outcome._replace(num_committed=jnp.ones_like(count))
    view = view._replace(target=target, last_outcome=outcome)
    return original(self, params, memory, state, view)

  return propose


def _none_of_the_prompt(original):
  def start(self, *args, **kwargs):
    started = original(self, *args, **kwargs)
    zeros = jnp.zeros_like(started.last_features)
    return started._replace(last_features=zeros)

  return start


def _masks_kept(original):
  """Feed the last committed token and masks alone."""

  def propose(self, params, memory, state, view):
    num_fed = jnp.maximum(state.num_fed, view.num_tokens)
    return original(self, params, memory, state.replace(num_fed=num_fed), view)

  return propose


def _features_lost(original):
  def find(self, view, block):
    return jnp.zeros_like(original(self, view, block))

  return find


def _state_lost(original):
  def follow(self, params, state, tokens, read):
    return original(self, params, jnp.zeros_like(state), tokens, read)

  return follow


def _token_lost(original):
  def follow(self, params, state, tokens, read):
    return original(self, params, state, jnp.zeros_like(tokens), read)

  return follow


_HEAD, _BLOCK = feature_head.HeadDrafter, block_head.BlockHead
MUTANTS = {
    'masks are kept': ('block', _BLOCK, 'propose', _masks_kept),
    'features of a block one late': (
        'block with features', _BLOCK, 'propose', _one_late,
    ),
    'features of a block of the call before': (
        'block with features', step_lib, 'step', _stale,
    ),
    'no features of a block': (
        'block with features', _BLOCK, '_features', _features_lost,
    ),
    'no state': ('block', network_lib.NetworkModel, 'follow', _state_lost),
    'no token before': (
        'block', network_lib.NetworkModel, 'follow', _token_lost,
    ),
    'one position late': ('t5', _HEAD, 'propose', _one_late),
    'of the call before': ('t5', step_lib, 'step', _stale),
    'predictions are kept': ('t5', _HEAD, 'propose', _predictions_kept),
    'none of the prompt': (
        'decoder alone',
        decoder_only.DecoderOnly,
        'start_with_features',
        _none_of_the_prompt,
    ),
}


@pytest.mark.parametrize(
    'mutant',
    exhaustive.all_but(['predictions are kept', 'masks are kept'], MUTANTS),
)
def test_features_of_another_position_are_found(mutant, monkeypatch):
  name, owner, attribute, make = MUTANTS[mutant]
  monkeypatch.setattr(owner, attribute, make(getattr(owner, attribute)))
  of_outputs, of_drafts = errors(name, make_pair(name), {})
  assert of_outputs < 2e-5  # they only make drafts worse
  assert of_drafts > 2e-3


@pytest.mark.parametrize(
    'name', ['block of a decoder alone', 'block of a language model']
)
def test_masks_of_a_checkpoint(tmp_path, name):
  """Without features the sizes are given, as in training, and have no masks."""
  target, head = PAIRS[name].loaded()
  path = checkpoints.save(tmp_path, 3, PAIRS[name].params()[1])
  sizes = None
  if head.config.feature_dim is None:
    sizes = dataclasses.replace(PAIRS[name].head, num_masks=0,
                                recurrence_dim=None)  # fmt: skip
  draft = model_drafting.DraftModel(path, config=sizes)
  found = model_drafting.find(draft, target)
  assert [each.config for each in found.models] == [PAIRS[name].head]
  assert found.description.kind == 'block_head'


@dataclasses.dataclass(frozen=True)
class Again:
  """Draws from the distribution of the last token once more."""

  target: contracts.Model
  gamma: int

  @property
  def form(self):
    return forms.Chain(
        self.gamma, num_uniforms=self.gamma, reads_last_features=True
    )

  def init(self, params, context, rows, slots):
    block = self.gamma + 1
    assert context.target.last_features.shape[:2] == (rows, block)
    return None, None

  def propose(self, params, memory, state, view):
    last = jnp.maximum(view.last_outcome.num_committed - 1, 0)
    logits = jnp.take_along_axis(
        view.target.last_features, last[:, None, None], axis=1
    )
    q = jnp.tile(jax.nn.softmax(logits), (1, self.gamma, 1))
    (uniforms,) = view.uniforms.split(self.form.num_uniforms)
    tokens = view.draw(q, uniforms)
    return contracts.Draft(tokens, view.num_wanted, q), state


def test_the_public_harness_shows_features():
  testing.check_drafter(Again, gamma=1, temperatures=(1.0,))


def test_a_head_of_a_decoder_alone_by_its_path(tmp_path):
  """Its checkpoint says its sizes, and its target all else."""
  path = checkpoints.save(tmp_path, 3, tiny_decoders.params(ALONE_HEAD))
  target, _ = PAIRS['decoder alone'].loaded()
  found = model_drafting.find(path, target)
  assert [each.config for each in found.models] == [ALONE_HEAD]
  assert found.description.kind == 'feature_head'
  other = models.Found(dataclasses.replace(ALONE, emb_dim=16))
  with pytest.raises(ValueError, match='of width 8, and the target.*16'):
    model_drafting.find(path, other)
