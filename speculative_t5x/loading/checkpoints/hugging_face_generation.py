# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a Hugging Face folder asks of decoding that is not done here.

transformers' `generate` follows generation_config.json, in older folders
config.json, and its pipelines follow `task_specific_params` of config.json.
"""

from collections.abc import Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import hugging_face_config

FILE = 'generation_config.json'
# They write tokens that the model did not choose.
_FORCING = 'forced_bos_token_id', 'forced_eos_token_id', 'forced_decoder_ids'
# Settings that change outputs, and the values with which they do not.
_NEUTRAL = {
    'num_beams': (1,),
    'penalty_alpha': (0,),
    'guidance_scale': (1,),
    'do_sample': (False,),
    'min_length': (0,),
    'min_new_tokens': (0,),
    'no_repeat_ngram_size': (0,),
    'encoder_no_repeat_ngram_size': (0,),
    'repetition_penalty': (1,),
    'encoder_repetition_penalty': (1,),
    'exponential_decay_length_penalty': (),
    'bad_words_ids': ([],),
    'suppress_tokens': ([],),
    'begin_suppress_tokens': ([],),
    'sequence_bias': ({},),
}
# With do_sample only.
_SAMPLING = 'temperature', 'top_k', 'top_p', 'min_p', 'typical_p'
_OF_TASKS = 'task_specific_params'


def read(folder: epath.Path) -> dict[str, Any] | None:
  """Reads generation_config.json; None if there is no such file.

  Raises:
    errors.CheckpointError: if it is damaged.
  """
  if FILE not in {child.name for child in folder.iterdir()}:
    return None
  return hugging_face_config.read_json(folder / FILE)


def check(file: epath.Path, settings: Mapping[str, Any]) -> None:
  """Checks that a file's settings force no tokens.

  Raises:
    errors.CheckpointError: naming the setting that does.
  """
  for name in _FORCING:
    if settings.get(name) is not None:
      raise errors.CheckpointError(
          f'{file} has {name} {errors.shown(settings[name])}, and decoding here'
          ' writes no token that the model does not choose. Remove it from the'
          ' file to decode without it.'
      )


def unapplied(folder: epath.Path, config: Mapping[str, Any]) -> str | None:
  """Returns a line on settings that change outputs in transformers alone.

  Args:
    folder: of the checkpoint.
    config: of config.json.
  Returns:
    The line; None if there are no such settings.
  Raises:
    errors.CheckpointError: if generation_config.json is damaged.
  """
  settings = read(folder)
  if settings is None:
    settings = config
  changing = {
      name: settings[name]
      for name, neutral in _NEUTRAL.items()
      if settings.get(name) is not None and settings[name] not in neutral
  }
  if 'do_sample' in changing:
    changing |= {x: settings[x] for x in _SAMPLING if x in settings}
  named = [f'{name} {errors.shown(x)}' for name, x in changing.items()]
  if config.get(_OF_TASKS):
    named.append(f'{_OF_TASKS} of {", ".join(map(str, config[_OF_TASKS]))}')
  if not named:
    return None
  return (
      f'{folder}: not applied here, though transformers would:'
      f' {"; ".join(named)}.'
  )
