# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids in, token ids out: both encoders and the loop, compiled once.

Legend: examples, num_decodes (samples per example), rows (examples times
num_decodes, an example's next to each other), inputs_length, max_tokens (of an
output), gamma (draft tokens per block).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import copy
import dataclasses
import functools
from typing import Any, Unpack
import warnings

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.drafters import beam_chains
from speculative_t5x.drafters import beam_drafts
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import errors
from speculative_t5x.loading import models
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import score_order
from speculative_t5x.speculation import state as state_lib


@struct.dataclass
class Decoded:
  """Token ids, and what happened on the way.

  Attributes:
    sequences: [rows, max_tokens] int32, with the end of sequence, then padding.
    num_tokens: [rows] int32, end of sequence included.
    log_probs: [rows] float32.
    num_calls: [rows] int32, target calls.
    num_steps: int32 scalar, steps of the loop, see `loop.Work`.
    num_draft_steps: int32 scalar, see `loop.Work`.
    calls_by_width: [widths] int32, target calls, see `loop.Work`.
    statistics: Counts per row; None for plain decoding.
    is_search: Whether rows are hypotheses of a beam search, each with the
      counts of its example, and log-probabilities their scores (static).
  """

  sequences: jax.Array
  num_tokens: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  num_steps: jax.Array
  num_draft_steps: jax.Array
  calls_by_width: jax.Array
  statistics: outcome_lib.Statistics | None
  is_search: bool = struct.field(pytree_node=False, default=False)


def check(decoded: Decoded) -> None:
  """Check what a program has computed: finite scores, and counts that agree.

  Raises:
    ValueError: if a row's log-probability is not finite, as logits were lost to
      overflow, or if counts contradict each other, as no decoding can make them
      and a wrongly compiled program did.
  """
  is_wrong = (decoded.num_calls > decoded.num_steps) | (
      np.sum(decoded.calls_by_width) != decoded.num_steps
  )
  check_rows(
      decoded.log_probs,
      decoded.num_tokens,
      decoded.num_calls,
      decoded.statistics,
      is_wrong,
      decoded.is_search,
  )


def check_rows(
    log_probs: np.ndarray,
    num_tokens: np.ndarray,
    num_calls: np.ndarray,
    statistics: outcome_lib.Statistics | None,
    is_wrong: np.ndarray | bool = False,
    is_search: bool = False,
) -> None:
  """Check what a program has computed of some rows; see `check`."""
  check_finite(log_probs)
  is_wrong = is_wrong | _is_contradictory(
      num_tokens, num_calls, statistics, is_search
  )
  bad = np.flatnonzero(is_wrong)
  if bad.size:
    raise ValueError(
        f'Row {bad[0]} of a batch has {num_tokens[bad[0]]} tokens of'
        f' {num_calls[bad[0]]} target calls, and its counts contradict each'
        ' other: the compiled program is wrong. Unset XLA_FLAGS, or use another'
        ' version of JAX.'
    )


def check_finite(log_probs: np.ndarray) -> None:
  """Raise ValueError unless all log-probabilities of rows are finite."""
  bad = np.flatnonzero(~np.isfinite(log_probs))
  if bad.size:
    raise ValueError(
        f'Row {bad[0]} of a batch has log-probability {log_probs[bad[0]]}: the'
        " model's logits are not finite. Decode in float32, or use another"
        ' checkpoint.'
    )


def _is_contradictory(
    tokens: np.ndarray,
    calls: np.ndarray,
    counts: outcome_lib.Statistics | None,
    is_search: bool,
) -> np.ndarray:
  """Return whose counts no decoding can have, [rows] bool."""
  # A hypothesis may have ended before its search.
  is_other = np.greater if is_search else np.not_equal
  if counts is None:  # plain decoding: each call gives a token
    return is_other(tokens, calls)
  # A histogram of all calls also bounds the tokens by gamma + 1 per call.
  made = counts.num_accepted + calls - counts.num_cut_short
  return (
      is_other(tokens, made)
      | (counts.accepted_histogram.sum(axis=-1) != calls)
      | (counts.num_cut_short < 0)
      | (counts.num_accepted > counts.num_tested)
      | (counts.num_tested > counts.num_drafted)
      | (counts.num_drafted > counts.num_computed)
  )


