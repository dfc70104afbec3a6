# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fields of a request: one table, from which all else is made.

What values a field may have is JSON Schema, as `/openapi.json` shows it, of
which the table needs a few forms: `words` says them in messages and pages, and
`allows` checks values.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
from typing import Any

from speculative_t5x.serving import api_error
from speculative_t5x.speculation import outcome

Schema = Mapping[str, Any]

REQUIRED = object()
MAX_CHOICES = 128  # of a prompt, and prompts of a request
MAX_STOPS = 4  # as OpenAI has it
# No vocabulary has pieces so long, so that a prompt with more characters per
# token that fits has too many tokens: they need not be counted.
_CHARACTERS_PER_TOKEN = 64


def max_characters(inputs_length: int) -> int:
  """Return the most characters of a prompt, and of a prediction."""
  return _CHARACTERS_PER_TOKEN * inputs_length


def words(schema: Schema) -> str:
  """Return the values that a schema allows, as they follow 'must be'."""
  match schema:
    case {'type': 'array', 'minItems': least, 'maxItems': most, 'title': name}:
      return f'a list of {least} to {most} {name}'
    case {'title': title}:
      return title
    case {'anyOf': schemas}:
      return ', or '.join(map(words, schemas))
    case {'enum': values}:
      return ' or '.join(map(json.dumps, values))
    case {'type': 'boolean'}:
      return 'true or false'
    case {'type': 'string', 'minLength': least, 'maxLength': most}:
      return f'a text of {least} to {most} characters'
    case {'type': 'object', 'properties': members}:
      members = (f'{name} ({words(x)})' for name, x in members.items())
      return f'an object with {" and ".join(members)}'
    case {'type': kind, 'minimum': least, 'maximum': most}:
      kind = 'a whole number' if kind == 'integer' else 'a number'
      return f'{kind} from {least} to {most}'


def allows(schema: Schema, value: Any) -> bool:
  """Return whether a schema allows a value of JSON, read by `completions`."""
  match schema:
    case {'anyOf': schemas}:
      return any(allows(each, value) for each in schemas)
    case {'enum': values}:
      # In JSON, unlike Python, false is not 0.
      is_bool = isinstance(value, bool)
      return any(isinstance(x, bool) == is_bool and x == value for x in values)
    case {'type': 'null'}:
      return value is None
    case {'type': 'boolean'}:
      return isinstance(value, bool)
    case {'type': 'string', 'minLength': least, 'maxLength': most}:
      return isinstance(value, str) and least <= len(value) <= most
    case {'type': 'array', 'items': items, 'minItems': least, 'maxItems': most}:
      is_list = isinstance(value, list) and least <= len(value) <= most
      return is_list and all(allows(items, x) for x in value)
    case {'type': 'object', 'properties': members, 'required': needed}:
      return (
          isinstance(value, dict)
          and {*needed} <= value.keys() <= members.keys()
          and all(allows(members[name], x) for name, x in value.items())
      )
    case {'type': kind, 'minimum': least, 'maximum': most}:
      types = int if kind == 'integer' else int | float
      is_number = isinstance(value, types) and not isinstance(value, bool)
      return is_number and least <= value <= most


FLAG = {'type': 'boolean'}


def text(least: int, most: int) -> Schema:
  """Return the schema of texts of so many characters."""
  return {'type': 'string', 'minLength': least, 'maxLength': most}


def whole(least: int, most: int) -> Schema:
  """Return the schema of whole numbers from the least to the most."""
  return {'type': 'integer', 'minimum': least, 'maximum': most}


def number(least: float, most: float) -> Schema:
  """Return the schema of numbers from the least to the most."""
  return {'type': 'number', 'minimum': least, 'maximum': most}


def only(*values: Any) -> Schema:
  """Return the schema of a few values."""
  return {'enum': [*values]}


def either(*schemas: Schema) -> Schema:
  """Return the schema of all values of several."""
  return {'anyOf': [*schemas]}


def several(items: Schema, most: int, name: str, least: int = 1) -> Schema:
  """Return the schema of lists, with the name of their items in the plural."""
  sizes = {'minItems': least, 'maxItems': most}
  return {'type': 'array', 'items': items, **sizes, 'title': name}


def by_length(schema: Schema, feature: str) -> Schema:
  """Return a schema that names the setting which decides its limits."""
  title = f'{words(schema)}, by `{feature}` of TASK_FEATURE_LENGTHS'
  return {**schema, 'title': title}


def object_of(*needed: str, **members: Schema) -> Schema:
  """Return the schema of objects with members, some of which are needed."""
  return {
      'type': 'object',
      'properties': members,
      'required': [*needed],
      'additionalProperties': False,
  }


