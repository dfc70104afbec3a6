# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A target and a drafter bound to options: what programs are compiled of."""

from collections.abc import Callable, Iterator
import contextlib
import copy
import dataclasses
import functools
from typing import Any, Self, TypeVar

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import state as state_lib

_Program = TypeVar('_Program')


def check_target(target: models.Model) -> None:
  """Raise TypeError for a target that is not a loaded model."""
  loaded = 'a loaded model, such as speculative_t5x.load_model(<path>)'
  options_lib.check_type('target', target, models.Model, loaded)


class BoundPair:
  """A target and a drafter, and how they decode.

  All parameters lie on one device or on one mesh. On a mesh the examples of a
  batch are split along its data axis.

  Attributes:
    target: The target.
    target_model: The target as decoding calls it.
    loaded_drafter: The drafter, its parameters and its description.
    drafter: The drafter as decoding calls it.
    options: See `Options`.
    mesh: Where the parameters lie; None for one device.
  """

  @keywords.named(options_lib.Options)
  def __init__(
      self,
      target: models.Model,
      drafter: drafters.Drafting | models.Model | checkpoints.Path = (
          drafters.Lookup()  # noqa: B008
      ),
      options: options_lib.Options = options_lib.Options(),  # noqa: B008
      **changes: Any,
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
    self._bind_drafter(drafter)

  def _bind_drafter(self, drafter: drafters.Drafting) -> None:
    drafter = drafters.find(drafter, self.target)
    if not isinstance(self.target, models.Deferred):
      drafter = drafter.load()
    if self.mesh != drafter.mesh and jax.tree.leaves(drafter.params):
      raise sharding.MeshError(
          f'The target lies on the mesh {sharding.describe(self.mesh)} and'
          f' the drafter on {sharding.describe(drafter.mesh)} ({{}} is one'
          ' device). Load both onto one mesh.'
      )
    self._bind(drafter, drafter.drafter(self.target_model, self.options.gamma))

  def _bind(
      self, loaded: drafters.Drafting, drafter: contracts.Drafter
  ) -> None:
    self.loaded_drafter = loaded
    self.drafter = drafter
    self._programs: dict[Any, Any] = {}

  def program(self, key: Any, make: Callable[[], _Program]) -> _Program:
    """Return what was made under a key before, which is compiled, or make it.

    A pair keeps its programs for all who decode with it: they differ by options
    and drafter, and a key says what else they differ by.
    """
    if key not in self._programs:
      self._programs[key] = make()
    return self._programs[key]

  def loaded(self) -> Self:
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
      drafter: drafters.Drafting,
      gamma: int,
      policy: draft_length.Policy | None = None,
  ) -> Self:
    """Return a decoder of the target with another drafter, gamma or policy.

    What has been compiled for plain decoding stays compiled. Without a policy
    it is the same.
    """
    _ = self.alone  # which both share, and what is compiled for it
    other = copy.copy(self)
    other.options = dataclasses.replace(
        self.options, gamma=gamma, policy=policy or self.options.policy
    )
    other._bind_drafter(drafter)
    return other

  def __repr__(self) -> str:
    return (
        f'{type(self).__name__}({self.target}, {self.loaded_drafter}, gamma'
        f' {self.options.gamma}, outputs of at most {self.options.max_tokens}'
        ' tokens)'
    )

  @functools.cached_property
  def alone(self) -> Self:
    """A decoder of the same target that drafts nothing: it decodes plainly."""
    if not self.drafter.form.gamma:
      return self
    other = copy.copy(self)
    other.options = dataclasses.replace(
        self.options, policy=draft_length.Fixed()
    )
    other._bind(drafters.Drafting(), nothing.NoDrafter())
    return other

  @property
  def params(self) -> tuple[contracts.Params, contracts.Params]:
    """Parameters of target and drafter."""
    return self.target.params, self.loaded_drafter.params

  @property
  def reads_hints(self) -> bool:
    """True if the drafter uses the hints of a request."""
    return self.drafter.form.reads_hints

  def check_reads_hints(self) -> None:
    """Raise ValueError unless the drafter uses the hints of a request."""
    drafters.check_reads_hints(self.drafter, self.loaded_drafter.description)

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

  def setup(
      self,
      target_params: contracts.Params,
      draft_params: contracts.Params,
      rule: contracts.Rule | contracts.CoupledRule,
  ) -> state_lib.Setup:
    """Return how to decode with parameters, which may be traced."""
    if not self.drafter.form.gamma:
      rule = noise.plain_rule(rule)
    return state_lib.Setup(
        self.target_model,
        target_params,
        self.drafter,
        draft_params,
        rule,
        self.options.policy,
        rescale_log_probs=self.options.rescale_log_probs,
    )
