# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the settings that gin has read, before a job begins.

Gin ignores a macro that nothing uses, so a misspelt name would go unnoticed,
and meets a missing value or one of another type in the middle of a job. What
takes the settings checks their ranges.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import difflib
import inspect
import os
import re
import types
import typing
from typing import Any

import gin

from speculative_t5x.jobs.command_line import commands

Config = Mapping[tuple[str, str], Mapping[str, Any]]
_Reference = gin.config.ConfigurableReference
_MACRO = 'gin.macro'
_SIMPLE = bool, int, float, str, types.NoneType
_LITERALS = *_SIMPLE, bytes, complex, dict, list, set, tuple
_UNIONS = typing.Union, types.UnionType
_WORDS = {
    bool: 'True or False',
    int: 'a whole number',
    float: 'a number',
    str: 'a text in quotes',
    os.PathLike: 'a text in quotes',
    types.NoneType: 'None',
}


def config() -> Config:
  """Return the settings that gin has read, by scope and configurable."""
  return gin.config._CONFIG


def value_of(name: str) -> Any:
  """Return the value that a macro was given, or a reference; None without."""
  return config().get((name, _MACRO), {}).get('value')


def set_and_used() -> tuple[set[str], set[str]]:
  """Return the names of the macros that have values, and of those in values."""
  named = {scope for scope, selector in config() if selector == _MACRO}
  used = {
      each.config_key[0]
      for bindings in config().values()
      for value in bindings.values()
      for each in _references(value)
      if each.config_key[1] == _MACRO
  }
  return named, used


def check_used(names: Collection[str], used: Collection[str]) -> None:
  """Reject macros that nothing uses."""
  for name in sorted({*names} - {*used}):
    close = difflib.get_close_matches(name.upper(), sorted(used), n=1)
    hint = f' Did you mean {close[0]}?' if close else ''
    if files := ' or '.join(_choices_that_use(name)):
      hint = f' Add --gin_file={files}.'
    raise commands.UsageError(f'nothing uses the macro {name}.{hint}')


def _choices_that_use(name: str) -> Iterator[str]:
  for folder in sorted({*commands.CHOICES.values()}):
    for path in commands.files(folder):
      if re.search(rf'%{re.escape(name)}\b', path.read_text(encoding='utf-8')):
        yield f'{folder}/{path.name}'


def check_set(selector: str, flags: Collection[str]) -> None:
  """Check that all macros have values that a job's function may come to read.

  Those of a drafter that is not the job's, for one, need none. Some macros have
  a flag of their own.
  """
  unset = sorted(_unset(*_bindings('', selector)))
  if not unset:
    return
  own = {x.upper(): f'--{x}=...' for x in flags}
  given = ' '.join(own.get(x, f'--gin.{x}=...') for x in unset)
  choices = {x: commands.CHOICES[x] for x in unset if x in commands.CHOICES}
  hint = ''.join(f' The files of {y} set {x}.' for x, y in choices.items())
  raise commands.UsageError(
      f'{", ".join(unset)} must be set: {given}, or in a gin file.{hint}'
  )


def _unset(*bindings: tuple[str, Any]) -> set[str]:
  """Return the macros without values, of bindings with their scopes."""
  waiting, seen, unset = [*bindings], set(), set()
  while waiting:
    scope, value = waiting.pop()
    for each in _references(value):
      own, selector = each.config_key
      # A reference without a scope is called in that of its caller.
      key = own or scope, selector
      if key in seen:
        continue
      seen.add(key)
      found = _bindings(*key)
      waiting += found
      is_set = found and repr(found[0][1]) != commands.REQUIRED
      if selector == _MACRO and not is_set:
        unset.add(own)
  return unset


def _bindings(scope: str, selector: str) -> list[tuple[str, Any]]:
  """Return the values of arguments, which inner scopes override."""
  found, parts = {}, scope.split('/')
  for count in range(len(parts) + 1):
    found |= config().get(('/'.join(parts[:count]), selector), {})
  return [(scope, value) for value in found.values()]


def _references(value: Any) -> Iterator[_Reference]:
  if isinstance(value, _Reference):
    yield value
  elif isinstance(value, Mapping):
    for item in value.items():
      yield from _references(item)
  elif isinstance(value, list | tuple):
    for each in value:
      yield from _references(each)


def check_kinds() -> None:
  """Check that settings are what the annotations of arguments say.

  Those of functions and classes of this package are checked. What a reference
  will give is not known yet, and passes.
  """
  for (scope, selector), bindings in config().items():
    function = gin.get_configurable(selector)
    if not function.__module__.startswith('speculative_t5x.'):
      continue  # annotations of others may mean less
    kinds = typing.get_type_hints(
        function.__init__ if inspect.isclass(function) else function
    )
    for argument, value in bindings.items():
      kind = kinds.get(argument, Any)
      macro, value = _follow(value)
      if not _includes(kind, value):
        name = f'{scope}/{selector}.{argument}'.removeprefix('/')
        raise commands.UsageError(
            f'{macro or name} must be {_in_words(kind)}, got {value!r}.'
        )


def _in_words(kind: Any) -> str:
  """Return an annotation as a user types the values."""
  origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
  if origin in _UNIONS:
    is_written = lambda x: x in _WORDS or typing.get_origin(x) is not None
    kinds = filter(is_written, inner) if any(map(is_written, inner)) else inner
    words = dict.fromkeys(map(_in_words, kinds))
    if _WORDS[float] in words:
      words.pop(_WORDS[int], None)
    return ' or '.join(words)
  if origin is typing.Literal:
    return ' or '.join(map(repr, inner))
  if origin in _WORDS:
    return _WORDS[origin]
  if issubclass(origin, Mapping):
    return '{...}'
  if issubclass(origin, Sequence):
    return 'several in parentheses'
  return f'a {origin.__name__}'


def _follow(value: Any) -> tuple[str, Any]:
  """Return the name of the macro that holds a value, if any, and the value."""
  macros = ['']
  while isinstance(value, _Reference):
    held = config().get(value.config_key, {})
    if value.config_key[1] != _MACRO or 'value' not in held:
      break
    macro, value = value.config_key[0], held['value']
    if macro in macros:
      raise commands.UsageError(f'{macro} refers to itself. Give it a value.')
    macros.append(macro)
  return macros[-1], value


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
    return issubclass(kind, Mapping)
  if isinstance(value, list | tuple) and issubclass(kind, Sequence):
    if kind is not tuple or inner[-1] is ...:
      inner = inner[:1] * len(value)
    return len(inner) == len(value) and all(map(_includes, inner, value))
  return False


def in_macros(text: str, arguments: Mapping[str, object]) -> str:
  """Return a message that calls arguments by the macros that set them."""
  for argument, given in arguments.items():
    macros = {
        macro
        for bindings in config().values()
        if argument in bindings
        for macro, value in [_follow(bindings[argument])]
        if macro
    }
    if len(macros) > 1:  # of several models
      macros = {x for x in macros if value_of(x) == given}
    if len(macros) == 1:
      text = re.sub(rf'\b{argument}\b', macros.pop(), text)
  return text
