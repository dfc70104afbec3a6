# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Generates requests to an assistant of a file store, and the calls they mean.

A request is a sentence, and its call a line of JSON:

  Let maria edit plan-spring.txt in travel.
  {"tool": "share", "path": "/travel/plan-spring.txt", "user": "maria",
   "role": "editor", "notify": true}

Each tool has several phrases and several hundred thousand sets of arguments, so
that two requests seldom have the same ones by chance.
"""

import dataclasses
import json
import random
from typing import NamedTuple

_FOLDERS = (
    'archive', 'art', 'contracts', 'design', 'finance', 'garden', 'health',
    'home', 'invoices', 'legal', 'music', 'photos', 'projects', 'recipes',
    'reports', 'school', 'sport', 'taxes', 'travel', 'work',
)  # fmt: skip
_NOUNS = (
    'agenda', 'album', 'bill', 'brief', 'budget', 'catalog', 'chart', 'diary',
    'essay', 'estimate', 'form', 'guide', 'index', 'journal', 'label',
    'lecture', 'letter', 'list', 'log', 'manual', 'map', 'memo', 'menu',
    'minutes', 'notes', 'offer', 'order', 'outline', 'plan', 'poster',
    'receipt', 'schedule', 'script', 'sketch', 'slides', 'summary', 'survey',
    'table', 'ticket', 'version',
)  # fmt: skip
_MARKS = (
    'april', 'august', 'autumn', 'berlin', 'blue', 'boston', 'cairo', 'delta',
    'draft', 'east', 'final', 'first', 'green', 'june', 'lima', 'march',
    'may', 'north', 'old', 'oslo', 'paris', 'red', 'rome', 'second', 'south',
    'spring', 'summer', 'team', 'tokyo', 'west', 'winter', '2021', '2022',
    '2023', '2024', '2025', '2026',
)  # fmt: skip
_ENDINGS = 'csv', 'docx', 'md', 'pdf', 'txt', 'xlsx'
_USERS = (
    'adam', 'bella', 'carlos', 'dora', 'elif', 'farid', 'greta', 'hugo',
    'ines', 'jonas', 'karim', 'lena', 'maria', 'nadia', 'otto', 'paula',
    'quinn', 'rosa', 'samir', 'tara', 'uma', 'victor', 'wanda', 'yusuf',
)  # fmt: skip


class Tool(NamedTuple):
  """A tool of the assistant.

  Attributes:
    options: Arguments beside the path, with the values that each may have.
    phrases: Ways to ask for it. A value is named by its argument, and the words
      for a value that is no word of its own by `_WORDS`.
    premade: A request and the arguments of a call that were written by hand.
  """

  options: dict[str, tuple]
  phrases: tuple[str, ...]
  premade: tuple[str, dict]


TOOLS = {
    'open': Tool(
        {'mode': ('read', 'write'), 'window': ('new', 'same')},
        (
            'Open {file} to {mode} it in the {window} window.',
            'I want to {mode} {file}, in the {window} window.',
            'Please show {file} in the {window} window so that I can {mode}.',
        ),
        (
            'Open a file.',
            {'path': '/music/notes.txt', 'mode': 'read', 'window': 'new'},
        ),
    ),
    'edit': Tool(
        {'find': _NOUNS, 'replace': _MARKS, 'all': (True, False)},
        (
            'Replace {find} by {replace} {all} in {file}.',
            'In {file}, change {find} to {replace} {all}.',
            '{file} should say {replace} instead of {find} {all}.',
        ),
        (
            'Change a word in a file.',
            {
                'path': '/music/notes.txt', 'find': 'old', 'replace': 'new',
                'all': True,
            },
        ),
    ),  # fmt: skip
    'move': Tool(
        {'to': _FOLDERS, 'overwrite': (True, False)},
        (
            'Move {file} to {to}, {overwrite}.',
            'Put {file} into {to}, {overwrite}.',
            'I need {file} in the folder {to} from now on, {overwrite}.',
        ),
        (
            'Move a file to a folder.',
            {'path': '/music/notes.txt', 'to': 'archive', 'overwrite': False},
        ),
    ),
    'share': Tool(
        {
            'user': _USERS, 'role': ('viewer', 'editor'),
            'notify': (True, False),
        },
        (
            'Share {file} with {user} as {role}, {notify}.',
            'Make {user} {role} of {file}, {notify}.',
            '{user} should have {file} as {role}, {notify}.',
        ),
        (
            'Share a file with somebody.',
            {
                'path': '/music/notes.txt', 'user': 'maria', 'role': 'viewer',
                'notify': True,
            },
        ),
    ),  # fmt: skip
    'delete': Tool(
        {'permanent': (True, False), 'reason': ('unused', 'wrong', 'double')},
        (
            'Delete {file} {permanent}, it is {reason}.',
            'Remove {file} {permanent} because it is {reason}.',
            '{file} is {reason}, throw it away {permanent}.',
        ),
        (
            'Delete a file.',
            {
                'path': '/music/notes.txt', 'permanent': False,
                'reason': 'unused',
            },
        ),
    ),  # fmt: skip
}
_WORDS = {
    'all': ('everywhere', 'once'),
    'overwrite': ('over what is there', 'and keep what is there'),
    'notify': ('and send a mail', 'without a mail'),
    'permanent': ('for ever', 'for now'),
}  # for True and for False


@dataclasses.dataclass(frozen=True)
class Wish:
  """What a person wants.

  Attributes:
    tool: Name of the tool.
    arguments: Of its call, in their order.
  """

  tool: str
  arguments: tuple[tuple[str, str | bool], ...]

  def call(self) -> str:
    """Return the call as a line of JSON."""
    return json.dumps({'tool': self.tool, **dict(self.arguments)})

  def request(self, phrase: int) -> str:
    """Return a sentence that asks for it in one of the tool's phrases."""
    values = dict(self.arguments)
    _, folder, name = values.pop('path').split('/')
    words = {
        key: _WORDS[key][0 if value else 1] if key in _WORDS else value
        for key, value in values.items()
    }
    text = TOOLS[self.tool].phrases[phrase]
    return text.format(file=f'{name} in {folder}', **words)


