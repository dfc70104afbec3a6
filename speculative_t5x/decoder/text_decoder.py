# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings in; texts, scores and statistics out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import copy
import dataclasses
import functools
import os
from typing import Any, Self

from etils import epath
import jax

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import pending
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import detokenizer
from speculative_t5x.loading import drafters
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import languages as languages_lib
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges


class TextDecoder(pending.AnyDecoder):
  """A target, a drafter, and the vocabulary of both.

  Compiles at the first call of a shape: see `engine.decode`. Another
  number of tokens, temperature, top-k, top-p or seed does not compile anew.

  Example:

    >>> from speculative_t5x import embedded
    >>> decoder = embedded.load_decoder(gamma=5)
    >>> text = 'The train from Bonn will be 20 minutes late.'
    >>> result, plain = decoder.decode(text), decoder.decode_plain(text)
    >>> result.text == plain.text
    True
    >>> result.statistics['target_calls'] < plain.statistics['target_calls']
    True
  """

  inputs_are = 'texts', 'a list of texts'

  @keywords.named(options_lib.Options)
  def __init__(
      self,
      target: models.Model,
      drafter: drafters.Drafting | models.Model | checkpoints.Path,
      vocabulary: vocabularies.Vocabulary,
      options: options_lib.Options = options_lib.Options(),  # noqa: B008
      **changes: Any,
  ):
    """Bind target, drafter and vocabulary; compile nothing yet.

    Args:
      target: See `TokenDecoder`.
      drafter: Likewise.
      vocabulary: Vocabulary of the target, see `vocabularies.load`.
      options: See `Options`.
      **changes: Options by name, such as `gamma=3`.
    Raises:
      vocabularies.VocabularyError: if a model has fewer logits than the
        vocabulary has pieces, or another end of sequence.
      TypeError, ValueError: See `TokenDecoder`.
    """
    bound_pair.check_target(target)
    options = options_lib.of(options, changes)
    vocabulary = models.fit_vocabulary(vocabulary, target)
    if target.vocabulary is not vocabulary:
      target = dataclasses.replace(target, vocabulary=vocabulary)
    if options.mask_padded_ids and options.num_valid_tokens is None:
      options = dataclasses.replace(
          options, num_valid_tokens=vocabulary.num_ids
      )
    self.vocabulary = vocabulary
    self.inputs_form = inputs_form.of(vocabulary, target)
    self.options = options
    self.tokens = token_decoder.TokenDecoder(target, drafter, options)

  def __repr__(self) -> str:
    return (
        f'TextDecoder({self.tokens}, inputs of at most'
        f' {self.options.inputs_length} tokens, vocabulary'
        f' {self.vocabulary.name})'
    )

  @functools.cached_property
  def alone(self) -> Self:
    """A decoder of the same target that drafts nothing."""
    other = copy.copy(self)
    other.tokens = self.tokens.alone
    return other

  @keywords.named(request_lib.Settings, beam_search.of)
  def decode(
      self,
      texts: str | Iterable[str],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      hints: Iterable[hints_lib.Hints] | None = None,
      **settings: Any,
  ) -> results.Result | results.Output:
    """Decode speculatively.

    The outputs follow the target's distribution, unless the rule is one that is
    not lossless.

    Args:
      texts: Inputs, none empty; or one input.
      batch_size: Most inputs that are decoded together.
      example_ids: One id per input; 0, 1, ... by default.
      hints: Per input, a text that the output may repeat, several in order of
        preference, or None; of one input, its own. They make drafts of drafters
        that read them, and never change the distribution of the outputs.
      **settings: Those of `request.Settings`: `sampling` (the default is
        argmax), `draft_sampling`, `max_tokens`, `seed` and `rule`. Those of a
        `BeamSearch`: `beams` (1, which is none; a result of more has so many
        texts), `brevity_penalty`, `length_penalty` and `draft_beams`. A search
        is the same with every `seed`, and refuses other samplings and rules.
    Returns:
      A `Result` of one input, an `Output` of several.
    Raises:
      TypeError: for an unknown argument.
      ValueError: for an empty input or a value out of range, or for hints that
        the drafter does not read.
    """
    columns = {'example_ids': example_ids, 'hints': hints}
    return self._decode(texts, columns, batch_size, settings)

  @keywords.named(request_lib.Settings, beam_search.of)
  def decode_plain(
      self,
      texts: str | Iterable[str],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      **settings: Any,
  ) -> results.Result | results.Output:
    """Decode by the target alone, one token per target call.

    The arguments are those of `decode`; `draft_beams` has no effect.
    """
    columns = {'example_ids': example_ids}
    return self.alone._decode(texts, columns, batch_size, settings)

  @keywords.named(request_lib.Settings, beam_search.of)
  def stream(
      self,
      texts: Iterable[str],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      hints: Iterable[hints_lib.Hints] | None = None,
      **settings: Any,
  ) -> Iterator[results.Result]:
    """Decode speculatively; yield the result of each input, in their order.

    Any number of texts takes the memory of some batches: see `Engine`, which
    decodes them. The arguments are those of `decode`.
    """
    ranges.check_settings(ranges.COUNT, batch_size=batch_size)
    settings = request_lib.Settings.of_call(settings)
    settings = settings.within(self.options.max_tokens)
    outputs, search = self.options.num_decodes, settings.search
    rows = batch_size * (outputs if search is None else search.beams)
    decoding = engine.Engine(self, rows, rule=settings.rule)
    columns = {'example_ids': example_ids, 'hints': hints}
    requests = self.requests(texts, columns, settings)
    return decoding.stream(request for _, request in requests)

  @keywords.named(request_lib.Settings, beam_search.of)
  def generate(
      self,
      ids: Iterable[Sequence[int]] | Sequence[int],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      **settings: Any,
  ) -> list[list[int]] | list[int]:
    """Decode token ids speculatively, see `TokenDecoder.generate`."""
    return self.tokens.generate(
        ids, batch_size=batch_size, example_ids=example_ids, **settings
    )

  def tokenized(self, request, number, name=None) -> pending.Pending:
    """Return a request of a text as one of token ids; see `AnyDecoder`."""
    name, text = name or f'Request {number}', request.inputs
    if not isinstance(text, str):
      raise ValueError(f'{name} must be a string, got {text!r}.')
    hints_lib.check_unicode(name, text)
    # The vocabulary drops blanks, and characters that show nothing: an input
    # may be empty that has some.
    ids = self.vocabulary.encode(text)
    tokens, is_cut = self.inputs_form.cut(ids, self.options.inputs_length)
    hints = hints_lib.encode(
        request.hints, self.vocabulary, self.options.hints_length
    )
    if hints:
      self.tokens.check_reads_hints()
    return pending.Pending(
        self.tokens.resolved(
            request,
            number,
            name,
            tokens if ids else [],
            hints,
        ),
        is_truncated=is_cut,
        is_unknown=not self.vocabulary.knows(text, ids),
    )

  def text(self, ids: Iterable[int], inputs: Sequence[int] = ()) -> str:
    """Return the text of decoded token ids; see `AnyDecoder`."""
    return self.detokenizer(inputs).text(ids)

  def detokenizer(self, inputs: Sequence[int]) -> detokenizer.Detokenizer:
    """Return what makes the text of an output; see `text`."""
    padding = self.tokens.target_model.special_ids.padding
    before = self.inputs_form.text_before(inputs)
    return self.vocabulary.detokenizer(before, padding)

  def _decode(
      self,
      texts: str | Iterable[str],
      columns: Mapping[str, Any],
      batch_size: int,
      settings: Mapping[str, Any],
  ) -> results.Result | results.Output:
    """Decode texts; all are checked before the first is decoded."""
    if is_one := isinstance(texts, str):
      texts = [texts]
      if columns.get('hints') is not None:
        columns = {**columns, 'hints': [columns['hints']]}
    settings = request_lib.Settings.of_call(settings)
    rows = self.all_tokenized(texts, columns, settings)
    if cut := [index for index, row in enumerate(rows) if row.is_truncated]:
      request_lib.warn_of_cut(
          cut[0], self.options.inputs_length, 4, num_others=len(cut) - 1
      )
    decoded = engine.decode(self, rows, settings.rule, batch_size)
    if is_one:
      return decoded[0]
    return results.Output(decoded, counts.of_results(decoded))


