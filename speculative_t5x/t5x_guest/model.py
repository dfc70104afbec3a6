# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X models that decode speculatively, and train as T5X's.

  SpeculativeModel, SpeculativeDecoderOnlyModel
    -> GuestModel: holds the drafter's parameters, decodes a batch's inputs
      -> samplers: the decode functions

Legend: batch (examples), length (of the outputs, of a decoder alone with their
  prompts).
"""

from collections.abc import Callable, Mapping, MutableMapping
from concurrent import futures
import dataclasses
import functools
import inspect
from typing import Any, ClassVar

from flax import core as flax_core
import flax.linen as nn
import jax
import jax.numpy as jnp
import seqio
from t5x import models

from speculative_t5x.loading import drafters
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import arguments as arguments_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.t5x_guest import draft_module
from speculative_t5x.t5x_guest import example_id_converter
from speculative_t5x.t5x_guest import module_sizes
from speculative_t5x.t5x_guest import named_params
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.tasks import task_vocabulary

_EXAMPLE_ID = example_id_converter.EXAMPLE_ID
_IS_PROMPT = 'decoder_causal_attention'


class GuestModel(models.BaseTransformerModel):
  """A model of T5X with a drafter beside its target.

  Loss, scoring and T5X's own decode functions see the target alone. A decode
  function that names `target` decodes through this package's networks instead:
  see `samplers`. It stands before a model of T5X among the bases of a class.
  """

  MODULE: ClassVar[type[nn.Module]]  # the module of T5X that the target is
  # Makes the model of a network.
  NETWORK_MODEL: ClassVar[type[network.NetworkModel]] = network.NetworkModel

  def __init__(
      self,
      module: nn.Module,
      *args,
      drafter: drafters.Drafting,
      gamma: int,
      decode_fn: Callable = samplers.speculative_sample,
      mask_padded_ids: bool = False,
      max_padded_ids: int = models_lib.MAX_PADDED_IDS,
      **kwargs,
  ):
    """Set up the model.

    Args:
      module: The target, a `MODULE`.
      *args: Further arguments of T5X's model.
      drafter: Where the drafter comes from. T5X holds its parameters beside
        the target's.
      gamma: Draft tokens per block, at least 1.
      decode_fn: A function of `samplers`, or one of T5X's.
      mask_padded_ids: Whether ids beyond the vocabulary, which only pad the
        logits to a round width, get probability 0 in this package's decode
        functions. In T5X's own they take part.
      max_padded_ids: Most logits without an id in the vocabulary; with more,
        the target was trained with another one.
      **kwargs: Further arguments of T5X's model.
    Raises:
      ValueError: for a gamma below 1, or a target that cannot be decoded.
    """
    ranges.check_settings(ranges.COUNT, gamma=gamma)
    super().__init__(
        draft_module.Pair(module), *args, decode_fn=decode_fn, **kwargs
    )
    self._target_config = module_sizes.read('target', module, self.MODULE)
    self._drafter = drafter
    self._gamma = gamma
    self._mask_padded_ids = mask_padded_ids
    self._max_padded_ids = max_padded_ids

  @functools.cached_property
  def input_vocabulary(self) -> seqio.Vocabulary:
    """T5X compares it with that of the task."""
    return task_vocabulary.by_content(self._input_vocabulary)

  @functools.cached_property
  def output_vocabulary(self) -> seqio.Vocabulary:
    """The target's; see `input_vocabulary`."""
    return task_vocabulary.by_content(self._output_vocabulary)

  @functools.cached_property
  def drafting(self) -> drafters.Drafting:
    """The drafter, found and read when its parameters are first needed.

    T5X asks for their shapes before it tells the mesh, which then takes them
    from the host. They are not merged, so that the mesh may partition them; on
    a single device they stay as and where they are read.
    """
    mesh = None
    if jax.device_count() > 1:
      mesh = sharding.make_mesh(1, 1, jax.local_devices()[:1])
    vocabulary = task_vocabulary.of(self.output_vocabulary)
    target = dataclasses.replace(
        self._target_source(mesh), vocabulary=vocabulary
    )
    # T5X asks for shapes while it traces, where Orbax cannot read on several
    # hosts. Another thread does not trace.
    with futures.ThreadPoolExecutor(1) as thread:
      found = thread.submit(drafters.find, self._drafter, target).result()
      drafting = thread.submit(found.load).result()
    if mesh is None:
      return drafting
    # T5X places them on a mesh of all hosts, which an array of one device of
    # this host cannot be moved to.
    params = jax.device_get(drafting.params)
    return dataclasses.replace(drafting, params=params, models=())

  def _target_source(
      self, mesh: sharding.Mesh | None = None
  ) -> models_lib.Found:
    return models_lib.Found(
        self._target_config,
        special_ids=self._special_ids,
        mesh=mesh,
        max_padded_ids=self._max_padded_ids,
    )

  @property
  def draft_params(self) -> Mapping[str, Any]:
    """The drafter's parameters for T5X's train state; empty without any."""
    return named_params.nest(self.drafting.params)

  def get_initial_variables(
      self, rng, input_shapes, input_types=None
  ) -> flax_core.FrozenDict:
    """See `t5x.models.EncoderDecoderModel`; the drafter's are added."""
    length = input_shapes['decoder_input_tokens'][-1]
    arguments_lib.check_gammas([self._gamma], length)
    variables = super().get_initial_variables(rng, input_shapes, input_types)
    variables = flax_core.unfreeze(variables)
    self._add_draft(variables)
    return flax_core.freeze(variables)

  def _add_draft(self, variables: dict[str, Any]) -> None:
    """Add the drafter's parameters and their axes, as they were read."""
    if params := self.draft_params:
      variables['params']['draft'] = jax.tree.map(jnp.asarray, params)
      axes = named_params.axes(self.drafting)
      variables['params_axes']['draft'] = axes

  def _found(self, params: Any) -> drafters.Drafting:
    """Return the drafter with its parameters in T5X's train state."""
    read = self.drafting
    own = named_params.restore(read.params, params.get('draft', {}))
    return dataclasses.replace(read, params=own)

  def predict_batch_with_aux(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      rng: jax.Array | None = None,
      decoder_params: MutableMapping[str, Any] | None = None,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      **others: Any,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Decode a batch by the model's decode function.

    Args:
      params: The parameters of target and draft.
      batch: Features of the model's converter. Targets are not read.
      rng: Not used by this package's decode functions, whose samples depend, up
        to rounding, on seed and example id alone.
      decoder_params: Arguments of the decode function for this call, as
        `{'seed': 1}`.
      return_all_decodes: Whether to return all decodes of an example, or the
        best.
      num_decodes: Samples per example.
      **others: Further arguments of T5X's model, for its own decode functions.
    Returns:
      Sequences [batch, length] int32, or [batch, num_decodes, length] with the
      best last, without prompts; `scores`, and the counts of the decode
      function, [batch] or [batch, num_decodes], those per position with one
      more axis.
    Raises:
      NotImplementedError: for further arguments.
      ValueError: for a batch that has nothing to decode.
    """
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    num_decodes = num_decodes or defaults.num_decodes
    arguments = inspect.signature(self.decode_fn).parameters
    if 'target' not in arguments:  # T5X's own
      return super().predict_batch_with_aux(
          params,
          batch,
          rng,
          decoder_params=decoder_params,
          return_all_decodes=return_all_decodes,
          num_decodes=num_decodes,
          **others,
      )
    if any(others.values()):
      raise NotImplementedError(
          f"Only T5X's own decode functions take {', '.join(others)}."
      )
    # The parameters are cast and the head transposed here, once per batch.
    config, prepared = t5_preparation.prepare(
        self._target_config, params['target']
    )
    num_valid = None
    if self._mask_padded_ids:
      num_valid = self.output_vocabulary.vocab_size
    model = self.NETWORK_MODEL(config, self._special_ids, num_valid)
    tokens, room = self._inputs(batch)
    # T5X pads with id 0, which this package's networks would read.
    inputs = jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)
    bound = {'target': samplers.Target(model, prepared, inputs, room)}
    if 'drafter' in arguments:
      found = self._found(params)
      bound['drafter'] = samplers.BoundDrafter(
          found.drafter(model, self._gamma), found.params, found.description
      )
    sequences, scores, *counts = self.decode_fn(
        **bound,
        example_ids=batch[_EXAMPLE_ID],
        length=batch['decoder_input_tokens'].shape[1],
        num_decodes=num_decodes,
        **(decoder_params or {}),
    )
    decodes = sequences, {'scores': scores, **(counts[0] if counts else {})}
    if return_all_decodes:
      return decodes
    return jax.tree.map(lambda x: x[:, -1], decodes)

  def _inputs(
      self, batch: Mapping[str, jax.Array]
  ) -> tuple[jax.Array, jax.Array | None]:
    """Return what the target reads, and the room of each output.

    Inputs are [batch, any] int32, 0 for no token; room is [batch] int32, None
    for all that the features hold.
    """
    return batch['encoder_input_tokens'], None

  @property
  def _special_ids(self) -> contracts.SpecialIds:
    # T5X takes 1 for a vocabulary that has no end of sequence, and has padding
    # and start built in.
    end = self.output_vocabulary.eos_id or t5.SPECIAL_IDS.end
    return dataclasses.replace(t5.SPECIAL_IDS, end=end)


class SpeculativeModel(GuestModel, models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a drafter beside it; see `GuestModel`."""

  FEATURE_CONVERTER_CLS = example_id_converter.ExampleIdConverter
  MODULE = module_sizes.ENCODER_DECODER


class _InOneLength(network.NetworkModel):
  """A model whose prompt and output share one length, as T5X's do."""

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    if isinstance(self.network, decoder_only.DecoderOnly):
      # It adds the prompts' width to the slots; an output of all has no prompt.
      slots -= inputs.shape[1]
    return super().start(params, inputs, rows, slots, features)


class SpeculativeDecoderOnlyModel(GuestModel, models.DecoderOnlyModel):
  """T5X's model of a decoder alone with a drafter beside it: `GuestModel`.

  An output has as much room as its prompt leaves of the length, and ends with
  the first end of sequence after the prompt, which may contain some.
  """

  FEATURE_CONVERTER_CLS = example_id_converter.DecoderExampleIdConverter
  MODULE = module_sizes.DECODER
  NETWORK_MODEL = _InOneLength

  def __init__(
      self,
      model: models.DecoderOnlyModel,
      *,
      default_decoder_params: models.DecoderParams | None = None,
      **kwargs,
  ):
    """Set up the model.

    T5X's own model has as its module the target, a
    `t5x.examples.decoder_only.network.DecoderWrapper`. What it has besides
    holds here too, but for how it decodes: whether callers get all decodes, and
    how many there are, is T5X's default unless it is given. The other arguments
    are those of `GuestModel`, such as `drafter` and `gamma`.

    Raises:
      ValueError: as `GuestModel`.
    """
    self._default_decoder_params = (
        default_decoder_params or models.DecoderParams()
    )
    super().__init__(
        model.module,
        model.output_vocabulary,
        model.optimizer_def,
        inputs_bidirectional_attention=model._inputs_bidirectional_attention,
        label_smoothing=model._label_smoothing,
        z_loss=model._z_loss,
        loss_normalizing_factor=model._loss_normalizing_factor,
        **kwargs,
    )
    self._target_config = dataclasses.replace(
        self._target_config,
        prefix_bidirectional=model._inputs_bidirectional_attention,
    )

  @property
  def _special_ids(self) -> contracts.SpecialIds:
    # What it is fed first is the last token of a prompt.
    return dataclasses.replace(super()._special_ids, start=None)

  def _inputs(self, batch) -> tuple[jax.Array, jax.Array]:
    if _IS_PROMPT not in batch:
      raise ValueError(
          f'The batch has no {_IS_PROMPT}, which says what to continue. Give'
          ' lengths of inputs and of targets, of a task that has both.'
      )
    tokens = batch['decoder_input_tokens']
    # The first is T5X's start, which the network puts there itself.
    prompts = (tokens * batch[_IS_PROMPT])[:, 1:]
    room = tokens.shape[1] - jnp.sum(prompts > 0, axis=1, dtype=jnp.int32)
    return prompts, room
