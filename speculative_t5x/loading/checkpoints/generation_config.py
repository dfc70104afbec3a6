# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What config.json and generation_config.json say of decoding: ids, settings.

transformers' `generate` follows generation_config.json, in older folders
config.json, and its pipelines `task_specific_params` of config.json.
"""

from collections.abc import Mapping
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts

FILE = 'generation_config.json'
# The decoder starts from the first of these that is named. transformers has no
# third and refuses to decode; T5X starts from padding.
_STARTS = ('decoder_start_token_id', 'bos_token_id', 'pad_token_id')
_SEVERAL = ('eos_token_id',)  # each of a chat model's ends a sequence
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
    'force_words_ids': ([],),
    'constraints': ([],),
    'stop_strings': ([], ''),
    'dola_layers': (),
    'token_healing': (False,),
    'watermarking_config': (),
    'num_beam_groups': (1,),
    'diversity_penalty': (0,),
    'max_time': (),
}
# With do_sample only.
_SAMPLING = (
    'temperature', 'top_k', 'top_p', 'top_h', 'min_p', 'typical_p',
    'epsilon_cutoff', 'eta_cutoff',
)  # fmt: skip
# Of texts, before they are encoded; in config.json alone.
_OF_TEXTS = 'prefix', 'task_specific_params'
# Of generation_config.json, which change no output: ids that are read here,
# lengths that callers give, and how transformers computes and what it returns.
_OTHERS = re.compile(
    r'_.*|transformers_version|(bos|eos|pad|decoder_start)_token_id'
    r'|max_(length|new_tokens|cache_len)|length_penalty|early_stopping'
    r'|(output|return|cache|num_assistant|assistant|continuous)_.*|compile_.*'
    r'|num_return_sequences|is_assistant|.*_lookbehind|prompt_lookup_.*'
    r'|max_matching_ngram_size|(use|disable)_.*|low_memory|prefill_chunk_size'
    r'|speculation_type|renormalize_logits|remove_invalid_values'
)


def special_ids(
    folder: epath.Path,
    config: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
    network: network_lib.Network,
) -> contracts.SpecialIds:
  """Return the special ids that a folder's files name.

  An id in generation_config.json comes before the one in config.json, as in
  transformers' `generate`. `config` has its family's defaults; `generation` is
  None if there is no such file. A decoder alone needs no padding, and begins
  with its input.
  """
  sources = {} if generation is None else {FILE: generation}
  sources['config.json'] = config
  # transformers takes all settings from the first of them.
  file, settings = next(iter(sources.items()))
  for name in _FORCING:
    if settings.get(name) is not None:
      raise errors.CheckpointError(
          f'{folder / file} has {name} {errors.shown(settings[name])}, and'
          ' decoding here writes no token that the model does not choose.'
          ' Remove it from the file to decode without it.'
      )

  def find(*names: str) -> tuple[int, ...]:
    """Return the ids of the first name that has some."""
    named = [
        (file, name, settings[name])
        for name in names
        for file, settings in sources.items()
        if settings.get(name) is not None
    ]
    file, name, found = named[0] if named else ('config.json', names[-1], None)
    is_many = isinstance(found, list) and (
        len(found) == 1 or names == _SEVERAL and found
    )
    ids = found if is_many else [found]
    for each in ids:
      if type(each) is not int or not 0 <= each < network.vocab_size:
        raise errors.CheckpointError(
            f'{folder / file} has {name} {errors.shown(each)}, which is not one'
            f' id of a vocabulary of {network.vocab_size}. Write the id that'
            ' the model was trained with into config.json.'
        )
    return tuple(dict.fromkeys(ids))

  end, *others = find(*_SEVERAL)
  if not network.ends_inputs:
    return contracts.SpecialIds(end, contracts.NO_TOKEN, None, tuple(others))
  (padding,), (start,) = find('pad_token_id'), find(*_STARTS)
  if padding in (end, *others):
    raise errors.CheckpointError(
        f'{folder} has {padding} as end of sequence and as padding. The encoder'
        ' ignores padding, so that inputs would lose their end. Write another'
        ' pad_token_id into config.json.'
    )
  return contracts.SpecialIds(end, padding, start, tuple(others))


def unapplied_settings(
    folder: epath.Path,
    config: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
) -> str | None:
  """Return a line on settings of decoding that only transformers follows.

  The arguments are those of `special_ids`. It is None where none changes
  outputs.
  """
  settings = config if generation is None else generation
  names = [*_NEUTRAL, *_SAMPLING]
  if generation is not None:  # it holds nothing but settings of decoding
    others = [x for x in settings if x not in names]
    names += [x for x in others if not _OTHERS.fullmatch(x)]
  changing = {
      name: settings[name]
      for name in names
      if settings.get(name) is not None
      and settings[name] not in _NEUTRAL.get(name, ())
  }
  if 'do_sample' not in changing:
    changing = {k: v for k, v in changing.items() if k not in _SAMPLING}
  changing |= {x: config[x] for x in _OF_TEXTS if config.get(x)}
  named = [f'{name} {errors.shown(x)}' for name, x in changing.items()]
  if not named:
    return None
  return (
      f'{folder}: not applied here, though transformers would:'
      f' {"; ".join(named)}.'
  )
