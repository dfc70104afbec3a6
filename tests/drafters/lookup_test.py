# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lookup: what it matches, and what it copies."""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import lookup
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import views

ROWS, EXAMPLES, GAMMA = 4, 2, 3
INPUTS_LENGTH, HINTS_LENGTH, LENGTH = 6, 8, 7
BOUNDS = [(1, 3), (2, 2)]
START, EDGE = 'start', 'edge'


@dataclasses.dataclass(frozen=True)
class Texts:
  """What each row may copy from, and how far it is."""

  hints: np.ndarray | None  # [examples, hints_length]
  inputs: np.ndarray  # [examples, inputs_length]
  outputs: np.ndarray  # [rows, length]; those past num_tokens must not matter
  num_tokens: np.ndarray  # [rows]
  alignment: np.ndarray  # [rows]
  num_wanted: np.ndarray  # [rows]


def find(hints, inputs, output, alignment, bounds, only_hints=False):
  """Return the name of a source and a place in it, None without a match."""
  symbols = [EDGE] * 9 + [START, *output]

  def before(source, row, place):
    if source == 'output':
      return symbols[9 + place]
    if place > 0 and row[place - 1] >= 0:
      return row[place - 1]
    return START if source == 'hints' and place >= 0 else None

  def count(source, row, place):
    number = 0
    while number < bounds[1]:
      symbol = before(source, row, place - number)
      if symbol is None or symbol != symbols[-1 - number]:
        break
      number += 1
      if symbol == START:
        break
    return number

  aligned = len(output) + alignment
  best = None
  sources = ('hints', hints), ('inputs', inputs), ('output', output)
  for rank, (source, row) in enumerate(sources[:1] if only_hints else sources):
    for place, token in enumerate(row):
      if token < 0 and source != 'output':
        continue
      number = count(source, row, place)
      distance = {
          'hints': abs(place - aligned), 'inputs': place, 'output': -place
      }[source]  # fmt: skip
      key = -number, rank, distance
      if number >= bounds[0] and (best is None or key < best[0]):
        best = key, source, place
  if best is not None:
    return best[1:]
  if 0 <= aligned < len(hints) and hints[aligned] >= 0:
    if not output or before('hints', hints, aligned - 1) == symbols[-2]:
      return 'hints', aligned
  return None


def draft_of(texts: Texts, row: int, bounds, only_hints=False):
  """Return what a row should draft, and its next alignment."""
  example = row * len(texts.inputs) // len(texts.outputs)
  hints = [] if texts.hints is None else texts.hints[example].tolist()
  output = texts.outputs[row, : texts.num_tokens[row]].tolist()
  sources = {
      'hints': hints,
      'inputs': texts.inputs[example].tolist(),
      'output': output,
  }
  alignment = int(texts.alignment[row])
  found = find(hints, sources['inputs'], output, alignment, bounds, only_hints)
  if found is None:
    return [], alignment
  source, place = found
  draft = []
  for token in sources[source][place : place + GAMMA]:
    if token < 0 and source != 'output':
      break
    draft.append(token)
  if source == 'hints':
    alignment = place - len(output)
  return draft[: texts.num_wanted[row]], alignment


def propose(drafter, texts: Texts):
  """Return a draft and the next alignments, by the production code."""
  context = views.Context(
      jnp.asarray(texts.inputs),
      None if texts.hints is None else jnp.asarray(texts.hints),
      views.TargetView(None, None, None, None, None),
      None,
  )
  rows = len(texts.outputs)
  memory, _ = drafter.init(None, context, rows, 20)
  view = views.View(
      jnp.asarray(texts.outputs),
      jnp.asarray(texts.num_tokens),
      jnp.asarray(texts.num_wanted),
      uniforms_lib.Uniforms(jnp.zeros((rows, 0)), 'Lookup'),
      None,
      context.target,
      outcome_lib.none_yet(rows, drafter.form.gamma),
  )
  draft, state = drafter.propose(
      None, memory, jnp.asarray(texts.alignment), view
  )
  return draft, state


_compiled = functools.cache(
    lambda drafter: jax.jit(lambda values: propose(drafter, Texts(**values)))
)


def read(drafter, texts: Texts):
  """Return drafts as lists, and the next alignments."""
  draft, state = jax.device_get(_compiled(drafter)(vars(texts)))
  assert draft.probs is None and draft.tokens.min() >= 0
  drafts = [
      row[:count].tolist() for row, count in zip(draft.tokens, draft.lengths)
  ]
  return list(zip(drafts, state.tolist()))


def expected(texts: Texts, bounds, only_hints=False):
  rows = range(len(texts.outputs))
  return [draft_of(texts, row, bounds, only_hints) for row in rows]


def _ids(*shape, low=0, high=3):
  return hnp.arrays(np.int32, shape, elements=st.integers(low, high))


def _texts(with_hints=True):
  return st.builds(
      Texts,
      hints=_ids(EXAMPLES, HINTS_LENGTH, low=-1) if with_hints else st.none(),
      inputs=_ids(EXAMPLES, INPUTS_LENGTH, low=-1),
      outputs=_ids(ROWS, LENGTH),
      num_tokens=_ids(ROWS, high=LENGTH),
      alignment=_ids(ROWS, low=-LENGTH, high=HINTS_LENGTH),
      num_wanted=_ids(ROWS, high=GAMMA),
  )


@pytest.mark.parametrize('bounds', BOUNDS)
@pytest.mark.parametrize('with_hints', [True, False])
@pytest.mark.parametrize('only_hints', [False, True])
@hypothesis.settings(deadline=None, max_examples=100)
@hypothesis.given(data=st.data())
def test_against_a_plain_search(bounds, with_hints, only_hints, data):
  texts = data.draw(_texts(with_hints))
  drafter = lookup.LookupDrafter(GAMMA, bounds[1], bounds[0], only_hints)
  found = read(drafter, texts)
  assert found == expected(texts, bounds, only_hints)
  if only_hints and not with_hints:
    assert not any(draft for draft, _ in found)


@pytest.mark.parametrize('continues_input', [True, False])
def test_an_output_that_continues_its_input(continues_input):
  """Its first tokens match the last ones of the input."""
  drafter = lookup.LookupDrafter(GAMMA, 2, 1, continues_input=continues_input)
  none = contracts.NO_TOKEN
  inputs = np.array(
      [[0, 1, 2, 0, 1, none], [2, 0, 1, 1, 0, 1]], np.int32
  )
  texts = Texts(
      hints=None,
      inputs=inputs,
      outputs=np.zeros((ROWS, LENGTH), np.int32),
      num_tokens=np.array([0, 1, 0, 1], np.int32),
      alignment=np.zeros(ROWS, np.int32),
      num_wanted=np.full(ROWS, GAMMA, np.int32),
  )
  drafts = [draft for draft, _ in read(drafter, texts)]
  after_output = [[1, 2, 0], [1, 1, 0]]  # of its token 0 alone
  if continues_input:
    # After 0 1 and after 1 0; the first match counts.
    assert drafts == [[2, 0, 1], [1, 2, 0], [1, 0, 1], [1]]
  else:
    assert drafts == [[], after_output[0], [], after_output[1]]
