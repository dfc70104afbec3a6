# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the T5X models of this package add to T5X's: a drafter, and decoding.

  model.SpeculativeModel, decoder_model.SpeculativeDecoderOnlyModel
    -> GuestModel: holds the drafter's parameters, decodes a batch's inputs
      -> samplers: the decode functions

Legend: batch (examples), length (of the outputs).
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
from t5x import models

from speculative_t5x.loading import drafters
from speculative_t5x.loading import models as models_lib
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


class GuestModel(models.BaseTransformerModel):
  """A model of T5X with a drafter beside its target.

  Loss, scoring and T5X's own decode functions see the target alone. A decode
  function that names `target` decodes through this package's networks instead:
  see `samplers`. It stands before a model of T5X among the bases of a class.

  Attributes:
    MODULE: The module of T5X that the target is.
  """

  MODULE: ClassVar[type[nn.Module]]

  def __init__(
      self,
      module: nn.Module,
      *args,
      drafter: drafters.Drafting,
      gamma: int,
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
    super().__init__(draft_module.Pair(module), *args, **kwargs)
    self._target_config = module_sizes.read('target', module, self.MODULE)
    self._drafter = drafter
    self._gamma = gamma
    self._mask_padded_ids = mask_padded_ids
    self._max_padded_ids = max_padded_ids

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
    params = jax.device_get(drafting.params)
    return dataclasses.replace(drafting, params=params, models=())

  def _target_source(
      self, mesh: sharding.Mesh | None = None
  ) -> models_lib.Found:
    """Return the target as drafters are found for it."""
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

  @property
  def _arguments(self) -> Mapping[str, inspect.Parameter]:
    """Arguments of the decode function; T5X's own has no `target`."""
    return inspect.signature(self.decode_fn).parameters

  def _decode(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      tokens: jax.Array,
      options: MutableMapping[str, Any] | None,
      return_all_decodes: bool | None,
      num_decodes: int | None,
      *,
      room: jax.Array | None = None,
      make: Callable[..., network.NetworkModel] = network.NetworkModel,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Decode by a function that names `target`.

    Args:
      params: The parameters of target and draft.
      batch: Features of the model.
      tokens: [batch, any] int32, the inputs of the target, 0 for no token.
      options, return_all_decodes, num_decodes: Of `predict_batch_with_aux`.
      room: [batch] int32, the most tokens of each output; None for all that
        the features hold.
      make: Makes the model of a network, as `network.NetworkModel`.
    """
    options = options or {}
    if 'decode_rng' in options:
      raise NotImplementedError(
          'decode_rng is not supported by this decode function, whose samples'
          " depend on seed and example. Leave it out, or decode with T5X's"
          ' temperature_sample.'
      )
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    # The parameters are cast and the head transposed here, once per batch.
    config, prepared = t5_preparation.prepare(
        self._target_config, params['target']
    )
    num_valid = None
    if self._mask_padded_ids:
      num_valid = self.output_vocabulary.vocab_size
    model = make(config, self._special_ids, num_valid)
    inputs = jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)
    bound = {'target': samplers.Target(model, prepared, inputs, room)}
    if 'drafter' in self._arguments:
      found = self._found(params)
      drafter = found.drafter(model, self._gamma)
      bound['drafter'] = samplers.Drafter(
          drafter, found.params, found.description
      )
    sequences, scores, *counts = self.decode_fn(
        **bound,
        example_ids=batch[_EXAMPLE_ID],
        length=batch['decoder_input_tokens'].shape[1],
        num_decodes=num_decodes or defaults.num_decodes,
        **{'eos_id': model.special_ids.end, **options},
    )
    decodes = sequences, {'scores': scores, **(counts[0] if counts else {})}
    if return_all_decodes:
      return decodes
    return jax.tree.map(lambda x: x[:, -1], decodes)

  @property
  def _special_ids(self) -> contracts.SpecialIds:
    # T5X takes 1 for a vocabulary that has no end of sequence, and has padding
    # and start built in.
    end = self.output_vocabulary.eos_id or t5.SPECIAL_IDS.end
    return dataclasses.replace(t5.SPECIAL_IDS, end=end)
