# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings in; texts, scores and statistics out.

Legend: examples, num_decodes (samples per example), length (of the outputs).
"""

from collections.abc import Callable, Sequence
import dataclasses

import jax
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification


@dataclasses.dataclass(frozen=True)
class Output:
  """The outputs of one batch, in T5X's form: the best decode comes last.

  Attributes:
    texts: [examples][num_decodes].
    scores: [examples, num_decodes] float32, log-probabilities.
    sequences: [examples, num_decodes, length] int32.
    num_truncated: inputs that were cut to their limit.
    num_unknown: inputs with text that the vocabulary does not know, see
      `vocabularies.Vocabulary.knows`.
    statistics: counts and rates of the batch under the names of the run record
      (`docs/run_record.md`).
    decoded: tokens and counts per row, before sorting, as numpy arrays.
  """

  texts: list[list[str]]
  scores: np.ndarray
  sequences: np.ndarray
  num_truncated: int
  num_unknown: int
  statistics: dict[str, object]
  decoded: token_decoder.Decoded


class TextDecoder:
  """A target, a drafter, and the vocabulary of both.

  Compiles at the first call of a shape: another number of texts compiles
  again, another temperature, top-k, top-p or seed does not.

  Example:

    >>> from speculative_t5x import embedded
    >>> decoder = embedded.load_decoder(gamma=5)
    >>> texts = ['The train from Bonn will be 20 minutes late.']
    >>> output, plain = decoder.decode(texts), decoder.decode_plain(texts)
    >>> output.texts == plain.texts
    True
    >>> output.statistics['target_calls'] < plain.statistics['target_calls']
    True
  """

  def __init__(
      self,
      target: models.Model,
      drafter: source.Drafting,
      vocabulary: vocabularies.Vocabulary,
      *,
      gamma: int,
      inputs_length: int,
      targets_length: int,
      hints_length: int | None = None,
      num_decodes: int = 1,
      policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
      rescale_log_probs: bool = True,
      mask_padded_ids: bool = False,
      matmul_precision: str | None = None,
  ):
    """Binds target, drafter and vocabulary; compiles nothing yet.

    Args:
      target: the model whose distribution the outputs follow; on one device or
        on a mesh, whose data axis must then divide the number of texts.
      drafter: drafts for it, see `drafters.source`.
      vocabulary: of the target, see `vocabularies.load`.
      gamma: draft tokens per block, at least 1.
      inputs_length: inputs are cut to this many tokens, end included.
      targets_length: outputs stop at this many tokens, end included.
      hints_length: the hints of an example are cut to this many tokens; None
        for all of them.
      num_decodes: samples per example.
      policy: how many draft tokens are wanted; `policies` has others.
      rescale_log_probs: score under the distribution sampled from (True, T5X's
        default), or under the model's own (False).
      mask_padded_ids: whether ids beyond the vocabulary, which only pad the
        logits to a round width, are forbidden. T5X lets them take part.
      matmul_precision: JAX's setting for matrix products; None leaves it.
    Raises:
      vocabularies.VocabularyError: if a model has fewer logits than the
        vocabulary has pieces, or another end of sequence.
      ValueError: for gamma, num_decodes or a length below 1.
    """
    for name, value in (
        ('inputs_length', inputs_length),
        ('hints_length', hints_length),
    ):
      if value is not None and value < 1:
        raise ValueError(f'{name} must be at least 1, got {value}.')
    source.check_drafting(drafter)
    models.check_end(vocabulary.name, vocabulary.eos_id, target.special_ids)
    vocabulary = models.fit_vocabulary(vocabulary, target, drafter.models)
    self._rescale_log_probs = rescale_log_probs
    self.vocabulary = vocabulary
    self.inputs_length = inputs_length
    self.hints_length = hints_length
    self.tokens = token_decoder.TokenDecoder(
        target,
        drafter,
        gamma=gamma,
        length=targets_length,
        num_decodes=num_decodes,
        policy=policy,
        rescale_log_probs=rescale_log_probs,
        num_valid_tokens=vocabulary.num_ids if mask_padded_ids else None,
        matmul_precision=matmul_precision,
    )

  def decode(self, texts: Sequence[str], **options) -> Output:
    """Decodes speculatively.

    The outputs follow the target's distribution, unless the rule is one that is
    not lossless.

    Args:
      texts: inputs, none empty.
      **options: see `make_request`.
    Raises:
      ValueError: for an empty input or an option out of range, for a rule whose
        outputs cannot be scored, or for hints that the drafter does not read.
    """
    request, num_truncated = self.make_request(texts, **options)
    self._check_scores(request.rule)
    if request.hints is not None:
      self.tokens.check_reads_hints()
    decoded = jax.device_get(self.tokens.speculative(request))
    total = counts.total([decoded])
    statistics = counts.count_run(total) | counts.count_speculation(total)
    statistics |= counts.acceptance_rates(statistics)
    return self._output(texts, decoded, num_truncated, statistics)

  def decode_plain(self, texts: Sequence[str], **options) -> Output:
    """Decodes by the target alone, one token per target call.

    Args:
      texts: inputs, none empty.
      **options: see `make_request`.
    Raises:
      ValueError: for an empty input or an option out of range.
    """
    request, num_truncated = self.make_request(texts, **options)
    decoded = jax.device_get(self.tokens.plain(request))
    statistics = counts.count_run(counts.total([decoded]))
    return self._output(texts, decoded, num_truncated, statistics)

  def make_request(
      self,
      texts: Sequence[str],
      *,
      temperature: float = 0.0,
      topk: int = 0,
      topp: float = 0.0,
      minp: float = 0.0,
      typicalp: float = 0.0,
      draft_temperature: float | None = None,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
      hints: Sequence[hints_lib.Hints] | None = None,
      answers: (
          Callable[[token_decoder.Request], token_decoder.Request] | None
      ) = None,
      rule: contracts.Rule = verification.TOKENWISE,
  ) -> tuple[token_decoder.Request, int]:
    """Tokenizes a batch.

    Args:
      texts: inputs, none empty.
      temperature: 0 is argmax.
      topk: keep the k likeliest tokens; 0 is off.
      topp: keep the likeliest tokens of this mass; 0 or 1 is off.
      minp: keep tokens at least this share as likely as the likeliest; 0 is
        off.
      typicalp: keep the tokens of this mass whose information is closest to the
        entropy; 0 or 1 is off.
      draft_temperature: None for the target's. It changes the acceptance rate
        and never the distribution of the outputs.
      seed: with the example id, all that a sample depends on, up to rounding.
      example_ids: one per input; 0, 1, ... by default.
      hints: per input, a text that the output may repeat, several in order of
        preference, or None. They make drafts of drafters that read them, and
        never change the distribution of the outputs.
      answers: adds earlier answers behind the hints, see `answers.Finder`; None
        for none.
      rule: which draft tokens are accepted; `rules` has others.
    Returns:
      The request, and how many inputs were cut to their limit.
    """
    if isinstance(texts, str) or not texts:
      raise ValueError(
          f'texts must be a list of at least one input, got {texts!r}.'
      )
    rows = [self._tokenize(i, text) for i, text in enumerate(texts)]
    if draft_temperature is None:
      draft_temperature = temperature
    if example_ids is None:
      example_ids = range(len(rows))
    if len(example_ids) != len(rows):
      raise ValueError(
          'There must be one example id per input, got'
          f' {len(example_ids)} ids and {len(rows)} inputs.'
      )
    token_decoder.check_int32('seed', seed)
    description.check(rule)
    for index, each in enumerate(example_ids):
      token_decoder.check_int32(f'example_ids[{index}]', each)
    special_ids = self.tokens.target_model.special_ids
    rules = dict(topk=topk, topp=topp, minp=minp, typicalp=typicalp)
    limit = self.inputs_length
    (request,) = batching.requests(
        batching.pad(
            [batching.cut(ids, limit, special_ids.end) for ids in rows],
            limit,
        ),
        np.asarray(example_ids, np.int32),
        batch_size=len(rows),
        length=self.tokens.length,
        seed=seed,
        sampling=sampling_lib.make_sampling(temperature, **rules),
        draft_sampling=sampling_lib.make_sampling(draft_temperature, **rules),
        rule=rule,
        hints=self._tokenize_hints(hints, len(rows)),
    )
    if answers is not None:
      request = answers(request)
    return request, sum(len(ids) > limit for ids in rows)

  def _tokenize(self, index: int, text: str) -> list[int]:
    # The vocabulary drops blanks, and characters that show nothing.
    ids = self.vocabulary.encode(text)
    if not ids:
      raise ValueError(
          f'Input {index} is empty. Remove it, or give it some text.'
      )
    return [*ids, self.tokens.target_model.special_ids.end]

  def _tokenize_hints(
      self, hints: Sequence[hints_lib.Hints] | None, count: int
  ) -> np.ndarray | None:
    if hints is None:
      return None
    if isinstance(hints, str) or len(hints) != count:
      given = 'one text' if isinstance(hints, str) else f'{len(hints)} entries'
      raise ValueError(
          f'hints must be a list with one entry per input, got {given} and'
          f' {count} inputs. Give None for an input without hints.'
      )
    encoded = [
        hints_lib.encode(each, self.vocabulary, self.hints_length)
        for each in hints
    ]
    return hints_lib.stack(encoded)

  def _check_scores(self, rule: contracts.Rule) -> None:
    if self._rescale_log_probs and not rule.is_lossless:
      raise ValueError(
          f'The rule {rule.name} may write tokens that have probability 0 under'
          ' the distribution sampled from, and so no score. Make the'
          ' TextDecoder with rescale_log_probs=False.'
      )

  def count_unknown(self, texts: Sequence[str]) -> int:
    """Returns how many texts the vocabulary does not know in full."""
    encode, knows = self.vocabulary.encode, self.vocabulary.knows
    return sum(not knows(text, encode(text)) for text in texts)

  def _output(
      self,
      inputs: Sequence[str],
      decoded: token_decoder.Decoded,
      num_truncated: int,
      statistics: dict[str, object],
  ) -> Output:
    token_decoder.check_finite(decoded)
    sequences, scores = token_decoder.best_last(
        decoded, self.tokens.num_decodes
    )
    texts = [[self._detokenize(ids) for ids in x] for x in sequences.tolist()]
    return Output(
        texts,
        scores,
        sequences,
        num_truncated,
        self.count_unknown(inputs),
        statistics,
        decoded,
    )

  def _detokenize(self, ids: list[int]) -> str:
    return self.vocabulary.decode(
        batching.text_ids(ids, self.tokens.target_model.special_ids)
    )
