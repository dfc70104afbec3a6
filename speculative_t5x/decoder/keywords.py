# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments that a function collects by `**`, shown by their names.

`named` tells them to `help` and `inspect.signature`, and refuses other names.
"""

from collections.abc import Callable, Iterable
import functools
import inspect
from typing import Any, TypeVar

from speculative_t5x.speculation import sampling as sampling_lib

_F = TypeVar('_F', bound=Callable[..., Any])


def named(*sources: Callable[..., Any]) -> Callable[[_F], _F]:
  """Return a decorator that shows what a function collects by `**`.

  It collects the keyword-only arguments of the sources.
  """
  collected = [
      parameter
      for source in sources
      for parameter in inspect.signature(source).parameters.values()
      if parameter.kind is inspect.Parameter.KEYWORD_ONLY
  ]

  def decorate(function: _F) -> _F:
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    signature = signature.replace(parameters=[*own, *collected])
    names = [name for name in signature.parameters if name != 'self']

    @functools.wraps(function)
    def checked(*args, **kwargs):
      _check(kwargs, names)
      return function(*args, **kwargs)

    checked.__signature__ = signature
    return checked

  return decorate


def _check(arguments: dict[str, Any], names: Iterable[str]) -> None:
  """Raise TypeError for an argument without a parameter of its name."""
  for name, value in arguments.items():
    if name in names:
      continue
    if name in vars(sampling_lib.GREEDY):
      remedy = (
          'It is a part of the sampling: pass'
          f' sampling=speculative_t5x.Sampling({name}={value!r}).'
      )
    else:
      remedy = f'There are {", ".join(names)}.'
    raise TypeError(f'There is no argument {name}. {remedy}')
