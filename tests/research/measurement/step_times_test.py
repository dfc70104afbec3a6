# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the timed parts do the work of a step.

No test depends on times.
"""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.networks import network as network_lib
from speculative_t5x.policies import schedule
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import simulated_acceptance
from tests import exhaustive
from tests import tiny

LENGTH = 12
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
SHAPES = exhaustive.all_but([(3, 2)], [(1, 1), (3, 2)])  # rows and gamma
ENCODERS = 'encoder_target', 'encoder_draft'
WIDTHS = {1: (1, 2), 2: (1, 2, 3)}  # of verification, by gamma


@dataclasses.dataclass(frozen=True)
class _Counted:
  """A model that records the tokens it is fed whenever it is run."""

  model: network_lib.NetworkModel
  name: str
  calls: list = dataclasses.field(hash=False)

  def __getattr__(self, name):
    return getattr(self.model, name)

  def decode(self, params, memory, cache, tokens, positions, at):
    keep = lambda tokens: self.calls.append((self.name, np.asarray(tokens)))
    jax.debug.callback(keep, tokens)
    return self.model.decode(params, memory, cache, tokens, positions, at)


@functools.cache
def programs_of(rows, gamma):
  """Return the programs of a pair, a batch, and the tokens fed."""
  calls = []
  decoder = tiny.decoder(CONFIG, gamma=gamma, length=LENGTH)
  target, make = decoder.target_model, decoder.loaded_drafter.make

  def make_counted(_, max_draft_tokens):
    drafter = make(target, max_draft_tokens)
    counted = _Counted(drafter.model, 'draft', calls)
    return dataclasses.replace(drafter, model=counted)

  decoder = decoder.with_drafter(
      dataclasses.replace(decoder.loaded_drafter, make=make_counted), gamma
  )
  decoder.target_model = _Counted(target, 'target', calls)
  (request,) = tiny.batches(
      tiny.encoder_tokens(rows, 9),
      length=LENGTH,
      sampling=sampling.Sampling(1.0),
  )
  return part_programs.PartPrograms(decoder), request, calls


@functools.cache
def parts_of(rows, gamma):
  """Return the parts, and the list of tokens fed from now on."""
  programs, request, calls = programs_of(rows, gamma)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(step_times, '_LOOP_S', 1e3)  # for as many steps as there are
    return step_times.Parts(programs, request), calls


def _heard(calls):
  """Return the tokens fed since the last call."""
  jax.effects_barrier()
  found = list(calls)
  calls.clear()
  return found


@pytest.mark.parametrize(('rows', 'gamma'), SHAPES)
class TestWork:

  def test_each_part_runs_its_steps(self, rows, gamma):
    parts, calls = parts_of(rows, gamma)
    _heard(calls)
    steps, found = parts.num_steps, {}
    for name, program in parts._programs.items():
      jax.block_until_ready(program())
      found[name] = collections.Counter(
          (who, fed.shape) for who, fed in _heard(calls)
      )
    drafted = max(gamma, 2)
    later = {('draft', (rows, 1)): steps * (gamma - 1)} if gamma > 1 else {}
    assert found == {
        't1': {('target', (rows, 1)): steps},
        't_verify': {('target', (rows, gamma + 1)): steps},
        **{
            f't_width_{width}': {('target', (rows, width)): steps}
            for width in WIDTHS[gamma]
        },
        't_draft2': {('draft', (rows, 2)): steps},
        'drafts': {
            ('draft', (rows, 2)): steps,
            ('draft', (rows, 1)): steps * (drafted - 1),
        },
        't_call': {
            ('draft', (rows, 2)): steps,
            **later,
            ('target', (rows, gamma + 1)): steps,
        },
    }

  def test_each_draft_is_drawn_anew(self, rows, gamma):
    """Later draft tokens are fed drawn tokens, with new uniforms each time."""
    parts, calls = parts_of(rows, gamma)
    _heard(calls)
    _, sequences = jax.block_until_ready(parts._programs['drafts']())
    fed = {f.tobytes() for _, f in _heard(calls) if f.shape == (rows, 1)}
    assert len(fed) >= 8
    # The next draft reads the text including this one.
    assert np.any(sequences[:, :gamma] != part_programs._TOKEN)


class TestSettings:
  """Parts use the settings of the request, like its run."""

  @pytest.mark.parametrize('alpha', [0.0, 1.0])
  def test_rule(self, alpha):
    programs, request, calls = programs_of(3, 2)
    # Padding rows cost as much as other rows.
    request = request.replace(
        rule=simulated_acceptance.make_rule(alpha),
        limits=jnp.zeros((3,), jnp.int32),
    )
    parts = programs.bind(request, num_steps=5)
    for name in ('t_verify', 't_call'):
      state = jax.device_get(parts[name]())
      assert state.num_calls.tolist() == [5, 5, 5]
      found = state.outcome
      assert np.all(found.num_drafted > 0)
      kept = found.num_drafted if alpha else np.zeros(3)
      np.testing.assert_array_equal(found.num_accepted, kept)
    _heard(calls)

  def test_no_policy_shortens_what_is_timed(self):
    programs, request, calls = programs_of(3, 2)
    decoder = programs.decoder
    parts = part_programs.PartPrograms(
        decoder.with_drafter(decoder.loaded_drafter, 2, schedule.Schedule((0,)))
    ).bind(request, num_steps=2)
    for name in ('t_verify', 't_call'):
      jax.block_until_ready(parts[name]())
      fed = [tokens.shape for who, tokens in _heard(calls) if who == 'target']
      assert fed[-2:] == [(3, 3)] * 2


@pytest.mark.parametrize(('rows', 'gamma'), SHAPES)
@pytest.mark.parametrize(('drafts', 'later'), [(4.0, 3.0), (0.5, 0.0)])
def test_later_draft_step_is_the_cost_of_a_longer_draft(
    monkeypatch, rows, gamma, drafts, later
):
  """A fake clock gives the times of parts; the result is never negative."""
  parts, _ = parts_of(rows, gamma)
  spans = {'t1': 2.0, 't_verify': 3.0, 't_draft2': 1.0, 't_call': 6.0}
  spans['drafts'] = drafts
  spans |= {f't_width_{width}': 0.5 * width for width in WIDTHS[gamma]}
  by_program = {
      id(program): spans[name] for name, program in parts._programs.items()
  }
  monkeypatch.setattr(
      step_times, 'seconds', lambda program: by_program[id(program)]
  )
  for values in parts.seconds.values():
    values.clear()
  parts.time_round()
  for name, span in zip(ENCODERS, (7.0, 5.0), strict=True):
    parts.seconds[name].append(span)
  times = parts.times()
  assert (times.target_encoder_s, times.draft_encoder_s) == (7.0, 5.0)
  spans['t_draft'] = later / (max(gamma, 2) - 1)
  step = lambda name: pytest.approx(1e3 * spans[name] / parts.num_steps)
  for name in ('t1', 't_verify', 't_draft', 't_draft2', 't_call'):
    assert getattr(times, f'{name}_ms') == step(name)
  widths = [f't_width_{width}' for width in WIDTHS[gamma]]
  assert list(times.t_width_ms) == list(map(step, widths))


def test_nothing_runs_when_timing_of_encoders_begins(monkeypatch):
  """Calls return before they have run: a timing would include them."""
  programs, request, _ = programs_of(3, 2)
  under_way = []

  def ready(x):
    under_way.clear()
    return wait(x)

  def start(*args):
    under_way.append(args)
    return started(*args)

  wait, started = jax.block_until_ready, programs._start_target
  monkeypatch.setattr(jax, 'block_until_ready', ready)
  monkeypatch.setattr(programs, '_start_target', start)
  programs.bind_encoders(request)
  assert not under_way


@pytest.mark.parametrize(
    'options',
    exhaustive.all_but(
        [dict(nodes=6, width=2)],
        [dict(nodes=6, width=2), dict(candidates=(2, 2))],
    ),
)
def test_trees(options):
  """All parts are timed but verification, which a whole step has."""
  draft = tiny.model(CONFIG, noise=0.15)
  decoder = tiny.decoder(CONFIG, gamma=2, length=LENGTH).with_drafter(
      tree_drafting.CandidateTree(draft, **options), 2
  )
  (batch,) = tiny.batches(
      tiny.encoder_tokens(2, 9),
      length=LENGTH,
      sampling=sampling.Sampling(1.0),
  )
  parts = part_programs.PartPrograms(decoder).bind(decoder.place(batch), 2)
  assert {*parts} == {'t1', 't_draft2', 'drafts', 't_call'}
  _, sequences = jax.block_until_ready(parts['drafts']())
  assert np.any(sequences[:, :2] != part_programs._TOKEN)
  state = jax.block_until_ready(parts['t_call']())
  np.testing.assert_array_equal(state.outcome.num_computed, 2)


def test_block_heads_with_features():
  """A draft of one token is fed as many features as a step of one shows."""
  width = CONFIG.emb_dim
  head = tiny.config(
      num_encoder_layers=0, num_decoder_layers=1, encoder_dim=width,
      feature_dim=width, num_masks=3, recurrence_dim=3,
  )  # fmt: skip
  draft = model_drafting.of_model(models.make_model(head, tiny.params(head)))
  decoder = tiny.decoder(CONFIG, gamma=3, length=LENGTH).with_drafter(draft, 3)
  (batch,) = tiny.batches(tiny.encoder_tokens(2, 9), length=LENGTH)
  parts = part_programs.PartPrograms(decoder).bind(decoder.place(batch), 2)
  for name, num_tokens in ('t_draft2', 1), ('drafts', 3):
    _, sequences = jax.block_until_ready(parts[name]())
    is_drafted = sequences != part_programs._TOKEN
    assert not np.any(is_drafted[:, num_tokens:])
  state = jax.block_until_ready(parts['t_call']())
  np.testing.assert_array_equal(state.outcome.num_drafted, 3)
