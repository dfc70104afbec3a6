# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ids and settings of decoding in config.json and generation_config.json.

transformers' `generate` follows generation_config.json, in older folders
config.json.
"""

from collections.abc import Mapping
import dataclasses
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
# The first token of an output, and others by their positions. Networks whose
# decoder has a prompt are fed the first one.
_FORCED, _FORCED_OTHERS = 'forced_bos_token_id', 'forced_decoder_ids'
_BAD_WORDS, _SUPPRESSED = 'bad_words_ids', 'suppress_tokens'
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
    'begin_suppress_tokens': ([],),
    'forced_eos_token_id': (),
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
    rf'|{_FORCED}|{_BAD_WORDS}|{_SUPPRESSED}'
)


@dataclasses.dataclass(frozen=True)
class Ids:
  """Ids that a folder's files name."""

  folder: epath.Path
  config: Mapping[str, Any]  # its config.json, with its family's defaults
  # Its generation_config.json; None if there is none. An id in it comes before
  # one in config.json, as in transformers' `generate`.
  generation: Mapping[str, Any] | None
  network: network_lib.Network  # the network that config.json states

  @property
  def _sources(self) -> dict[str, Mapping[str, Any]]:
    first = {} if self.generation is None else {FILE: self.generation}
    return first | {'config.json': self.config}

  @property
  def _settings(self) -> Mapping[str, Any]:
    # transformers takes all other settings from the first of them.
    return next(iter(self._sources.values()))

  def special_ids(self) -> contracts.SpecialIds:
    """Return the special ids.

    A decoder alone needs no padding, and begins with its input.
    """
    forced = [_FORCED_OTHERS]
    if not network_lib.offers(self.network, *network_lib.PROMPTS_DECODER):
      forced.append(_FORCED)
    for name in forced:
      if self._settings.get(name) is not None:
        raise errors.CheckpointError(
            f'{self.folder / next(iter(self._sources))} has {name}'
            f' {errors.shown(self._settings[name])}, and decoding here writes'
            ' no token that the model does not choose. Remove it from the file'
            ' to decode without it.'
        )
    end, *others = self._find(*_SEVERAL)
    ids = contracts.SpecialIds(
        end,
        contracts.NO_TOKEN,
        None,
        tuple(others),
        self._forbidden((end, *others)),
    )
    if self.network.special_ids.start is None:
      return ids
    (padding,), (start,) = self._find('pad_token_id'), self._find(*_STARTS)
    if padding in ids.ends:
      raise errors.CheckpointError(
          f'{self.folder} has {padding} as end of sequence and as padding,'
          ' which the encoder ignores. Write another pad_token_id into'
          ' config.json.'
      )
    return dataclasses.replace(ids, padding=padding, start=start)

  def unapplied_settings(self) -> str | None:
    """Return a line on settings of decoding that only transformers follows.

    It is None where none changes outputs.
    """
    settings, config = self._settings, self.config
    names = [*_NEUTRAL, *_SAMPLING]
    if self.generation is not None:  # it holds nothing but settings of decoding
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
    words = settings.get(_BAD_WORDS) or ()
    if several := [x for x in words if len(x) != 1]:
      changing[_BAD_WORDS] = several
    changing |= {x: config[x] for x in _OF_TEXTS if config.get(x)}
    if not changing:
      return None
    named = [f'{name} {errors.shown(x)}' for name, x in changing.items()]
    does = 'not applied here, though transformers would'
    return f'{self.folder}: {does}: {"; ".join(named)}.'

  def decoder_prompt(self) -> tuple[int, ...]:
    """Return what the decoder begins with: its start, and one that is forced.

    It is empty if the network's is, and no token is forced: then the second
    one, a language, is still to be chosen.
    """
    start = self._find(*_STARTS)
    if self._settings.get(_FORCED) is not None:
      return *start, *self._find(_FORCED)
    return start if self.network.decoder_prompt else ()

  def _find(self, *names: str) -> tuple[int, ...]:
    """Return the ids of the first name that has some."""
    named = [
        (file, name, settings[name])
        for name in names
        for file, settings in self._sources.items()
        if settings.get(name) is not None
    ]
    file, name, ids = named[0] if named else ('config.json', names[-1], None)
    is_many = isinstance(ids, list) and (
        len(ids) == 1 or names == _SEVERAL and ids
    )
    return self._checked(file, name, ids if is_many else [ids])

  def _forbidden(self, ends: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ids that may not be written; ends are never bad words."""
    file = next(iter(self._sources))
    with errors.reading(self.folder / file):
      words = [list(x) for x in self._settings.get(_BAD_WORDS) or ()]
      suppressed = list(self._settings.get(_SUPPRESSED) or ())
    bad = [word[0] for word in words if len(word) == 1 and word[0] not in ends]
    return (
        *self._checked(file, _BAD_WORDS, bad),
        *self._checked(file, _SUPPRESSED, suppressed),
    )

  def _checked(self, file: str, name: str, ids: list[Any]) -> tuple[int, ...]:
    vocab_size = self.network.vocab_size
    for each in ids:
      if type(each) is not int or not 0 <= each < vocab_size:
        raise errors.CheckpointError(
            f'{self.folder / file} has {name} {errors.shown(each)}, which is'
            f' not one id of a vocabulary of {vocab_size}. Write the id that'
            ' the model was trained with into config.json.'
        )
    return tuple(dict.fromkeys(ids))
