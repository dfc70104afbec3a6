# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that settings of gin files are what the annotations of arguments say.

This is the one place where the kind of a setting is checked, before a job
begins. What takes the settings checks their ranges.
"""

from collections.abc import Mapping, Sequence
import inspect
import os
import types
import typing
from typing import Any

_NAMES = {
    bool: 'True or False',
    int: 'a whole number',
    float: 'a number',
    str: 'a string',
    types.NoneType: 'None',
}
_LITERALS = *_NAMES, bytes, complex, dict, list, set, tuple
_REFERENCE = 'a reference that begins with @'
_UNIONS = typing.Union, types.UnionType


def check(config: types.ModuleType) -> None:
  """Checks all settings of functions and classes of this package.

  What a reference will give is not known yet, and passes.

  Args:
    config: the module `gin.config`, after gin files were read.
  Raises:
    ValueError: naming the first macro or argument with another kind of value.
  """
  for (scope, selector), bindings in config._CONFIG.items():
    wrapped = config._REGISTRY[selector].wrapped
    if not wrapped.__module__.startswith('speculative_t5x.'):
      continue  # annotations of others may mean less
    kinds = typing.get_type_hints(
        wrapped.__init__ if inspect.isclass(wrapped) else wrapped
    )
    for argument, value in bindings.items():
      kind = kinds.get(argument, Any)
      name = f'{scope}/{selector}.{argument}'
      macro, value = _follow(config, value)
      value = _resolve(config, value)
      if not _includes(kind, value):
        raise ValueError(
            f'{macro or name.removeprefix("/")} must be {_describe(kind)}, got'
            f' {value!r}.{_remedy(kind, value)}'
        )


def _follow(config: types.ModuleType, value: Any) -> tuple[str, Any]:
  """Returns the name of the macro that holds a value, if any, and the value."""
  macros = ['']
  while isinstance(value, config.ConfigurableReference):
    held = config._CONFIG.get(value.config_key, {})
    if value.config_key[1] != 'gin.macro' or 'value' not in held:
      break
    macro, value = value.config_key[0], held['value']
    if macro in macros:
      raise ValueError(f'{macro} refers to itself. Give it a value.')
    macros.append(macro)
  return macros[-1], value


def _resolve(config: types.ModuleType, value: Any) -> Any:
  """Returns a value with the values of macros in their places."""
  _, value = _follow(config, value)
  if isinstance(value, dict):
    return {key: _resolve(config, each) for key, each in value.items()}
  if isinstance(value, list | tuple):
    return type(value)(_resolve(config, each) for each in value)
  return value


def _includes(kind: Any, value: Any) -> bool:
  """Returns whether a value in gin's syntax is of the kind of an annotation."""
  kind, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
  if kind in _UNIONS:
    return any(_includes(each, value) for each in inner)
  if kind is Any or not isinstance(value, _LITERALS):
    return True  # a reference
  if kind in _NAMES:  # True and False are no numbers
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


def _describe(kind: Any) -> str:
  """Returns the values of a kind in words."""
  outer, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
  if outer in _UNIONS:
    told = dict.fromkeys(map(_describe, inner))
    return ' or '.join(each for each in told if each)
  if outer in _NAMES:
    return _NAMES[outer]
  if issubclass(outer, os.PathLike):
    return ''  # gin writes paths as strings
  if issubclass(outer, Mapping):
    return f'{{{": ".join(map(_describe, inner))}}}'
  if issubclass(outer, Sequence):
    told = ['...' if each is ... else _describe(each) for each in inner]
    return f'({", ".join(told if outer is tuple else [*told, "..."])})'
  return _REFERENCE


def _remedy(kind: Any, value: Any) -> str:
  if type(value) in (int, float) and _includes(kind, ''):
    return f' Quote a string that looks like a number: "\'{value}\'".'
  return ''
