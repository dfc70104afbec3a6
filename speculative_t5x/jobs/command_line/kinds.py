# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that settings of gin files are what the annotations of arguments say.

This is the one place where the kind of a setting is checked, before a job
begins. What takes the settings checks their ranges.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import inspect
import types
import typing
from typing import Any

import gin
import jax
import numpy as np

from speculative_t5x.jobs.command_line import commands

_Config = Mapping[tuple[str, str], Mapping[str, Any]]
_SIMPLE = bool, int, float, str, types.NoneType
_LITERALS = *_SIMPLE, bytes, complex, dict, list, set, tuple
_UNIONS = typing.Union, types.UnionType


def check(config: _Config) -> None:
  """Check all settings of functions and classes of this package.

  What a reference will give is not known yet, and passes. The config is what
  gin gives to a finalize hook.
  """
  for (scope, selector), bindings in config.items():
    function = gin.get_configurable(selector)
    if not function.__module__.startswith('speculative_t5x.'):
      continue  # annotations of others may mean less
    kinds = typing.get_type_hints(
        function.__init__ if inspect.isclass(function) else function
    )
    for argument, value in bindings.items():
      kind = kinds.get(argument, Any)
      macro, value = _follow(config, value)
      value = _resolve(config, value)
      if not _includes(kind, value):
        name = f'{scope}/{selector}.{argument}'.removeprefix('/')
        raise commands.UsageError(
            f'{macro or name} must be {_in_words(kind)}, got {value!r}.'
        )


def _in_words(kind: Any) -> str:
  """Return an annotation in words, without arrays: gin writes none."""
  is_union = typing.get_origin(kind) in _UNIONS
  kinds = typing.get_args(kind) if is_union else [kind]
  return ' | '.join(
      inspect.formatannotation(each).removeprefix('collections.abc.')
      for each in kinds
      if each not in (jax.Array, np.ndarray)
  ).replace('NoneType', 'None')


def _follow(config: _Config, value: Any) -> tuple[str, Any]:
  """Return the name of the macro that holds a value, if any, and the value."""
  macros = ['']
  while isinstance(value, gin.config.ConfigurableReference):
    held = config.get(value.config_key, {})
    if value.config_key[1] != 'gin.macro' or 'value' not in held:
      break
    macro, value = value.config_key[0], held['value']
    if macro in macros:
      raise commands.UsageError(f'{macro} refers to itself. Give it a value.')
    macros.append(macro)
  return macros[-1], value


def _resolve(config: _Config, value: Any) -> Any:
  """Return a value with the values of macros in their places."""
  _, value = _follow(config, value)
  if isinstance(value, dict):
    return {key: _resolve(config, each) for key, each in value.items()}
  if isinstance(value, list | tuple):
    return type(value)(_resolve(config, each) for each in value)
  return value


def _includes(kind: Any, value: Any) -> bool:
  """Return whether a value in gin's syntax is of the kind of an annotation."""
  kind, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
  if kind in _UNIONS:
    return any(_includes(each, value) for each in inner)
  if kind is typing.Literal:
    return value in inner
  if kind is Any or not isinstance(value, _LITERALS):
    # A reference. Without parentheses it gives the class, not one of its kind.
    is_plain = not dataclasses.is_dataclass(kind)
    return is_plain or getattr(value, 'evaluate', True)
  if kind in _SIMPLE:  # True and False are not numbers
    return type(value) is kind or (kind is float and type(value) is int)
  if isinstance(value, dict):
    return issubclass(kind, Mapping) and all(
        _includes(one, each)
        for item in value.items()
        for one, each in zip(inner, item, strict=True)
    )
  if isinstance(value, list | tuple) and issubclass(kind, Sequence):
    if kind is not tuple or inner[-1] is ...:
      inner = inner[:1] * len(value)
    return len(inner) == len(value) and all(map(_includes, inner, value))
  return False
