# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fields of a request: one table, from which all else is made.

What a field may be is a kind, which checks values, describes itself in words
for messages and pages, and as JSON Schema for `/openapi.json`.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
from typing import Any, Protocol

from speculative_t5x.serving import api_error

REQUIRED = object()
MAX_CHOICES = 128  # of a prompt, and prompts of a request
MAX_STOPS = 4  # as OpenAI has it
# No vocabulary has pieces so long, so that a prompt with more characters per
# token that fits has too many tokens: they need not be counted.
_CHARACTERS_PER_TOKEN = 64


class Kind(Protocol):
  """The values that a field may have, as JSON is read by `completions`."""

  @property
  def words(self) -> str:
    """The values, as they follow 'must be'."""

  @property
  def schema(self) -> dict[str, Any]:
    """JSON Schema of the values."""

  def includes(self, value: Any) -> bool:
    """Return whether a value of JSON is one of them."""


@dataclasses.dataclass(frozen=True)
class Number:
  """Numbers from the least to the most."""

  least: float
  most: float
  is_whole: bool = False

  @property
  def words(self) -> str:
    kind = 'a whole number' if self.is_whole else 'a number'
    return f'{kind} from {self.least} to {self.most}'

  @property
  def schema(self) -> dict[str, Any]:
    kind = 'integer' if self.is_whole else 'number'
    return {'type': kind, 'minimum': self.least, 'maximum': self.most}

  def includes(self, value: Any) -> bool:
    types = int if self.is_whole else int | float
    is_number = isinstance(value, types) and not isinstance(value, bool)
    return is_number and self.least <= value <= self.most


@dataclasses.dataclass(frozen=True)
class Text:
  """Texts of so many characters."""

  least: int = 0
  most: int = 1 << 20

  @property
  def words(self) -> str:
    return f'a text of {self.least} to {self.most} characters'

  @property
  def schema(self) -> dict[str, Any]:
    return {
        'type': 'string', 'minLength': self.least, 'maxLength': self.most
    }  # fmt: skip

  def includes(self, value: Any) -> bool:
    return isinstance(value, str) and self.least <= len(value) <= self.most


@dataclasses.dataclass(frozen=True)
class Flag:
  """True or false."""

  words = 'true or false'
  schema = {'type': 'boolean'}

  def includes(self, value: Any) -> bool:
    return isinstance(value, bool)


@dataclasses.dataclass(frozen=True)
class Several:
  """Lists of so many values of one kind."""

  kind: Kind
  most: int
  name: str  # of the values, in the plural

  @property
  def words(self) -> str:
    return f'a list of 1 to {self.most} {self.name}'

  @property
  def schema(self) -> dict[str, Any]:
    return {
        'type': 'array',
        'items': self.kind.schema,
        'minItems': 1,
        'maxItems': self.most,
    }

  def includes(self, value: Any) -> bool:
    is_list = isinstance(value, list) and 1 <= len(value) <= self.most
    return is_list and all(map(self.kind.includes, value))


@dataclasses.dataclass(frozen=True)
class Object:
  """Objects with these members, of which some must be there."""

  members: Mapping[str, Kind]
  needed: tuple[str, ...] = ()

  @property
  def words(self) -> str:
    members = (f'{name} ({x.words})' for name, x in self.members.items())
    return f'an object with {" and ".join(members)}'

  @property
  def schema(self) -> dict[str, Any]:
    return {
        'type': 'object',
        'properties': {name: x.schema for name, x in self.members.items()},
        'required': list(self.needed),
        'additionalProperties': False,
    }

  def includes(self, value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {*self.needed} <= value.keys() <= self.members.keys()
        and all(self.members[name].includes(x) for name, x in value.items())
    )


@dataclasses.dataclass(frozen=True)
class AnyOf:
  """Values of one of several kinds."""

  kinds: tuple[Kind, ...]

  @property
  def words(self) -> str:
    return ', or '.join(kind.words for kind in self.kinds)

  @property
  def schema(self) -> dict[str, Any]:
    return {'anyOf': [kind.schema for kind in self.kinds]}

  def includes(self, value: Any) -> bool:
    return any(kind.includes(value) for kind in self.kinds)