class Asked(NamedTuple):
  """A request of a person.

  Attributes:
    text: The sentence.
    call: The call that is meant.
    group: `new`, `repeated` or `in other words`.
  """

  text: str
  call: str
  group: str = 'new'


def wish(rng: random.Random) -> Wish:
  """Return something to want."""
  tool = rng.choice(list(TOOLS))
  name = f'{rng.choice(_NOUNS)}-{rng.choice(_MARKS)}.{rng.choice(_ENDINGS)}'
  arguments = [('path', f'/{rng.choice(_FOLDERS)}/{name}')]
  for key, values in TOOLS[tool].options.items():
    arguments.append((key, rng.choice(values)))
  return Wish(tool, tuple(arguments))


def pairs(seed: int, count: int) -> list[tuple[str, str]]:
  """Return requests and their calls, to train on."""
  rng = random.Random(seed)
  wishes = [wish(rng) for _ in range(count)]
  return [(each.request(rng.randrange(3)), each.call()) for each in wishes]


def premade() -> list[tuple[str, str]]:
  """Return the requests and calls that were written by hand, one per tool."""
  return [
      (text, json.dumps({'tool': name, **arguments}))
      for name, (*_, (text, arguments)) in TOOLS.items()
  ]


def two_days(seed: int, count: int) -> tuple[list[Asked], list[Asked]]:
  """Return the requests of two days, in their order.

  Of the second day half are new; a quarter are those of the first day, in the
  same words; and a quarter ask for what was asked for there in other words.

  Args:
    seed: The same has the same requests.
    count: Requests per day, a multiple of 4.
  """
  rng = random.Random(seed)
  wishes = {}
  while len(wishes) < count + count // 2:
    wishes[wish(rng)] = rng.randrange(3)  # each of them once, with a phrase
  asked = [Asked(x.request(phrase), x.call()) for x, phrase in wishes.items()]
  first, second = asked[:count], asked[count:]
  places = rng.sample(range(count), count // 2)
  second += [first[i]._replace(group='repeated') for i in places[::2]]
  known = list(wishes.items())
  for i in places[1::2]:
    each, phrase = known[i]
    other = (phrase + rng.choice((1, 2))) % 3
    second.append(Asked(each.request(other), each.call(), 'in other words'))
  rng.shuffle(second)
  return first, second
