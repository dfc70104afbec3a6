# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to join statements, held out for the test split or not.

A frame names its parts in capitals, and in German also their word order:

  FACT, OTHER   statements of the topic, OTHER about different things
  REASON        a statement that explains the fact
  SEQUEL        a statement that follows from it
  WHEN          the fact's adverbial of time, put first

`[a|b]` is a choice of words, `^` begins a sentence, and the other braces are
slots as in a clause. The frames for the test split join the same parts by the
same words in ways that the training split does not.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Frame:
  """A sentence or two with places for statements.

  Attributes:
    name: identifies the frame.
    en: the English words.
    de: the German words.
    about_future: whether its fact has to lie in the future.
    held_out: whether only the test split uses it.
  """

  name: str
  en: str
  de: str
  about_future: bool = False
  held_out: bool = False


TRAINING = (
  Frame('plain', '^{FACT}.', '^{FACT.main}.'),
  Frame('when', '^{WHEN}, {FACT}.', '^{WHEN} {FACT.inv}.'),
  Frame(
    'because',
    '^{FACT} because {REASON}.',
    '^{FACT.main}, [weil|da] {REASON.sub}.',
  ),
  Frame(
    'because first',
    '^because {REASON}, {FACT}.',
    '^[weil|da] {REASON.sub}, {FACT.inv}.',
  ),
  Frame(
    'so',
    '^{REASON}, so {FACT}.',
    '^{REASON.main}, [deshalb|daher] {FACT.inv}.',
  ),
  Frame(
    'says',
    '^{source.says} that {FACT}.',
    '^{source.says}, dass {FACT.sub}.',
  ),
  Frame(
    'according to',
    '^according to {source}, {FACT}.',
    '^laut {source.dat} {FACT.inv}.',
  ),
  Frame(
    'announced',
    '^as {source} announced, {FACT}.',
    '^wie {source.announced}, {FACT.inv}.',
  ),
  Frame(
    'expects',
    '^{source.expects} that {FACT}.',
    '^{source.expects}, dass {FACT.sub}.',
    about_future=True,
  ),
  Frame(
    'it is expected',
    '^it is expected that {FACT}.',
    '^es wird erwartet, dass {FACT.sub}.',
    about_future=True,
  ),
  Frame(
    'fact, sequel',
    '^{FACT}. ^{SEQUEL}.',
    '^{FACT.main}. ^{SEQUEL.main}.',
  ),
  Frame(
    'when, sequel',
    '^{WHEN}, {FACT}. ^{SEQUEL}.',
    '^{WHEN} {FACT.inv}. ^{SEQUEL.main}.',
  ),
  Frame(
    'therefore',
    '^{FACT}. ^therefore, {SEQUEL}.',
    '^{FACT.main}. ^[deshalb|daher] {SEQUEL.inv}.',
  ),
  Frame(
    'the reason is',
    '^{FACT}. ^the reason is that {REASON}.',
    '^{FACT.main}. ^der Grund ist, dass {REASON.sub}.',
  ),
  Frame(
    'while',
    '^{FACT}, while {OTHER}.',
    '^{FACT.main}, während {OTHER.sub}.',
  ),
  Frame(
    'but',
    '^{FACT}, but {OTHER}.',
    '^{FACT.main}, aber {OTHER.main}.',
  ),
  Frame(
    'sequel because reason',
    '^{SEQUEL} because {REASON}.',
    '^{SEQUEL.main}, weil {REASON.sub}.',
  ),
  Frame(
    'source on sequel',
    '^{FACT}. ^{source.says} that {SEQUEL}.',
    '^{FACT.main}. ^{source.says}, dass {SEQUEL.sub}.',
  ),
  Frame(
    'according to source, sequel',
    '^{FACT}. ^according to {source}, {SEQUEL}.',
    '^{FACT.main}. ^laut {source.dat} {SEQUEL.inv}.',
  ),
  Frame(
    'and according to',
    '^{FACT}, and according to {source}, {SEQUEL}.',
    '^{FACT.main}, und laut {source.dat} {SEQUEL.inv}.',
  ),
  Frame(
    'reason and sequel',
    '^{REASON}, and {SEQUEL}.',
    '^{REASON.main}, und {SEQUEL.main}.',
  ),
  Frame(
    'says that and that',
    '^{source.says} that {REASON} and that {SEQUEL}.',
    '^{source.says}, dass {REASON.sub} und dass {SEQUEL.sub}.',
  ),
)