@dataclasses.dataclass(frozen=True)
class Only:
  """A few values."""

  values: tuple[Any, ...]

  @property
  def words(self) -> str:
    return ' or '.join(map(json.dumps, self.values))

  @property
  def schema(self) -> dict[str, Any]:
    return {'enum': list(self.values)}

  def includes(self, value: Any) -> bool:
    # In JSON, unlike Python, false is not 0.
    is_bool = isinstance(value, bool)
    same = lambda x: isinstance(x, bool) == is_bool and x == value
    return any(map(same, self.values))


@dataclasses.dataclass(frozen=True)
class Nothing:
  """No value: the field is left out, or null."""

  words: str
  schema = {'type': 'null'}

  def includes(self, value: Any) -> bool:
    return value is None


@dataclasses.dataclass(frozen=True)
class Field:
  """A field of a request.

  Attributes:
    name: Its name.
    kind: Its values. Null is the default too, unless the field is required.
    text: What it does.
    default: Its value where it is left out; `REQUIRED` if it may not be.
  """

  name: str
  kind: Kind
  text: str
  default: Any = None

  @property
  def schema(self) -> dict[str, Any]:
    """JSON Schema of its values."""
    if self.default is REQUIRED:
      return {**self.kind.schema, 'description': self.text}
    either = [self.kind.schema, {'type': 'null'}]
    return {'anyOf': either, 'default': self.default, 'description': self.text}

  def read(self, value: Any) -> Any:
    """Return the value for one that was given.

    Raises:
      ApiError: if it is of another kind.
    """
    if value is None and self.default is not REQUIRED:
      return self.default
    if not self.kind.includes(value):
      raise api_error.ApiError(
          400,
          f'{self.name} must be {self.kind.words}, got'
          f' {api_error.shown(value)}.',
          self.name,
      )
    return value


@dataclasses.dataclass(frozen=True)
class Limits:
  """What a server can take.

  Attributes:
    max_tokens: Most tokens per output.
    inputs_length: Most tokens per input.
    vocab_size: Number of token ids.
    reads_hints: Whether the drafter reads hints.
  """

  max_tokens: int
  inputs_length: int
  vocab_size: int
  reads_hints: bool


def table(limits: Limits) -> tuple[Field, ...]:
  """Return the fields of a request for completions."""
  whole = lambda least, most: Number(least, most, is_whole=True)
  text = Text(1, _CHARACTERS_PER_TOKEN * limits.inputs_length)
  ids = Several(
      whole(0, limits.vocab_size - 1), limits.inputs_length, 'token ids'
  )
  count = MAX_CHOICES
  prompts = AnyOf((
      text, Several(text, count, 'texts'),
      ids, Several(ids, count, 'lists of token ids'),
  ))  # fmt: skip
  share = Number(1e-6, 1)
  return (
      Field('model', Text(1, 1000), 'name that `/v1/models` says', REQUIRED),
      Field(
          'prompt',
          prompts,
          'inputs; token ids have the end of sequence where the model was'
          ' trained with one',
          REQUIRED,
      ),
      Field(
          'max_tokens',
          whole(1, limits.max_tokens),
          'most tokens per output, end included',
          min(16, limits.max_tokens),
      ),
      Field('temperature', Number(0, 2), '0 is argmax', 1),
      Field('top_p', share, 'mass of the likeliest tokens that are kept', 1),
      Field(
          'top_k', whole(-1, 2**31 - 1), 'how many are kept; 0 and -1: all', 0
      ),
      Field(
          'min_p',
          AnyOf((Only((0,)), share)),
          'tokens are kept that are this likely beside the likeliest',
          0,
      ),
      Field('n', whole(1, count), 'outputs per prompt', 1),
      Field(
          'seed',
          whole(0, 2**63 - 1),
          'decides the samples; without it one is drawn, which the answer has',
      ),
      Field(
          'stop',
          AnyOf((Text(1, 1000), Several(Text(1, 1000), MAX_STOPS, 'texts'))),
          'texts before which an output ends',
      ),
      Field('stream', Flag(), 'whether tokens are sent as they come', False),
      Field(
          'stream_options',
          Object({
              'include_usage': Flag(), 'include_obfuscation': Only((False,))
          }),  # fmt: skip
          'whether a last event has usage and metrics',
      ),
      Field(
          'logprobs',
          Only((0,)),
          "log-probability of each token, by the model's own distribution;"
          ' those of other tokens are not kept',
      ),
      Field(
          'prediction',
          _prediction(limits, text),
          'what the output may repeat: a hint for the drafter, one for all'
          ' prompts or one per prompt',
      ),
      Field(
          'return_trace',
          Flag(),
          'whether choices have a `trace`: how each token came about',
          False,
      ),
      Field('user', Text(0, 1000), 'is not used'),
  )


