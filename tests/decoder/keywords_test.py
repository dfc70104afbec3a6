# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that keyword arguments are shown by their names."""

import inspect
import pydoc
import typing

import pytest

import speculative_t5x as st
from speculative_t5x.research.reports import token_trace

OF_OPTIONS = (
    st.load, st.TextDecoder.__init__, st.TokenDecoder.__init__,
    st.embedded.load_decoder,
)  # fmt: skip
OF_DECODING = (
    st.TextDecoder.decode, st.TextDecoder.decode_plain, st.TextDecoder.stream,
    st.TextDecoder.generate, st.TokenDecoder.generate,
)  # fmt: skip
OF_SETTINGS = (token_trace.trace,)


@pytest.mark.parametrize('function', [*OF_OPTIONS, *OF_DECODING, *OF_SETTINGS])
def test_names_are_those_of_the_typed_dict(function):
  """What an editor reads is what `help` shows, with defaults."""
  (*_, name) = inspect.signature(function.__wrapped__).parameters
  unpacked = function.__wrapped__.__annotations__[name]
  (typed,) = typing.get_args(unpacked)
  shown = inspect.signature(function).parameters
  own = inspect.signature(function.__wrapped__).parameters
  assert shown.keys() - own.keys() == typing.get_type_hints(typed).keys()
  collected = [shown[name] for name in typing.get_type_hints(typed)]
  assert all(x.default is not x.empty for x in collected)


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
