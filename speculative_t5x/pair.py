# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A target and a draft ready to decode: strings in; texts and scores out.

Legend: examples, num_decodes (samples an example), length (of the outputs).
"""

from collections.abc import Sequence
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import sentencepiece

from speculative_t5x import loading
from speculative_t5x import run_record
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import speculation
from speculative_t5x import token_decoder


@dataclasses.dataclass(frozen=True)
class Output:
  """What became of one batch, in T5X's form: the best decode comes last.

  Attributes:
    texts: [examples][num_decodes].
    scores: [examples, num_decodes] float32, log-probabilities.
    sequences: [examples, num_decodes, length] int32.
    num_truncated: inputs that were cut to their limit.
    statistics: counts and rates of the batch under the names of the run record
      (`docs/run_record.md`).
    decoded: tokens and counts of each row as decoded, before sorting, as numpy
      arrays.
  """

  texts: list[list[str]]
  scores: np.ndarray
  sequences: np.ndarray
  num_truncated: int
  statistics: run_record.Record
  decoded: token_decoder.Decoded


class Pair:
  """A target, a draft that guesses for it, and the vocabulary of both.

  Compiles at the first call of a shape: another number of texts compiles
  again, another temperature, top-k, top-p or seed does not.

  Example:

    >>> from speculative_t5x import embedded
    >>> pair = embedded.load_pair(gamma=5)
    >>> output = pair.decode(['The train from Bonn will be 20 minutes late.'])
    >>> plain = pair.decode_plain(
    ...     ['The train from Bonn will be 20 minutes late.'])
    >>> output.texts == plain.texts
    True
    >>> output.statistics['target_calls'] < plain.statistics['target_calls']
    True
  """

  def __init__(
      self,
      target: loading.Model,
      draft: loading.Model,
      vocabulary: sentencepiece.SentencePieceProcessor,
      *,
      gamma: int,
      inputs_length: int,
      targets_length: int,
      num_decodes: int = 1,
      rescale_log_probs: bool = True,
      mask_padded_ids: bool = False,
      matmul_precision: str | None = None,
  ):
    """Binds two models and their vocabulary; compiles nothing yet.

    Args:
      target: whose law the outputs follow; on one device or on a mesh.
      draft: any T5 that shares the vocabulary, on the same mesh if there is
        one: its data axis must then divide the number of texts.
      vocabulary: of both, see `loading.load_vocabulary`.
      gamma: guesses a block, at least 1.
      inputs_length: inputs are cut to this many tokens, end included.
      targets_length: outputs stop at this many tokens, end included.
      num_decodes: samples an example.
      rescale_log_probs: score under the law sampled from (True, T5X's
        default), or under the model's own (False).
      mask_padded_ids: whether ids beyond the vocabulary, which only pad the
        logits to a round width, are forbidden. T5X lets them take part.
      matmul_precision: JAX's setting for matrix products; None leaves it.
    Raises:
      loading.VocabularyError: if a model has fewer logits than the vocabulary
        has pieces.
      ValueError: for gamma, num_decodes or a length below 1.
    """
    if inputs_length < 1:
      raise ValueError(
          f'inputs_length must be at least 1, got {inputs_length}.'
      )
    num_pieces = vocabulary.get_piece_size()
    for name, model in (('target', target), ('draft', draft)):
      loading.check_vocabulary_fits(num_pieces, name, model)
    self.vocabulary = vocabulary
    self.inputs_length = inputs_length
    self.tokens = token_decoder.TokenDecoder(
        target,
        draft,
        gamma=gamma,
        length=targets_length,
        num_decodes=num_decodes,
        rescale_log_probs=rescale_log_probs,
        num_valid_tokens=num_pieces if mask_padded_ids else None,
        matmul_precision=matmul_precision,
    )

  def decode(self, texts: Sequence[str], **options) -> Output:
    """Decodes speculatively. The outputs follow the target's law exactly.

    Args:
      texts: inputs, none empty.
      **options: see `make_request`.
    Raises:
      ValueError: for an empty input or an option out of range.
    """
    request, num_truncated = self.make_request(texts, **options)
    decoded = jax.device_get(self.tokens.speculative(request))
    statistics = run_record.count_run([decoded])
    statistics |= run_record.count_speculation([decoded])
    statistics |= run_record.acceptance_rates(statistics)
    return self._output(decoded, num_truncated, statistics)

  def decode_plain(self, texts: Sequence[str], **options) -> Output:
    """Decodes by the target alone, one token a call.

    Args:
      texts: inputs, none empty.
      **options: see `make_request`.
    Raises:
      ValueError: for an empty input or an option out of range.
    """
    request, num_truncated = self.make_request(texts, **options)
    decoded = jax.device_get(self.tokens.plain(request))
    statistics = run_record.count_run([decoded])
    return self._output(decoded, num_truncated, statistics)

  def make_request(
      self,
      texts: Sequence[str],
      *,
      temperature: float = 0.0,
      topk: int = 0,
      topp: float = 0.0,
      draft_temperature: float | None = None,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
  ) -> tuple[token_decoder.Request, int]:
    """Tokenizes a batch.

    Args:
      texts: inputs, none empty.
      temperature: 0 is argmax.
      topk: keep the k likeliest tokens; 0 is off.
      topp: keep the likeliest tokens of this mass; 0 is off.
      draft_temperature: None for the target's. No value changes the law of the
        outputs, only how many guesses are kept.
      seed: with the example id, all that a sample depends on.
      example_ids: one an input; 0, 1, ... by default.
    Returns:
      The request, and how many inputs were cut to their limit.
    """
    if isinstance(texts, str) or not texts:
      raise ValueError(
          'texts must be a list of at least one input, got'
          f' {texts!r}.'
      )
    rows = [self._tokenize(i, text) for i, text in enumerate(texts)]
    tokens = np.full(
        (len(rows), self.inputs_length), loading.PAD_ID, np.int32
    )
    for row, ids in zip(tokens, rows):
      row[: len(ids)] = cut(ids, self.inputs_length)
    if draft_temperature is None:
      draft_temperature = temperature
    if example_ids is None:
      example_ids = range(len(rows))
    if len(example_ids) != len(rows):
      raise ValueError(
          f'There must be one example id an input, got {len(example_ids)} ids'
          f' and {len(rows)} inputs.'
      )
    token_decoder.check_int32('seed', seed)
    for index, each in enumerate(example_ids):
      token_decoder.check_int32(f'example_ids[{index}]', each)
    request = token_decoder.Request(
        encoder_input_tokens=jnp.asarray(tokens),
        example_ids=jnp.asarray(list(example_ids), jnp.int32),
        limits=jnp.full((len(rows),), self.tokens.length, jnp.int32),
        seed=jnp.asarray(seed, jnp.int32),
        sampling=sampling_lib.make_sampling(temperature, topk, topp),
        draft_sampling=sampling_lib.make_sampling(
            draft_temperature, topk, topp
        ),
    )
    return request, sum(len(ids) > self.inputs_length for ids in rows)

  def _tokenize(self, index: int, text: str) -> list[int]:
    # The vocabulary drops blanks, and characters that show nothing.
    ids = self.vocabulary.encode(text)
    if not ids:
      raise ValueError(
          f'Input {index} is empty. Remove it, or give it some text.'
      )
    return [*ids, speculation.EOS_ID]

  def _output(
      self,
      decoded: token_decoder.Decoded,
      num_truncated: int,
      statistics: run_record.Record,
  ) -> Output:
    token_decoder.check_finite(decoded)
    sequences, scores = token_decoder.best_last(
        decoded, self.tokens.num_decodes
    )
    texts = [
        [detokenize(self.vocabulary, decode) for decode in example]
        for example in sequences
    ]
    return Output(
        texts, scores, sequences, num_truncated, statistics, decoded
    )


def cut(ids: Sequence[int], limit: int) -> list[int]:
  """Cuts tokens that end with EOS to a limit, the end kept, as T5X's tasks."""
  if len(ids) <= limit:
    return list(ids)
  return [*ids[: limit - 1], speculation.EOS_ID]


def detokenize(
    vocabulary: sentencepiece.SentencePieceProcessor, ids: np.ndarray
) -> str:
  """The text of a decoded row, up to its end of sequence.

  Ids that only pad the logits have no piece and are left out.
  """
  ids = ids.tolist()
  if speculation.EOS_ID in ids:
    ids = ids[: ids.index(speculation.EOS_ID)]
  num_pieces = vocabulary.get_piece_size()
  return vocabulary.decode(
      [i for i in ids if i != loading.PAD_ID and i < num_pieces]
  )