# Fields that ask for what there is not, by the values that do not ask for it.
INERT = {
    'best_of': (1,),
    'echo': (False,),
    'suffix': ('',),
    'frequency_penalty': (0,),
    'presence_penalty': (0,),
    'repetition_penalty': (1,),
    'length_penalty': (1,),
    'logit_bias': ({},),
    'ignore_eos': (False,),
    'min_tokens': (0,),
    'use_beam_search': (False,),
    'skip_special_tokens': (True,),
    'stop_token_ids': ([],),
    'include_stop_str_in_output': (False,),
}


def _prediction(limits: Limits, text: Text) -> Kind:
  if not limits.reads_hints:
    return Nothing('left out, because the drafter reads no hints')
  part = Object({'type': Only(('text',)), 'text': text}, ('type', 'text'))
  content = AnyOf((text, Several(part, MAX_CHOICES, 'parts')))
  one = Object(
      {'type': Only(('content',)), 'content': content}, ('type', 'content')
  )
  return AnyOf((one, Several(one, MAX_CHOICES, 'predictions')))


@dataclasses.dataclass(frozen=True)
class Form:
  """What a request may say."""

  fields: Sequence[Field]

  @property
  def schema(self) -> dict[str, Any]:
    """JSON Schema of the body of a request."""
    inert = {
        name: {'enum': [*values, None], 'description': 'no other value'}
        for name, values in INERT.items()
    }
    return {
        'type': 'object',
        'properties': {x.name: x.schema for x in self.fields} | inert,
        'required': [x.name for x in self.fields if x.default is REQUIRED],
        'additionalProperties': False,
    }

  def read(self, body: Any) -> dict[str, Any]:
    """Return the value of each field.

    Raises:
      ApiError: for a field that is unknown, missing, or of another kind.
    """
    if not isinstance(body, dict):
      raise api_error.ApiError(400, 'The body must be a JSON object.')
    names = {x.name for x in self.fields}
    for name, value in body.items():
      if name not in names and not _asks_for_nothing(name, value):
        reason = 'is not a field' if name not in INERT else 'is not offered'
        raise api_error.ApiError(
            400,
            f'{api_error.shown(name)} {reason}, got {api_error.shown(value)}.'
            ' Leave it out. /openapi.json has all fields.',
            name[:100],
        )
    for field in self.fields:
      if field.default is REQUIRED and field.name not in body:
        raise api_error.ApiError(
            400, f'{field.name} is missing.', field.name
        )
    return {x.name: x.read(body.get(x.name)) for x in self.fields}

  def markdown(self) -> str:
    """Return the fields as a table for a page."""
    rows = ['| field | values | default | |', '|---|---|---|---|']
    for field in self.fields:
      default = 'required' if field.default is REQUIRED else ''
      if field.default not in (REQUIRED, None):
        default = json.dumps(field.default)
      rows.append(
          f'| `{field.name}` | {field.kind.words} | {default} | {field.text} |'
      )
    return '\n'.join(rows)


def _asks_for_nothing(name: str, value: Any) -> bool:
  return name in INERT and (value is None or Only(INERT[name]).includes(value))
