# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings in; texts, scores and statistics out.

Legend: examples, num_decodes (samples per example), length (of the outputs).
"""

from collections.abc import Sequence
import dataclasses
import os
import reprlib
from typing import NamedTuple

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import given
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import sharding
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification

INPUTS_LENGTH, TARGETS_LENGTH = 512, 128  # as T5 was trained
_MIN_WIDTH = 32  # below it, widths save little


@dataclasses.dataclass(frozen=True)
class Output:
  """The outputs of one batch, in T5X's form: the best decode comes last.

  Attributes:
    texts: [examples][num_decodes] strings.
    scores: [examples, num_decodes] float32, log-probabilities.
    sequences: [examples, num_decodes, length] int32.
    num_truncated: Number of inputs that were cut to their limit.
    num_unknown: Number of inputs with text that the vocabulary does not know,
      see `vocabularies.Vocabulary.knows`.
    statistics: Counts and rates of the batch under the names of the run record
      (`docs/run_record.md`).
    decoded: Tokens and counts per row, before sorting, as numpy arrays.
  """

  texts: list[list[str]]
  scores: np.ndarray
  sequences: np.ndarray
  num_truncated: int
  num_unknown: int
  statistics: dict[str, object]
  decoded: token_decoder.Decoded

  def __repr__(self) -> str:
    calls = self.statistics['target_calls']
    return f'Output({reprlib.repr(self.texts)}, {calls} target calls)'


class InputCounts(NamedTuple):
  """How many inputs of a batch are not decoded as they were given.

  Attributes:
    num_truncated: Inputs that were cut to their limit.
    num_unknown: Inputs with text that the vocabulary does not know.
  """

  num_truncated: int
  num_unknown: int


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
      drafter: given.Given,
      vocabulary: vocabularies.Vocabulary,
      *,
      gamma: int = 5,
      inputs_length: int = INPUTS_LENGTH,
      targets_length: int = TARGETS_LENGTH,
      hints_length: int | None = None,
      num_decodes: int = 1,
      policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
      rescale_log_probs: bool = True,
      mask_padded_ids: bool = False,
      matmul_precision: str | None = None,
  ):
    """Bind target, drafter and vocabulary; compile nothing yet.

    Args:
      target: Model whose distribution the outputs follow; on one device or on a
        mesh, whose data axis must then divide the number of texts.
      drafter: Drafts for the target: a loaded model, a source that needs no
        checkpoint of the target, or a `source.Drafting`; None for lookup.
      vocabulary: Vocabulary of the target, see `vocabularies.load`.
      gamma: Draft tokens per block, at least 1.
      inputs_length: Inputs are cut to this many tokens, end included. Batches
        of shorter inputs are decoded at a quarter of it, or a quarter of that.
      targets_length: Outputs stop at this many tokens, end included.
      hints_length: Hints of an example are cut to this many tokens; None for
        all of them.
      num_decodes: Samples per example.
      policy: Draft length policy; `policies` has others.
      rescale_log_probs: Whether to score under the distribution sampled from
        (True, T5X's default), or under the model's own (False).
      mask_padded_ids: Whether ids beyond the vocabulary, which only pad the
        logits to a round width, are forbidden. T5X lets them take part.
      matmul_precision: JAX's setting for matrix products; None leaves it.
    Raises:
      vocabularies.VocabularyError: if a model has fewer logits than the
        vocabulary has pieces, or another end of sequence.
      ValueError: for gamma, num_decodes or a length below 1.
    """
    limits = {'inputs_length': inputs_length, 'hints_length': hints_length}
    limits = {name: x for name, x in limits.items() if x is not None}
    ranges.check_settings(ranges.COUNT, **limits)
    drafter = given.load(drafter)
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

  def __repr__(self) -> str:
    return (
        f'TextDecoder({self.tokens}, inputs of at most {self.inputs_length}'
        f' tokens, vocabulary {self.vocabulary.name})'
    )

  @sampling_lib.as_one
  def decode(
      self,
      texts: Sequence[str],
      *,
      sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
      draft_sampling: sampling_lib.Sampling | None = None,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
      hints: Sequence[hints_lib.Hints] | None = None,
      answers: engine.Answers | None = None,
      rule: contracts.Rule = verification.TOKENWISE,
  ) -> Output:
    """Decode speculatively.

    The outputs follow the target's distribution, unless the rule is one that is
    not lossless.

    Args:
      texts: Inputs, none empty.
      sampling: Temperature, top-k, top-p, min-p and typical sampling of the
        target; the default is argmax.
      draft_sampling: Sampling of the drafter; None for the target's. It changes
        the acceptance rate and never the distribution of the outputs.
      seed: With the example id, all that a sample depends on, up to rounding.
      example_ids: One id per input; 0, 1, ... by default.
      hints: Per input, a text that the output may repeat, several in order of
        preference, or None. They make drafts of drafters that read them, and
        never change the distribution of the outputs.
      answers: Adds earlier answers behind the hints, see `answers.Finder`; None
        for none.
      rule: Decides which draft tokens are accepted; `rules` has others.
    Raises:
      ValueError: for an empty input or a value out of range, for a rule whose
        outputs cannot be scored, or for hints that the drafter does not read.
    """
    description.check(rule)
    if self._rescale_log_probs and not rule.is_lossless:
      raise ValueError(
          f'The rule {rule.name} may write tokens that have probability 0 under'
          ' the distribution sampled from, and so no score. Make the'
          ' TextDecoder with rescale_log_probs=False.'
      )
    request, counted = self.make_request(
        texts,
        sampling=sampling,
        draft_sampling=draft_sampling,
        seed=seed,
        example_ids=example_ids,
        hints=hints,
        rule=rule,
    )
    if request.hints is not None:
      self.tokens.check_reads_hints()
    speculative = engine.Engine(self.tokens, answers=answers)
    return self._decode(speculative, request, counted)

  @sampling_lib.as_one
  def decode_plain(
      self,
      texts: Sequence[str],
      *,
      sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
  ) -> Output:
    """Decode by the target alone, one token per target call.

    Args:
      texts: Inputs, none empty.
      sampling: Sampling of the target; the default is argmax.
      seed: Seed of the samples.
      example_ids: One id per input; 0, 1, ... by default.
    Raises:
      ValueError: for an empty input or a value out of range.
    """
    request, counted = self.make_request(
        texts, sampling=sampling, seed=seed, example_ids=example_ids
    )
    plain = engine.Engine(self.tokens, is_plain=True)
    return self._decode(plain, request, counted)

  def make_request(
      self,
      texts: Sequence[str],
      *,
      sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
      draft_sampling: sampling_lib.Sampling | None = None,
      seed: int = 0,
      example_ids: Sequence[int] | None = None,
      hints: Sequence[hints_lib.Hints] | None = None,
      rule: contracts.Rule = verification.TOKENWISE,
  ) -> tuple[requests_lib.Request, InputCounts]:
    """Tokenize a batch, as wide as inputs may be.

    Args:
      texts: Inputs, none empty.
      sampling: See `decode`, as for all that follow.
      draft_sampling: Sampling of the drafter.
      seed: Seed of the samples.
      example_ids: One id per input.
      hints: Hints per input.
      rule: Decides which draft tokens are accepted.
    Returns:
      The request, and how many inputs were cut or have unknown text.
    """
    if isinstance(texts, str):
      raise ValueError(f'texts must be a list of inputs, got {texts!r}.')
    for index, text in enumerate(texts):
      if not isinstance(text, str):
        raise ValueError(f'texts[{index}] must be a string, got {text!r}.')
    encoded = [self.vocabulary.encode(text) for text in texts]
    # The vocabulary drops blanks, and characters that show nothing: an input
    # may be empty that has some.
    rows = requests_lib.check_rows(encoded, example_ids)
    if hints is None:
      hints = [None] * len(texts)
    if isinstance(hints, str) or len(hints) != len(texts):
      found = 'one text' if isinstance(hints, str) else f'{len(hints)} entries'
      raise ValueError(
          f'hints must be a list with one entry per input, got {found} and'
          f' {len(texts)} inputs. Give None for an input without hints.'
      )
    limit, end = self.inputs_length, self.tokens.target_model.special_ids.end
    rows = [
        row._replace(
            tokens=batching.cut([*row.tokens, end], limit, end),
            hints=hints_lib.encode(each, self.vocabulary, self.hints_length),
        )
        for row, each in zip(rows, hints, strict=True)
    ]
    (request,) = requests_lib.Requests(
        inputs_length=limit,
        length=self.tokens.length,
        batch_size=len(rows),
        sampling=sampling,
        draft_sampling=draft_sampling,
        seed=seed,
        rule=rule,
    ).of(rows)
    knows = self.vocabulary.knows
    return request, InputCounts(
        sum(len(ids) >= limit for ids in encoded),
        sum(not knows(*each) for each in zip(texts, encoded, strict=True)),
    )

  def _decode(
      self,
      way: engine.Engine,
      request: requests_lib.Request,
      counted: InputCounts,
  ) -> Output:
    """Decode a batch at the least width that holds its longest input."""
    inputs = np.asarray(request.inputs)
    longest = np.count_nonzero(np.any(inputs != contracts.NO_TOKEN, axis=0))
    inputs = jnp.asarray(inputs[:, : self._width(longest)])
    decoded = way.run(request.replace(inputs=inputs)).decoded
    total = counts.total([decoded])
    statistics = counts.count_run(total)
    if not way.is_plain:
      statistics |= counts.count_speculation(total)
      statistics |= counts.acceptance_rates(statistics)
    sequences, scores = token_decoder.best_last(
        decoded, self.tokens.num_decodes
    )
    special_ids = self.tokens.target_model.special_ids
    texts = [
        [
            self.vocabulary.decode(batching.text_ids(ids, special_ids))
            for ids in decodes
        ]
        for decodes in sequences.tolist()
    ]
    return Output(texts, scores, sequences, *counted, statistics, decoded)

  def _width(self, longest: int) -> int:
    """Return the least width of a batch that holds its longest input.

    Each width compiles once more, and runs the encoder at half and a quarter of
    itself too (`input_widths`). Quarters of quarters are therefore enough.
    """
    width = self.inputs_length
    while width // 4 >= max(longest, _MIN_WIDTH):
      width //= 4
    return width


def load(
    target: checkpoints.Path | models.Model,
    draft: checkpoints.Path | given.Given = None,
    *,
    gamma: int = 5,
    vocabulary: epath.PathLike | vocabularies.Vocabulary | None = None,
    inputs_length: int = INPUTS_LENGTH,
    targets_length: int = TARGETS_LENGTH,
    hints_length: int | None = None,
    num_decodes: int = 1,
    policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
    rescale_log_probs: bool = True,
    mask_padded_ids: bool = False,
    dtype: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
    matmul_precision: str | None = None,
) -> TextDecoder:
  """Load a target, a drafter and their vocabulary, ready to decode texts.

  Nothing is compiled yet, but with the first batch of a shape.

  Args:
    target: Path of a checkpoint: a Hugging Face folder, a `checkpoint_<step>`
      of T5X, or a folder of several, of which the newest is taken. Or a loaded
      model.
    draft: Path of a draft model's checkpoint, a loaded model, a source such as
      `early_exit_source.OfTarget(2)`, or a `source.Drafting`. None for lookup,
      which drafts without a model: it copies what followed the last tokens
      earlier in the input, the output or the hints.
    gamma: Draft tokens per target call, at most.
    vocabulary: SentencePiece .model file, tokenizer.json or folder of one; or a
      vocabulary. None for the one in the folder of the target.
    inputs_length: See `TextDecoder`, as for all that follow but two.
    targets_length: Outputs stop at this many tokens.
    hints_length: Hints of an example are cut to this many tokens.
    num_decodes: Samples per text.
    policy: Draft length policy.
    rescale_log_probs: Whether to score under the distribution sampled from.
    mask_padded_ids: Whether ids beyond the vocabulary are forbidden.
    dtype: Type that both models are loaded in and compute in; None for the one
      that suits the device: bfloat16 where it is native, else float32.
    mesh: Devices to load onto, see `sharding.make_mesh`; None for as few as
      hold the weights, which takes any number of texts.
    matmul_precision: JAX's setting for matrix products.
  Raises:
    vocabularies.VocabularyError: if the folder of the target has no vocabulary,
      or one that is not the models'.
    checkpoints.CheckpointError: if a checkpoint cannot be read.
    placement.DoesNotFitError: if the devices have too little memory; nothing
      has been read then.
    ValueError: for a value out of range, or a drafter that cannot draft for the
      target.
  """
  found = None
  if isinstance(target, models.Model):
    vocabulary = _vocabulary(vocabulary, target.checkpoint)
  else:
    checkpoint = checkpoints.open(target)
    found = models.find_model(checkpoint, dtype=dtype, mesh=mesh)
    vocabulary = _vocabulary(vocabulary, target, checkpoint.folder)
    found = found.with_vocabulary(vocabulary.name, vocabulary.eos_id)
  if isinstance(draft, str | os.PathLike):
    draft = draft_model_source.FromCheckpoint(draft)
    if found is None:
      draft = models.load_model(
          draft.checkpoint_path, dtype=target.config.dtype, mesh=target.mesh
      )
  if found is None:
    drafter = given.find(draft, None, vocabulary)()
  else:
    shape = mesh and tuple(mesh.shape[x] for x in sharding.AXES)
    placed = placement.place(
        found,
        lambda target: [given.find(draft, target, vocabulary)],
        placement.Batches(
            sizes=[shape[0] if shape else 1],
            num_decodes=num_decodes,
            inputs_length=inputs_length,
            targets_length=targets_length,
            gamma=gamma,
        ),
        shape,
    )
    (read,) = placed.drafters
    drafter, target = read(), placed.target.load()
  return TextDecoder(
      target,
      drafter,
      vocabulary,
      gamma=gamma,
      inputs_length=inputs_length,
      targets_length=targets_length,
      hints_length=hints_length,
      num_decodes=num_decodes,
      policy=policy,
      rescale_log_probs=rescale_log_probs,
      mask_padded_ids=mask_padded_ids,
      matmul_precision=matmul_precision,
  )


def _vocabulary(
    given_one: epath.PathLike | vocabularies.Vocabulary | None,
    *folders: epath.PathLike | None,
) -> vocabularies.Vocabulary:
  """Return the vocabulary given, or the one in a folder of the target."""
  if isinstance(given_one, vocabularies.Vocabulary):
    return given_one
  if given_one is not None:
    return vocabularies.load(given_one)
  for folder in filter(None, folders):
    files = (user_paths.expand(folder) / name for name in vocabularies.NAMES)
    if any(file.is_file() for file in files):
      return vocabularies.load(folder)
  raise vocabularies.VocabularyError(
      f'There is no vocabulary in the folder of the target, {folders[0]}. Give'
      ' vocabulary=<a SentencePiece .model file, a tokenizer.json, or a folder'
      ' that holds one>.'
  )
