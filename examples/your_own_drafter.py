# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A drafter of your own: what usually follows a token, in a table.

Checks by enumeration that outputs still follow the target's distribution, then
drafts for the embedded target, which translates to German.

  python examples/your_own_drafter.py
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

import speculative_t5x as st
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms

KNOWN = ['Der Zug aus Bonn kommt um 21:25 Uhr auf Gleis 11 an.']


@dataclasses.dataclass(frozen=True)
class Followers:
  """Drafts the token that followed the last one in texts.

  The parameters are [vocab] int32: a token per token.
  """

  target: contracts.Model
  gamma: int

  @property
  def form(self):
    return forms.Chain(self.gamma)

  def init(self, params, context, rows, slots):
    return None, None  # neither memory nor state

  def propose(self, params, memory, state, view):
    at = jnp.maximum(view.num_tokens - 1, 0)
    last = jnp.take_along_axis(view.sequences, at[:, None], axis=1)[:, 0]
    tokens = []
    for _ in range(self.gamma):
      last = params[last]
      tokens.append(last)
    # Tokens without `probs` were computed, not sampled: point masses.
    draft = contracts.Draft(jnp.stack(tokens, axis=1), view.num_wanted)
    return draft, state


def count_followers(vocabulary, texts):
  """Return the token that follows each token most often; itself if none."""
  counts = np.zeros((vocabulary.num_ids, vocabulary.num_ids), np.int32)
  for text in texts:
    ids = [*vocabulary.encode(text), vocabulary.eos_id]
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
  itself = np.arange(len(counts))
  found = np.where(counts.any(axis=1), counts.argmax(axis=1), itself)
  return jnp.asarray(found, jnp.int32)


def main():
  st.testing.check_drafter(Followers, jnp.array([2, 0, 1]))

  target = st.embedded.target_checkpoint()
  vocabulary = st.load_vocabulary(st.embedded.VOCABULARY_FILE)
  followers = count_followers(vocabulary, KNOWN)
  drafting = st.drafters.Drafting(Followers, 'followers', params=followers)
  decoder = st.load(target, drafting, vocabulary=vocabulary, inputs_length=96)
  text = 'The train from Bonn arrives at platform 11 at 9:25 PM.'
  result, plain = decoder.decode(text), decoder.decode_plain(text)
  assert result.text == plain.text
  print(result.text)
  print(plain.statistics['target_calls'], 'target calls plainly,',
        result.statistics['target_calls'], 'with this drafter')


if __name__ == '__main__':
  main()