@keywords.named(options_lib.Options)
def load(
    target: checkpoints.Path | models.Model,
    draft: drafters.Drafting | models.Model | checkpoints.Path | None = None,
    *,
    vocabulary: epath.PathLike | vocabularies.Vocabulary | None = None,
    languages: tuple[str, str] | None = None,
    max_padded_ids: int = models.MAX_PADDED_IDS,
    config: models.Config = None,
    dtype: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
    options: options_lib.Options = options_lib.Options(),  # noqa: B008
    **changes: Any,
) -> TextDecoder:
  """Load a target, a drafter and their vocabulary, ready to decode texts.

  Nothing is compiled yet, but with the first batch of a shape.

  Args:
    target: Path of a checkpoint: a Hugging Face folder, a `checkpoint_<step>`
      of T5X, or a folder of several, of which the newest is taken. Or the name
      of a public model, as 'google/flan-t5-large', with `@<revision>` after it
      if wanted, or 't5_1_1_xxl'. Or a loaded model.
    draft: Path or name of a draft of any kind, a loaded model, or a drafting
      such as `drafters.EarlyExit(2)`. None for lookup, which drafts without a
      model: it copies what followed the last tokens earlier in the input, the
      output or the hints.
    vocabulary: SentencePiece .model file, tokenizer.json or folder of one,
      'bytes' for ByT5's; or a vocabulary. None for the one in the folder of the
      target.
    languages: Codes of source and target language, of a translation model that
      is told them by tokens: ('eng_Latn', 'deu_Latn') of NLLB. None for all
      others, and for those that the folder of the target names.
    max_padded_ids: Most logits of a model without an id in the vocabulary; with
      more, it was trained with another one.
    config: Network of the target, or fields to change in the one that its path
      states, see `load_model`; None for that one.
    dtype: Type that both models are loaded in and compute in; None for the one
      that suits the device: bfloat16 where it is native, else float32.
    mesh: Devices to load onto, see `sharding.make_mesh`; None for as few as
      hold the weights, which takes any number of texts.
    options: See `Options`.
    **changes: Options by name, such as `gamma=3`.
  Raises:
    TypeError: for an unknown option.
    vocabularies.VocabularyError: if the folder of the target has no vocabulary,
      or one that is not the models'.
    checkpoints.CheckpointError: if a checkpoint cannot be read.
    placement.DoesNotFitError: if the devices have too little memory; nothing
      has been read then.
    ValueError: for a value out of range, or a drafter that cannot draft for the
      target.
  """
  options = options_lib.of(options, changes)
  is_loaded, path = isinstance(target, models.Model), str | os.PathLike
  if vocabulary is None:  # that of its folder
    vocabulary = target.checkpoint if is_loaded else target
  options_lib.check_type(
      'target', target, path | models.Model, 'a path or a loaded model'
  )
  options_lib.check_type(
      'vocabulary',
      vocabulary,
      path | vocabularies.Vocabulary,
      'a path or a vocabulary, without a folder of the target',
  )
  checkpoint = None if is_loaded else checkpoints.open(target)
  if vocabulary is target:  # or of the folder of its step
    vocabulary = vocabularies.load_any(target) or checkpoint.source
  if not isinstance(vocabulary, vocabularies.Vocabulary):
    vocabulary = vocabularies.load(vocabulary)
  draft = drafters.Lookup() if draft is None else draft
  if is_loaded:
    if config is not None:
      raise ranges.ArgumentError(
          'config is of a target by its path, and target is loaded. Give config'
          ' to load_model.',
          config=config,
      )
    target = dataclasses.replace(target, max_padded_ids=max_padded_ids)
    target = languages_lib.choose(target, vocabulary, languages)
    return TextDecoder(target, draft, target.vocabulary, options)
  found = models.find_model(
      checkpoint,
      config,
      dtype=dtype,
      mesh=mesh,
      vocabulary=vocabulary,
      languages=languages,
      max_padded_ids=max_padded_ids,
  )
  shape = mesh and tuple(mesh.shape[x] for x in sharding.AXES)
  placed = placement.place(
      found,
      lambda target: [drafters.find(draft, target)],
      memory.Lengths(
          options.inputs_length,
          options.max_tokens,
          options.gamma,
          options.num_decodes,
      ),
      [shape[0] if shape else 1],
      shape,
  )
  # The drafter first: it is read sooner, and may not fit.
  drafting = placed.drafters[0].load()
  return TextDecoder(placed.target.load(), drafting, found.vocabulary, options)
