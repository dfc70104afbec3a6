# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that keyword arguments are shown by their names."""

import inspect
import pydoc

import pytest

import speculative_t5x as st


@pytest.mark.parametrize(
    ('thing', 'names'),
    [
        (st.load, ['gamma: int = 5', 'mask_padded_ids']),
        (st.TextDecoder, ['num_decodes', 'sampling', 'beams: int = 1']),
        (st.TokenDecoder, ['rescale_log_probs', 'draft_beams', 'seed']),
    ],
)
def test_help_shows_names_and_defaults(thing, names):
  text = pydoc.plain(pydoc.render_doc(thing))
  assert [name for name in names if name not in text] == []


def test_a_class_has_the_signature_of_its_init():
  assert 'gamma' in inspect.signature(st.TextDecoder).parameters