@dataclasses.dataclass(frozen=True)
class Field:
  """A field of a request.

  Attributes:
    name: Its name.
    values: Schema of its values. Null is the default too, unless the field is
      required.
    text: What it does.
    default: Its value where it is left out; `REQUIRED` if it may not be.
  """

  name: str
  values: Schema
  text: str
  default: Any = None

  @property
  def schema(self) -> dict[str, Any]:
    """JSON Schema of all that it may be, with its text."""
    if self.default is REQUIRED:
      return {**self.values, 'description': self.text}
    return {
        **either(self.values, {'type': 'null'}),
        'default': self.default,
        'description': self.text,
    }

  def read(self, value: Any) -> Any:
    """Return the value for one that was given.

    Raises:
      ApiError: if it may not be.
    """
    if value is None and self.default is not REQUIRED:
      return self.default
    if not allows(self.values, value):
      raise api_error.ApiError(
          400,
          f'{self.name} must be {words(self.values)}, got'
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
    beams: Hypotheses of its beam searches; 1 if it does none.
  """

  max_tokens: int
  inputs_length: int
  vocab_size: int
  reads_hints: bool
  beams: int = 1


def table(limits: Limits) -> tuple[Field, ...]:
  """Return the fields of a request for completions."""
  count = MAX_CHOICES
  prompt = text(1, max_characters(limits.inputs_length))
  token_id = whole(0, limits.vocab_size - 1)
  ids = several(token_id, limits.inputs_length, 'token ids')
  prompts = either(
      prompt, several(prompt, count, 'texts'),
      ids, several(ids, count, 'lists of token ids'),
  )  # fmt: skip
  share = number(1e-6, 1)
  stop = text(1, 1000)
  return (
      Field('model', text(1, 1000), 'name that `/v1/models` says', REQUIRED),
      Field(
          'prompt',
          by_length(prompts, 'inputs'),
          'inputs; token ids have the end of sequence where the model was'
          ' trained with one',
          REQUIRED,
      ),
      Field(
          'max_tokens',
          by_length(whole(1, limits.max_tokens), 'targets'),
          'most tokens per output, end included',
          min(16, limits.max_tokens),
      ),
      Field('temperature', number(0, 2), '0 is argmax', 1),
      Field('top_p', share, 'mass of the likeliest tokens that are kept', 1),
      Field(
          'top_k', whole(-1, 2**31 - 1), 'how many are kept; 0 and -1: all', 0
      ),
      Field(
          'min_p',
          either(only(0), share),
          'tokens are kept that are this likely beside the likeliest',
          0,
      ),
      Field('n', whole(1, count), 'outputs per prompt', 1),
      Field(
          'beams',
          only(1, limits.beams) if limits.beams > 1 else _NO_BEAMS,
          'hypotheses of a beam search, which needs temperature 0; its `n` best'
          ' ones are the outputs',
          1,
      ),
      Field(
          'seed',
          whole(0, 2**63 - 1),
          'decides the samples; without it one is drawn, which the answer has',
      ),
      Field(
          'stop',
          either(stop, several(stop, MAX_STOPS, 'texts', least=0)),
          'texts before which an output ends',
      ),
      Field('stream', FLAG, 'whether tokens are sent as they come', False),
      Field(
          'stream_options',
          object_of(include_usage=FLAG, include_obfuscation=only(False)),
          'whether a last event has usage and metrics',
      ),
      Field(
          'logprobs',
          whole(0, outcome.MAX_ALTERNATIVES),
          'log-probability of each token, and of so many likeliest ones in its'
          " place, by the model's own distribution",
      ),
      Field(
          'prediction',
          _prediction(prompt) if limits.reads_hints else _NO_PREDICTION,
          'what the output may repeat: a hint for the drafter, one for all'
          ' prompts or one per prompt',
      ),
      Field(
          'return_trace',
          FLAG,
          'whether choices have a `trace`: how each token came about',
          False,
      ),
      Field('user', text(0, 1000), 'is not used'),
  )


_NO_BEAMS = {**only(1), 'title': '1, as the server was started without BEAMS'}
_NO_PREDICTION = {
    'type': 'null', 'title': 'left out, because the drafter reads no hints'
}  # fmt: skip


def _prediction(content: Schema) -> Schema:
  """Return the schema of predictions, as OpenAI writes them."""
  part = object_of('type', 'text', type=only('text'), text=content)
  content = either(content, several(part, MAX_CHOICES, 'parts'))
  one = object_of('type', 'content', type=only('content'), content=content)
  return either(one, several(one, MAX_CHOICES, 'predictions'))


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
# Others' words for a search.
_BEAMS = 'best_of', 'num_beams', 'use_beam_search'


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
      ApiError: for a field that is unknown, missing, or has another value.
    """
    if not isinstance(body, dict):
      raise api_error.ApiError(400, 'The body must be a JSON object.')
    names = {x.name for x in self.fields}
    for name, value in body.items():
      if name not in names and not _asks_for_nothing(name, value):
        reason = 'is not a field' if name not in INERT else 'is not offered'
        search = ' `beams` asks for a beam search.' if name in _BEAMS else ''
        raise api_error.ApiError(
            400,
            f'{api_error.shown(name)} {reason}, got {api_error.shown(value)}.'
            f" Leave it out.{search} A server's /openapi.json has all fields.",
            name[:100],
        )
    for field in self.fields:
      if field.default is REQUIRED and field.name not in body:
        raise api_error.ApiError(
            400, f'{field.name} is missing.', field.name
        )
    return {x.name: x.read(body.get(x.name)) for x in self.fields}


def _asks_for_nothing(name: str, value: Any) -> bool:
  return name in INERT and (value is None or allows(only(*INERT[name]), value))
