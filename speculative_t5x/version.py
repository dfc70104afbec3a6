# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of the package, and the Pythons and JAXes that it runs with."""

import sys

VERSION = '0.1.0'  # also read when the package is built

_PYTHONS = (3, 11), (3, 13)  # the first and the last, as in pyproject.toml
_FIRST_JAX = (0, 10)


class UnsupportedError(ImportError):
  """This Python or JAX cannot run the package."""


def check() -> None:
  """Check Python and JAX before one of them fails for its age.

  Raises:
    UnsupportedError: if one of them is out of the range.
  """
  text = lambda version: '.'.join(map(str, version))
  first, last = _PYTHONS
  if not first <= sys.version_info[:2] <= last:
    raise UnsupportedError(
        f'speculative_t5x runs with Python {text(first)} to {text(last)}, and'
        f' this is {text(sys.version_info[:2])}. Install one of them, and make'
        ' an environment of it.'
    )
  import jax

  if jax.__version_info__[:2] < _FIRST_JAX:
    raise UnsupportedError(
        f'speculative_t5x needs JAX {text(_FIRST_JAX)} or later, and this is'
        f" {jax.__version__}. Run pip install -U 'jax' ('jax[cuda12]' or"
        " 'jax[cuda13]' for a GPU, 'jax[tpu]' for a TPU) and restart Python."
    )
