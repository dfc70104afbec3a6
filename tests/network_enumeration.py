# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exact distribution of the production step with networks.

`enumeration` walks the uniforms of a step. Here the models are tiny T5s: the
expected distributions are teacher-forced, without a cache, and the production
step begins from caches that hold the committed tokens and noise behind them.
"""

import collections
from collections.abc import Callable
import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import testing
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import words
from tests import enumeration
from tests import tiny

ROWS = 1024  # paths per call of the compiled step
VOCAB = 4  # padding, the end, and two more
SIZES = dict(
    vocab_size=VOCAB, emb_dim=8, num_heads=2, head_dim=4, mlp_dim=8,
    num_encoder_layers=1,
)  # fmt: skip

# Teacher-forced logits [rows, length, vocab] of the tokens fed [rows, length]
# to a decoder, given the output of the target's encoder and which of its
# positions are inputs.
Logits = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def teacher_forced(config: t5.T5Config, params) -> Logits:
  """Returns the logits of a decoder on an encoder's output."""

  def logits(encoded, is_input, fed):
    return t5_modules.Transformer(config).apply(
        {'params': params},
        encoded,
        is_input.astype(jnp.int32),
        fed,
        jnp.ones_like(fed),
        False,
        method='decode',
    )

  return logits


@dataclasses.dataclass(frozen=True, eq=False)
class Case(enumeration.Case):
  """A target, a drafter that shares some of it, and one input per example.

  Attributes:
    target: as it is decoded with.
    target_logits: of the target.
    drafter: as jobs have it.
    draft_logits: of what the drafter should draft with.
    inputs: [examples, inputs_length] int32.
    rule: which draft tokens are kept.
  """

  target: models.Model = None
  target_logits: Logits = None
  drafter: source.Drafting = None
  draft_logits: Logits = None
  inputs: jax.Array = None
  rule: contracts.Rule = verification.TOKENWISE

  def distributions(self, example, tokens):
    """See `enumeration.Case.distributions`."""
    place = example, *tokens, *([0] * (self._depth - len(tokens)))
    return tuple(probs[place][len(tokens)] for probs in self._tables)

  def logits(self, example, tokens):
    """See `enumeration.Case.logits`; up to a constant."""
    p, _ = self.distributions(example, tokens)
    return np.log(p, where=p > 0, out=np.full(p.shape, -np.inf))

  @property
  def length(self) -> int:
    return max(self.limits)

  @property
  def _depth(self) -> int:
    """The most tokens before a distribution that a path looks at."""
    return self.length - 1 + self.gamma

  @functools.cached_property
  def _tables(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns p and q after every text, [examples, *tokens, length, vocab]."""
    texts = list(itertools.product(range(VOCAB), repeat=self._depth))
    fed = jnp.pad(jnp.array(texts, jnp.int32), ((0, 0), (1, 0)))
    encoded, memory = tiny.encode(
        self.target.config, self.target.params, self.inputs
    )
    shape = len(self.limits), *([VOCAB] * self._depth), -1, VOCAB

    def table(logits, sampling):
      probs = jax.jit(
          jax.vmap(
              lambda output, is_input: sampling_lib.standardize(
                  logits(
                      jnp.tile(output, (len(fed), 1, 1)),
                      jnp.tile(is_input, (len(fed), 1)),
                      fed,
                  ),
                  sampling,
              )
          )
      )(encoded, memory.is_input)
      return np.asarray(probs, np.float64).reshape(shape)

    return (
        table(self.target_logits, self.sampling),
        table(self.draft_logits, self.draft_sampling),
    )


class Production:
  """The production step over any number of paths, compiled once."""

  def __init__(self, case: Case):
    self._case = case
    target = case.target
    self._model = network_lib.NetworkModel(target.config, t5.SPECIAL_IDS)
    self._drafter = case.drafter.make(self._model, case.gamma)
    self._step = jax.jit(self._run)

  def _run(self, paths, noise):
    examples, sequences, num_tokens, log_probs, uniforms, behind = paths
    case = self._case
    setup = state_lib.Setup(
        self._model,
        case.target.params,
        case.sampling,
        self._drafter,
        case.drafter.params,
        case.draft_sampling,
        case.rule,
    )
    limits = jnp.array(case.limits)[examples]
    batch, state = state_lib.begin(
        setup, case.inputs[examples], None, limits, length=case.length
    )
    fed = jnp.pad(sequences, ((0, 0), (1, 0)))
    starts = jnp.zeros_like(num_tokens)

    def cache(model, params, memory, empty, num_fed):
      _, full = model.decode(params, memory, empty, fed, starts, None)
      return poison(full, num_fed, noise)

    draft_state = state.draft_state
    if draft_state is not None:
      num_fed = jnp.maximum(num_tokens - behind, 0)
      draft_state = draft_model.DraftModelState(
          cache(
              self._drafter.model,
              case.drafter.params,
              batch.draft_memory.memory,
              draft_state.cache,
              num_fed,
          ),
          num_fed,
      )
    state = state.replace(
        sequences=sequences,
        num_tokens=num_tokens,
        log_probs=log_probs,
        target_cache=cache(
            self._model,
            case.target.params,
            batch.memory,
            state.target_cache,
            num_tokens,
        ),
        draft_state=draft_state,
    )
    after = step_lib.step(setup, batch, state, uniforms)[0]
    return after.sequences, after.num_tokens, after.log_probs, after.has_ended

  def outcomes(self, paths, rng):
    """Returns tokens and whether they have ended, of each path."""
    case, found = self._case, []
    for i in range(0, len(paths), ROWS):
      chunk = paths[i : i + ROWS]
      padded = chunk + [chunk[0]] * (ROWS - len(chunk))
      sequences = np.zeros((ROWS, case.length), np.int32)
      for row, path in enumerate(padded):
        sequences[row, : len(path[1])] = path[1]
      arrays = (
          np.array([path[0] for path in padded], np.int32),
          sequences,
          np.array([len(path[1]) for path in padded], np.int32),
          np.zeros((ROWS,), np.float32),
          words.words(np.array([path[3] for path in padded])),
          rng.integers(0, 2, (ROWS,), np.int32),
      )
      noise = np.float32(rng.normal(scale=30.0, size=16))
      tokens, counts, _, ended = jax.device_get(
          self._step(jax.tree.map(jnp.asarray, arrays), noise)
      )
      for j in range(len(chunk)):
        found.append((tuple(tokens[j, : counts[j]].tolist()), bool(ended[j])))
    return found


def poison(cache, num_fed: jax.Array, noise: jax.Array):
  """Returns a cache with noise in the slots from `num_fed` on."""

  def poisoned(x):
    is_fed = jnp.arange(x.shape[-1]) < num_fed[:, None, None, None]
    other = jnp.resize(noise, x.shape).astype(x.dtype)
    return jnp.where(is_fed, x, other)

  return jax.tree.map(poisoned, cache)


def joint_distributions(case: Case) -> tuple[list[dict], int]:
  """Returns the distribution of each example's output, and the paths."""
  production, rng = Production(case), np.random.default_rng(0)
  enumerator = testing.Enumerator(case.rule)
  distributions = [collections.defaultdict(float) for _ in case.limits]
  frontier = {(e, ()): 1.0 for e in range(len(case.limits))}
  num_paths = 0
  while frontier:
    paths = [
        (*start, frontier[start] * length, uniforms)
        for start, length, uniforms in enumeration.paths_of(
            case, enumerator, list(frontier)
        )
    ]
    num_paths += len(paths)
    frontier = collections.defaultdict(float)
    for path, (tokens, has_ended) in zip(
        paths, production.outcomes(paths, rng), strict=True
    ):
      into = distributions[path[0]] if has_ended else frontier
      into[tokens if has_ended else (path[0], tokens)] += path[2]
  return distributions, num_paths


def exact_distribution(case: Case, example: int) -> dict:
  """Returns the target's distribution over outputs, by the chain rule."""
  limit, found = case.limits[example], {}

  def extend(tokens, weight):
    is_end = tokens and tokens[-1] == t5.SPECIAL_IDS.end
    if is_end or len(tokens) == limit:
      found[tokens] = weight
      return
    p = case.distributions(example, tokens)[0]
    for token in range(VOCAB):
      if p[token] > 0:
        extend((*tokens, token), weight * p[token])

  extend((), 1.0)
  return found


def error(case: Case) -> float:
  """Returns the largest error of the probability of an output."""
  distributions, num_paths = joint_distributions(case)
  largest = 0.0
  for example, found in enumerate(distributions):
    exact = exact_distribution(case, example)
    for output in exact.keys() | found.keys():
      difference = exact.get(output, 0.0) - found.get(output, 0.0)
      largest = max(largest, abs(difference))
  print(f'{num_paths} paths, error {largest:.1e}')
  return largest


def make_case(
    config: t5.T5Config,
    drafter: source.Drafting,
    draft_logits: Logits,
    *,
    gamma: int,
    limits: tuple[int, ...] = (3, 2),
    rule: contracts.Rule = verification.TOKENWISE,
    **sampling,
) -> Case:
  """Returns a case of a tiny target of this config."""
  params = tiny.params(config)
  rules = sampling_lib.make_sampling(**sampling)
  return Case(
      target_tables=np.zeros((1, VOCAB)),
      draft_tables=np.zeros((1, VOCAB)),
      limits=limits,
      gamma=gamma,
      sampling=rules,
      draft_sampling=rules,
      target=models.make_model(config, params),
      target_logits=teacher_forced(config, params),
      drafter=drafter,
      draft_logits=draft_logits,
      inputs=tiny.encoder_tokens(len(limits), 5, VOCAB),
      rule=rule,
  )