HELD_OUT = (
  Frame(
    'when because',
    '^{WHEN}, {FACT} because {REASON}.',
    '^{WHEN} {FACT.inv}, weil {REASON.sub}.',
    held_out=True,
  ),
  Frame(
    'says because',
    '^{source.says} that {FACT} because {REASON}.',
    '^{source.says}, dass {FACT.sub}, weil {REASON.sub}.',
    held_out=True,
  ),
  Frame(
    'according to because',
    '^according to {source}, {FACT} because {REASON}.',
    '^laut {source.dat} {FACT.inv}, weil {REASON.sub}.',
    held_out=True,
  ),
  Frame(
    'because expects',
    '^because {REASON}, {source.expects} that {FACT}.',
    '^weil {REASON.sub}, {source.expects_inv}, dass {FACT.sub}.',
    about_future=True,
    held_out=True,
  ),
  Frame(
    'fact and that sequel',
    '^{source.says} that {FACT} and that {SEQUEL}.',
    '^{source.says}, dass {FACT.sub} und dass {SEQUEL.sub}.',
    held_out=True,
  ),
  Frame(
    'sequel because fact',
    '^{SEQUEL} because {FACT}.',
    '^{SEQUEL.main}, weil {FACT.sub}.',
    held_out=True,
  ),
  Frame(
    'because fact, sequel',
    '^because {FACT}, {SEQUEL}.',
    '^weil {FACT.sub}, {SEQUEL.inv}.',
    held_out=True,
  ),
  Frame(
    'fact, so sequel',
    '^{FACT}, so {SEQUEL}.',
    '^{FACT.main}, deshalb {SEQUEL.inv}.',
    held_out=True,
  ),
  Frame(
    'but according to',
    '^{FACT}, but according to {source}, {OTHER}.',
    '^{FACT.main}, aber laut {source.dat} {OTHER.inv}.',
    held_out=True,
  ),
  Frame(
    'announced while',
    '^as {source} announced, {FACT}, while {OTHER}.',
    '^wie {source.announced}, {FACT.inv}, während {OTHER.sub}.',
    held_out=True,
  ),
  Frame(
    'announced. therefore',
    '^as {source} announced, {FACT}. ^therefore, {SEQUEL}.',
    '^wie {source.announced}, {FACT.inv}. ^deshalb {SEQUEL.inv}.',
    held_out=True,
  ),
  Frame(
    'because. source on sequel',
    '^because {REASON}, {FACT}. ^{source.says} that {SEQUEL}.',
    '^weil {REASON.sub}, {FACT.inv}. ^{source.says}, dass {SEQUEL.sub}.',
    held_out=True,
  ),
  Frame(
    'when but',
    '^{WHEN}, {FACT}, but {OTHER}.',
    '^{WHEN} {FACT.inv}, aber {OTHER.main}.',
    held_out=True,
  ),
  Frame(
    'expected because',
    '^it is expected that {FACT} because {REASON}.',
    '^es wird erwartet, dass {FACT.sub}, weil {REASON.sub}.',
    about_future=True,
    held_out=True,
  ),
  Frame(
    'reason. when',
    '^{REASON}. ^{WHEN}, {FACT}.',
    '^{REASON.main}. ^{WHEN} {FACT.inv}.',
    held_out=True,
  ),
  Frame(
    'reason, sequel and fact',
    '^{REASON}, and {SEQUEL}. ^therefore, {FACT}.',
    '^{REASON.main}, und {SEQUEL.main}. ^deshalb {FACT.inv}.',
    held_out=True,
  ),
  Frame(
    'the reason is according to',
    '^{SEQUEL}. ^according to {source}, the reason is that {FACT}.',
    '^{SEQUEL.main}. ^laut {source.dat} ist der Grund, dass {FACT.sub}.',
    held_out=True,
  ),
)