def best_last(
    decoded: Decoded, num_decodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Return the decodes of each example by score, in T5X's order.

  Args:
    decoded: What was decoded, as numpy arrays.
    num_decodes: Rows per example.
  Returns:
    Sequences [examples, num_decodes, max_tokens] int32, their log-probabilities
    [examples, num_decodes] float32, ascending; equal ones as they were decoded;
    and their numbers of tokens [examples, num_decodes] int32.
  """
  columns = decoded.sequences, decoded.log_probs, decoded.num_tokens
  order = decoded.log_probs
  if decoded.is_search:  # it has an order, see `beams.hypotheses`
    order = np.zeros_like(order)
  return jax.device_get(score_order.best_last(order, columns, num_decodes))


def check_target(target: models.Model) -> None:
  """Raise TypeError for a target that is not a loaded model."""
  loaded = 'a loaded model, such as speculative_t5x.load_model(<path>)'
  options_lib.check_type('target', target, models.Model, loaded)


class TokenDecoder:
  """A target and a drafter as compiled functions from tokens to tokens.

  All parameters lie on one device or on one mesh. On a mesh the examples of a
  batch are split along its data axis.
  """

  @keywords.named(options_lib.Options)
  def __init__(
      self,
      target: models.Model,
      drafter: drafters.Choice | models.Model | checkpoints.Path = (
          drafters.Lookup()  # noqa: B008
      ),
      options: options_lib.Options = options_lib.Options(),  # noqa: B008
      **changes: Unpack[options_lib.ByName],
  ):
    """Bind target and drafter; compile nothing yet.

    Args:
      target: Model whose distribution the outputs follow, see
        `models.load_model`.
      drafter: Drafts for the target: see `drafters.find`.
      options: See `Options`.
      **changes: Options by name, such as `gamma=3`.
    Raises:
      TypeError: for a target that is not a loaded model, or an unknown option.
      ValueError: for an option out of range, or a drafter that does not fit the
        target.
    """
    check_target(target)
    options = options_lib.of(options, changes)
    if options.mask_padded_ids and options.num_valid_tokens is None:
      raise ValueError(
          'mask_padded_ids needs a vocabulary. Give num_valid_tokens to a'
          ' TokenDecoder.'
      )
    network.check_decoder_prompt(target.config)
    network.check_positions(
        target.config, options.inputs_length, options.max_tokens
    )
    self.target = target
    self.mesh = target.mesh
    self.options = options
    ids = target.special_ids
    if not options.may_end:
      ids = dataclasses.replace(ids, forbidden=(*ids.forbidden, *ids.ends))
    self.target_model = network.NetworkModel(
        target.config, ids, options.num_valid_tokens
    )
    # All that is made by `with_drafter` shares both, which must not keep a
    # replaced drafter in memory: no closure over this decoder, and a copy that
    # has no drafter yet. A network without an encoder is refused at its call.
    config = target.config
    self._jit_encode = jax.jit(
        lambda params, inputs: config.encode(params, inputs)
    )
    self._jit_plain = jax.jit(copy.copy(self)._plain)
    self._jit_plain_beams = jax.jit(
        copy.copy(self)._plain_beams, static_argnums=(0, 1)
    )
    self._bind_drafter(drafter)

  def _bind_drafter(self, drafter: drafters.Choice) -> None:
    drafter = drafters.find(drafter, self.target)
    if not isinstance(self.target, models.Deferred):
      drafter = drafter.load()
    if self.mesh != drafter.mesh and jax.tree.leaves(drafter.params):
      raise sharding.MeshError(
          f'The target lies on the mesh {sharding.describe(self.mesh)} and'
          f' the drafter on {sharding.describe(drafter.mesh)} ({{}} is one'
          ' device). Load both onto one mesh.'
      )
    self._bind(
        drafter, drafter.drafter(self.target_model, self.options.gamma)
    )

  def _bind(
      self, loaded: drafters.Drafting, drafter: contracts.Drafter
  ) -> None:
    self.loaded_drafter = loaded
    self.drafter = drafter
    # Of engines, by their rows and the class of their rule: see
    # `RowPrograms.of`.
    self.row_programs: dict[Any, Any] = {}
    self._jit_speculative = jax.jit(
        lambda *args: _decoded(*self._speculative(outcome_lib.COUNTING, *args))
    )
    self._jit_speculative_beams = jax.jit(
        self._speculative_beams, static_argnums=(0, 1, 2)
    )
    self._jit_traced = jax.jit(
        functools.partial(self._speculative, outcome_lib.TRACING)
    )

  def loaded(self) -> 'TokenDecoder':
    """Return the decoder with its drafter read, for a target read when used.

    What only describes a decoder of such a target reads nothing.
    """
    if self.loaded_drafter.read is None:
      return self
    return self.with_drafter(self.loaded_drafter.load(), self.options.gamma)

  def make_drafter(self, gamma: int) -> contracts.Drafter:
    """Return the drafter of another gamma; see `drafters.Drafting`."""
    return self.loaded_drafter.drafter(self.target_model, gamma)

  def with_drafter(
      self,
      drafter: drafters.Choice,
      gamma: int,
      policy: contracts.DraftLengthPolicy | None = None,
  ) -> 'TokenDecoder':
    """Return a decoder of the same target with another drafter or gamma.

    What has been compiled for plain decoding stays compiled.

    Args:
      drafter: Drafts for the target; see `__init__`.
      gamma: Draft tokens per block.
      policy: Another draft length policy; None for the same.
    """
    other = copy.copy(self)
    other.options = dataclasses.replace(
        self.options, gamma=gamma, policy=policy or self.options.policy
    )
    other._bind_drafter(drafter)
    return other

  def __repr__(self) -> str:
    return (
        f'TokenDecoder({self.target}, {self.loaded_drafter}, gamma'
        f' {self.options.gamma}, outputs of at most {self.options.max_tokens}'
        ' tokens)'
    )

  @property
  def tokens(self) -> 'TokenDecoder':
    """Itself, as the `tokens` of a `TextDecoder` are."""
    return self

  @functools.cached_property
  def alone(self) -> 'TokenDecoder':
    """A decoder of the same target that drafts nothing."""
    other = copy.copy(self)
    other.options = dataclasses.replace(
        self.options, policy=draft_length.Fixed()
    )
    other._bind(drafters.Drafting(), nothing.Nothing())
    return other

  def tokenized(
      self,
      request: request_lib.Request,
      number: int,
      name: str | None = None,
  ) -> request_lib.Tokenized:
    """Return a request with nothing left to a default.

    Args:
      request: Of token ids.
      number: Its number, and its example id unless it has one.
      name: What messages call it; None for its number.
    Raises:
      ValueError: see `generate`.
    """
    name = name or f'Request {number}'
    self._check_ids(name, request.inputs)
    if request.hints:
      self.check_reads_hints()
    return request_lib.Tokenized(
        self.resolved(request, number, name, request.inputs, request.hints)
    )

  def resolved(
      self,
      request: request_lib.Request,
      number: int,
      name: str,
      tokens: Sequence[int],
      hints: Sequence[Sequence[int]] | None,
  ) -> request_lib.Request:
    """Return a request of token ids with its id and its limit.

    Raises:
      ValueError: for an input without tokens, or a limit above the decoder's.
    """
    if not len(tokens):
      raise ValueError(f'{name} is empty. Remove it, or fill it.')
    return dataclasses.replace(
        request.within(self.options.max_tokens),
        inputs=tokens,
        example_id=number if request.example_id is None else request.example_id,
        hints=hints or (),
    )

  def text(self, ids: Iterable[int], inputs: Sequence[int] = ()) -> str:
    """Return nothing: a decoder of token ids has no texts."""
    return ''

  @keywords.named(request_lib.Settings, beam_search.of)
  def generate(
      self,
      ids: Iterable[Sequence[int]] | Sequence[int],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      **settings: Unpack[request_lib.DecodingByName],
  ) -> list[list[int]] | list[int]:
    """Decode token ids speculatively.

    Args:
      ids: Tokens of each input, with the end of sequence if the target was
        trained with one there; or of one input. No input is empty.
      batch_size: Most inputs that are decoded together.
      example_ids: One id per input; 0, 1, ... by default.
      **settings: Those of `request.Settings`: `sampling`, `draft_sampling`,
        `max_tokens`, `seed` and `rule`; those of a `BeamSearch`, as `beams`.
    Returns:
      Tokens of the best output per input, without end of sequence and padding;
      of one input as one list.
    Raises:
      TypeError: for an unknown argument.
      ValueError: for an empty input, one that is longer than `inputs_length`,
        an id that the target does not have, or a value out of range.
    """
    search, settings = beam_search.take(settings, self.options.num_decodes)
    settings = request_lib.Settings(**settings)
    if is_one := _is_one_input(ids):
      ids = [ids]
    rows = request_lib.some(self._rows(ids, example_ids, settings))
    found = []
    for part, batch in self.in_batches(rows, settings, batch_size):
      if search is None:
        decoded = jax.device_get(self.speculative(batch))
        check(decoded)
        decodes = self.decodes(decoded, len(part))
        found += [tokens[-1] for tokens, _ in decodes]
      else:
        searched = jax.device_get(self.search(batch, search))
        check_finite(searched.scores[:, -1])  # of the best ones
        best = searched.sequences[:, -1], searched.num_tokens[:, -1]
        found += self.text_tokens(*best)[: len(part)]
    return found[0] if is_one else found

  def _rows(
      self,
      ids: Iterable[Sequence[int]],
      example_ids: Iterable[int] | None,
      settings: request_lib.Settings,
  ) -> Iterator[request_lib.Tokenized]:
    """Yield the request of each input."""
    request_lib.check_several('ids', ids, 'a list of lists of ids')
    for index, row, values in request_lib.align(ids, example_ids=example_ids):
      name = f'ids[{index}]'
      with errors.prefixed(name):
        request = settings.request(row, values.get('example_ids'))
      yield self.tokenized(request, index, name)

  def _check_ids(self, name: str, ids: Sequence[int]) -> None:
    """Check the token ids of an input; see `generate`."""
    if isinstance(ids, str) or not hasattr(ids, '__len__'):
      raise ValueError(f'{name} must be a list of ids, got {ids!r}.')
    size, limit = self.target_model.vocab_size, self.options.inputs_length
    if len(ids) > limit:
      raise ValueError(
          f'{name} has {len(ids)} tokens, and the decoder takes {limit}. Cut'
          f' it, or make the decoder with inputs_length={len(ids)}.'
      )
    for token in ids:
      # It would be looked up as another id.
      if not 0 <= token < size or token != int(token):
        raise ValueError(
            f'{name} must have token ids from 0 to {size - 1}, which the target'
            f' has, got {token}.'
        )

  def in_batches(
      self,
      rows: Iterable[request_lib.Tokenized],
      settings: request_lib.Settings,
      batch_size: int = request_lib.BATCH_SIZE,
  ) -> Iterator[tuple[list[request_lib.Tokenized], input_batch.InputBatch]]:
    """Yield requests with the batch that decodes them, read a batch at a time.

    Batches have few shapes, however many requests there are: see
    `batching.input_width`. Fewer requests than fill one batch are filled up to
    a power of two, and all other batches have one size.

    Args:
      rows: Requests, none longer than `inputs_length`.
      settings: Their settings.
      batch_size: Most inputs per batch; on a mesh, rounded up to a multiple of
        its data axis.
    """
    ranges.check_settings(ranges.COUNT, batch_size=batch_size)
    return self._in_batches(rows, settings, batch_size)

  def _in_batches(self, rows, settings, batch_size):
    size = None
    for part in batching.parts(rows, batch_size):
      if size is None:
        size = min(batch_size, batching.power_of_two(len(part)))
        size = sharding.round_up(self.mesh, size)
      requests = [each.request for each in part]
      longest = max(len(each.inputs) for each in requests)
      (batch,) = input_batch.whole_batches(
          requests,
          settings,
          size=size,
          inputs_length=batching.input_width(
              longest, self.options.inputs_length
          ),
      )
      yield part, batch

  def decodes(
      self, decoded: Decoded, count: int
  ) -> Iterator[tuple[list[list[int]], np.ndarray]]:
    """Yield the decodes of each example, the best one last, as in T5X.

    Args:
      decoded: What was decoded, as numpy arrays.
      count: Examples; what follows them only fills the batch.
    Yields:
      Tokens of each decode, without end of sequence and padding, and their
      log-probabilities [num_decodes] float32.
    """
    sequences, scores, counts = best_last(decoded, self.options.num_decodes)
    for rows, of_row, nums in zip(sequences[:count], scores, counts):
      yield self.text_tokens(rows, nums), of_row

  def text_tokens(
      self, sequences: np.ndarray, num_tokens: np.ndarray
  ) -> list[list[int]]:
    """Return tokens without end of sequence and padding.

    Args:
      sequences: [decodes, max_tokens] int32.
      num_tokens: [decodes] int32, end of sequence included.
    """
    ends = self.target_model.special_ids.ends
    tokens = [
        row[:num].tolist()
        for row, num in zip(sequences, num_tokens, strict=True)
    ]
    return [x[:-1] if x and x[-1] in ends else x for x in tokens]

  @property
  def reads_hints(self) -> bool:
    """Whether the drafter uses the hints of a request."""
    return getattr(self.drafter, 'reads_hints', False)

  def check_reads_hints(self) -> None:
    """Raise ValueError unless the drafter uses the hints of a request."""
    drafters.check_reads_hints(self.drafter, self.loaded_drafter.description)

  def encode(self, batch: input_batch.InputBatch) -> jax.Array:
    """Return the features of a batch, see `InputBatch`; asynchronous.

    Raises:
      ValueError: if the network of the target has no `encode`.
    """
    network.check_offers(
        self.target.config, network.Encodes, 'Reading inputs once'
    )
    args = self.target.params, self.place(batch).inputs
    return self._call(self._jit_encode, args)

  def speculative(self, batch: input_batch.InputBatch) -> Decoded:
    """Decode speculatively; asynchronous, as all of JAX."""
    return self._call(self._jit_speculative, self._speculative_args(batch))

  def traced(self, batch: input_batch.InputBatch) -> outcome_lib.Trace:
    """Decode speculatively and return the outcome of every target call."""
    return self._call(self._jit_traced, self._speculative_args(batch))[2]

  def plain(self, batch: input_batch.InputBatch) -> Decoded:
    """Decode by the target alone, one token per call.

    Under a coupled rule of the batch its samples are those of `speculative`.
    """
    return self._call(self._jit_plain, self._plain_args(batch))

  def plain_beams(
      self, batch: input_batch.InputBatch, search: beam_search.BeamSearch
  ) -> beam_search.Searched:
    """Search by the target alone, one token of each beam per call.

    The sampling of the batch is not used.

    Raises:
      ValueError: for more beams than the target has tokens.
    """
    search.check_vocabulary(self.target_model.vocab_size)
    target, scoring = search.bind(self.target_model)
    args = target, search.beams, *self._plain_args(batch), scoring
    return self._call(self._jit_plain_beams, args)

  def speculative_beams(
      self, batch: input_batch.InputBatch, search: beam_search.BeamSearch
  ) -> beam_search.Searched:
    """Search as `plain_beams`, with several tokens of each beam per call.

    A tree of drafts is gamma deep. A drafter that draws tokens and makes no
    trees drafts chains, with a warning.

    Raises:
      ValueError: likewise, for fewer draft beams than beams, for a drafter that
        cannot draft for a search, or for a network that cannot decode trees.
    """
    search.check_vocabulary(self.target_model.vocab_size)
    network.check_offers(
        self.target.config, network.DecodesTrees, 'Speculative beam search'
    )
    drafter = beam_drafts.of(self.drafter, search.beams, search.draft_beams)
    is_chain = isinstance(drafter, beam_chains.BeamChains)
    if is_chain and self.drafter.num_uniforms:
      warnings.warn(
          f'The drafter {self.loaded_drafter.description.name} makes no trees:'
          ' it drafts a chain behind each beam. A draft model makes trees.',
          stacklevel=2,
      )
    target, scoring = search.bind(self.target_model)
    args = *self._speculative_args(batch), scoring
    args = target, search.beams, drafter, *args
    return self._call(self._jit_speculative_beams, args)

  def search(
      self, batch: input_batch.InputBatch, search: beam_search.BeamSearch
  ) -> beam_search.Searched:
    """Search speculatively, or plainly if the drafter drafts nothing."""
    drafts = self.drafter.max_draft_tokens > 0
    return (self.speculative_beams if drafts else self.plain_beams)(
        batch, search
    )

  def compile_speculative(
      self, batch: input_batch.InputBatch
  ) -> jax.stages.Compiled:
    """Return the compiled program of `speculative`, to be read or timed.

    A batch of `jax.ShapeDtypeStruct`s must give their shardings.
    """
    args = self._speculative_args(batch)
    return self._call(self._jit_speculative.lower, args).compile()

  def compile_plain(self, batch: input_batch.InputBatch) -> jax.stages.Compiled:
    """Return the compiled program of `plain`; see `compile_speculative`."""
    args = self._plain_args(batch)
    return self._call(self._jit_plain.lower, args).compile()

  def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with self.scope():
      return function(*args)

  def _speculative_args(self, batch: input_batch.InputBatch) -> tuple[Any, ...]:
    if not self.reads_hints:  # another width of them would compile again
      batch = batch.replace(hints=None)
    batch = self.place(batch)
    return self.target.params, self.loaded_drafter.params, batch

  def _plain_args(self, batch: input_batch.InputBatch) -> tuple[Any, ...]:
    return self.target.params, self.place(batch.replace(hints=None))

  def place(self, batch: input_batch.InputBatch) -> input_batch.InputBatch:
    """Put a batch where it is decoded, if it does not lie there yet.

    Raises:
      sharding.MeshError: if the data axis does not divide the examples.
    """
    if self.mesh is None:
      return batch
    sharding.check_batch(self.mesh, len(batch.example_ids))
    if isinstance(batch.example_ids, jax.ShapeDtypeStruct):
      return batch
    rows = sharding.named_sharding(
        self.mesh, sharding.REPLICATED, ['batch'], batch.example_ids.shape
    )
    whole = sharding.replicated(self.mesh)
    return jax.tree.map(
        lambda x: jax.device_put(x, rows if jnp.ndim(x) else whole), batch
    )

  @property
  def matmul_precision(self) -> str | None:
    """JAX's setting for matrix products that is in force in `scope`.

    That of the options, or one that the user has set for JAX. Without either it
    is 'highest' in float32, which accelerators multiply in TF32 or bfloat16.
    """
    own = self.options.matmul_precision
    own = own or jax.config.jax_default_matmul_precision
    is_float32 = jnp.dtype(self.target.config.dtype) == jnp.float32
    return own or ('highest' if is_float32 else None)

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Enter the context in which the models are traced and called."""
    with (
        jax.default_matmul_precision(self.matmul_precision),
        sharding.scope(self.mesh, self.target.rules),
    ):
      yield

  def _decode(
      self,
      setup: state_lib.Setup,
      fold: outcome_lib.Fold,
      batch: input_batch.InputBatch,
  ) -> tuple[state_lib.State, loop.Work, Any]:
    num_decodes = self.options.num_decodes
    keys = state_lib.row_keys(batch.seed, batch.example_ids, num_decodes)
    # A limit past the buffers would have the loop write beyond their ends.
    limits = jnp.minimum(batch.limits, self.options.max_tokens)
    of_rows = lambda x: jnp.repeat(x, num_decodes) if jnp.ndim(x) else x
    begun = state_lib.begin(
        setup,
        batch.inputs,
        keys,
        of_rows(limits),
        *jax.tree.map(of_rows, (batch.sampling, batch.draft_sampling)),
        length=self.options.max_tokens,
        hints=batch.hints,
        features=batch.features,
    )
    return loop.decode(setup, begun, fold)

  def _speculative(
      self,
      fold: outcome_lib.Fold,
      target_params: contracts.Params,
      draft_params: contracts.Params,
      batch: input_batch.InputBatch,
  ) -> tuple[state_lib.State, loop.Work, Any]:
    setup = self.setup(target_params, draft_params, batch.rule)
    return self._decode(setup, fold, batch)

  def setup(
      self,
      target_params: contracts.Params,
      draft_params: contracts.Params,
      rule: contracts.Rule,
  ) -> state_lib.Setup:
    """Return how to decode with parameters, which may be traced."""
    return state_lib.Setup(
        self.target_model,
        target_params,
        self.drafter,
        draft_params,
        rule,
        self.options.policy,
        rescale_log_probs=self.options.rescale_log_probs,
    )

  def _plain(
      self, target_params: contracts.Params, batch: input_batch.InputBatch
  ) -> Decoded:
    setup = state_lib.Setup(
        self.target_model,
        target_params,
        nothing.Nothing(),
        None,
        noise.plain_rule(batch.rule),
        rescale_log_probs=self.options.rescale_log_probs,
    )
    return _decoded(*self._decode(setup, outcome_lib.NOTHING, batch))

  def _plain_beams(
      self,
      target: network.NetworkModel,
      beams: int,
      target_params: contracts.Params,
      batch: input_batch.InputBatch,
      scoring: beam_scores.Scoring,
  ) -> beam_search.Searched:
    state = beams_lib.search(
        target,
        target_params,
        batch.inputs,
        jnp.minimum(batch.limits, self.options.max_tokens),
        scoring,
        beams=beams,
        length=self.options.max_tokens,
        features=batch.features,
    )
    return beam_search.searched(state, None, scoring, target.special_ids)

  def _speculative_beams(
      self,
      target: network.NetworkModel,
      beams: int,
      drafter: beam_trees.TreeDrafter,
      target_params: contracts.Params,
      draft_params: contracts.Params,
      batch: input_batch.InputBatch,
      scoring: beam_scores.Scoring,
  ) -> beam_search.Searched:
    found = beam_trees.search(
        target,
        target_params,
        drafter,
        draft_params,
        batch.inputs,
        jnp.minimum(batch.limits, self.options.max_tokens),
        scoring,
        beams=beams,
        length=self.options.max_tokens,
        hints=batch.hints,
        features=batch.features,
    )
    return beam_search.searched(*found, scoring, target.special_ids)


@jax.jit
def rows_of(found: beam_search.Searched) -> Decoded:
  """Return the hypotheses of a search as rows."""
  beams = found.num_tokens.shape[1]
  num_steps, statistics = jnp.max(found.num_calls), found.statistics
  depth = 0
  if statistics is not None:
    depth = statistics.accepted_histogram.shape[1] - 1
  of_rows = lambda x: jnp.repeat(x, beams, axis=0)
  join = lambda x: x.reshape(-1, *x.shape[2:])
  return Decoded(
      sequences=join(found.sequences),
      num_tokens=join(found.num_tokens),
      log_probs=join(found.scores),
      num_calls=of_rows(found.num_calls),
      num_steps=num_steps,
      num_draft_steps=num_steps * depth,
      calls_by_width=num_steps[None],
      statistics=jax.tree.map(of_rows, statistics),
      is_search=True,
  )


def _decoded(
    state: state_lib.State,
    work: loop.Work,
    statistics: outcome_lib.Statistics | None,
) -> Decoded:
  return Decoded(
      sequences=state.sequences,
      num_tokens=state.num_tokens,
      log_probs=state.log_probs,
      num_calls=state.num_calls,
      **work._asdict(),
      statistics=statistics,
  )


def _is_one_input(ids: Any) -> bool:
  """Return whether ids are those of a single input."""
  is_some = hasattr(ids, '__len__') and len(ids) > 0
  return is_some and not isinstance(ids[0], str) and np.ndim(ids[0]) == 0
