# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The extras of the package, by what is missing without them."""

import contextlib
import importlib.metadata
import re

_PACKAGE = 'speculative_t5x'
# Of a requirement in the metadata of the installed package.
_OF_EXTRA = re.compile(r"([\w-]+).*; extra == '(?!dev|test)([\w-]+)'")
_MODULE = re.compile(r"No module named '(\w+)|import of (\w+)")


def install(extra: str) -> str:
  """Return how to install an extra; no package index has the package."""
  return (
      f"pip install '.[{extra}]' in a checkout, or pip install"
      f" '<file>[{extra}]' with the path of its wheel"
  )


def missing(error: ImportError) -> str | None:
  """Return what is missing and how to get it; None for what no extra has."""
  requirements = []
  with contextlib.suppress(importlib.metadata.PackageNotFoundError):
    requirements = importlib.metadata.requires(_PACKAGE) or []
  for match in filter(None, map(_OF_EXTRA.match, requirements)):
    module, extra = match[1].replace('-', '_'), match[2]
    if (named := _MODULE.search(str(error))) and module in named.groups():
      return (
          f'{module} is not installed. It comes with the extra {extra!r}:'
          f' {install(extra)}.'
      )
  return None
