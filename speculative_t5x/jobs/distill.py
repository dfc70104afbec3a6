# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The distill job: trains a draft on its target's distributions."""

from collections.abc import Mapping, Sequence
import dataclasses
import inspect

import jax

from speculative_t5x.jobs import infer
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import errors
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import network as network_lib
from speculative_t5x.research import arguments
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import on_policy as on_policy_lib
from speculative_t5x.training import origins
from speculative_t5x.training import schedules
from speculative_t5x.training import task_examples
from speculative_t5x.training import trainer


@dataclasses.dataclass(frozen=True)
class Decodes:
  """Outputs of a target to train on: an infer job, whose folder keeps them.

  The job is resumed where it was interrupted. What is damaged is made again.
  """

  setup: infer_setup.InferSetup  # of a job that writes tokens
  folder: checkpoints.Path  # of all decodes
  name: str  # of the folder of these decodes in it

  def read(
      self, target: checkpoints.Path, config: network_lib.Network
  ) -> batches.TokenPairs:
    """Decode what is missing, and return all as examples."""
    folder = user_paths.expand(self.folder) / self.name
    with errors.prefixed('DECODES_DIR', chunks.OtherSettingsError):
      setup = dataclasses.replace(self.setup, output_dir=str(folder))
      record = infer.infer(setup)
    if record.target.checkpoint != str(target):
      raise ValueError(
          f'The infer job of {folder} decodes {record.target.checkpoint}, and'
          f' the draft model is distilled from {target}. Give both the same'
          ' CHECKPOINT_PATH.'
      )
    path = folder / 'predictions.jsonl'
    with folder_lock.hold(folder):  # another training's job rewrites the file
      pairs = predictions_lib.read_pairs(path)
    inputs, outputs = zip(*pairs, strict=True)
    return batches.pad(inputs, outputs, config, str(path))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillSetup:
  """A distillation.

  The attributes are explained in `configs/runs/distill.gin`, but for:

  Attributes:
    draft: Makes the draft that training begins with.
    decodes: Decodes of the target, to train on.
    references: References of tasks, to train on beside the decodes.
    validation: Decodes of the target by their temperature, 0 and 1, on which
      the acceptance rate is measured.
    divergence: The loss, a function of `divergences`.
    end_of_sequence: The id at which the draft's own samples end unless the
      target's checkpoint states one; None for the network's.
  """

  checkpoint_path: checkpoints.Path
  draft: origins.Origin
  decodes: Sequence[Decodes]
  references: Sequence[task_examples.References] = ()
  validation: Mapping[int, Decodes]
  model_dir: checkpoints.Path
  learning_rate_fn: schedules.LearningRateFn
  settings: trainer.Settings
  divergence: divergences.Divergence = divergences.forward_kl
  on_policy: on_policy_lib.Settings = on_policy_lib.Settings()  # noqa: RUF009
  dropout_rate: float = 0.0
  target_config: models.Config = None
  end_of_sequence: int | None = None
  mesh_shape: Sequence[int] | None = None

  def __post_init__(self):
    arguments.check_some('decodes', [*self.decodes, *self.references])
    ranges.check_settings(ranges.RATE_BELOW_1, dropout_rate=self.dropout_rate)
    if self.on_policy.share:
      self._check_on_policy()

  def _check_on_policy(self) -> None:
    """Check that the target teaches the draft on its own samples.

    A resumed training draws the same samples as an uninterrupted one.
    """
    period = self.on_policy.period
    checkpoint_period = self.settings.checkpoint_period
    if checkpoint_period % period:
      raise ranges.ArgumentError(
          f'Samples are drawn every {period} steps, which does not divide the'
          f' checkpoint_period of {checkpoint_period}: a resumed training could'
          ' not draw the same ones. Choose a divisor.',
          checkpoint_period=checkpoint_period,
      )
    # Gin wraps the functions that it provides.
    if inspect.unwrap(self.divergence) is divergences.cross_entropy:
      raise ValueError(
          'By cross entropy the draft would learn its own samples. Set'
          ' ON_POLICY_SHARE to 0, or choose another file of'
          ' configs/divergences.'
      )


def distill(setup: DistillSetup) -> trainer.Trained:
  """Train a draft, or resume from the newest checkpoint in `model_dir`.

  Prints its progress to stderr. The checkpoint that is kept as the best one has
  the highest acceptance rate.

  Raises:
    ValueError: if a network lacks what training needs, if target, draft and
      data do not fit each other, or if the loss is not finite.
    checkpoints.CheckpointError: a ValueError, if the checkpoint in `model_dir`
      is of another network.
    OSError: if the folder cannot be written to.
  """
  settings, on_policy = setup.settings, setup.on_policy
  model_dir = user_paths.expand(setup.model_dir)
  opened = pairing.open_checkpoint('target', setup.checkpoint_path)
  network = models.network_of(opened, setup.target_config)
  network_lib.check_offers(network, 'Training', *network_lib.SCORES)
  num_examples = settings.batch_size // settings.num_parts
  mesh = placement.training_mesh(num_examples, setup.mesh_shape)
  with folder_lock.hold(model_dir):
    if setup.draft.checkpoint_path is not None:
      pairing.check_vocabularies(
          setup.checkpoint_path, setup.draft.checkpoint_path
      )
    special_ids = _special_ids(opened, network, setup.end_of_sequence)
    target = origins.Stored(opened, network, mesh)
    draft = setup.draft.make(target, settings.seed)
    distillation.check_vocab_sizes(
        network, draft.network, "the draft model's vocab_size"
    )
    pairing.check_features(network, draft.network)
    if on_policy.share:
      _check_samples(draft.network)
    read = lambda each: each.read(opened.source, network)
    # What takes least time comes first: a wrong setting then fails early.
    tokenized = [each.read(network) for each in setup.references]
    measured_on = {
        temperature: read(each)
        for temperature, each in setup.validation.items()
    }
    examples = batches.join([*map(read, setup.decodes), *tokenized])
    training_settings.keep_data(
        model_dir,
        {
            'training examples': jax.tree.leaves(examples),
            'validation examples': jax.tree.leaves(measured_on),
        },
        opened.source,
    )
    objective = draft.objective(
        target.params,
        network,
        with_dropout(draft.network, setup.dropout_rate),
        setup.divergence,
    )
    samples = None
    if on_policy.share:
      samples = on_policy_lib.Samples(
          objective,
          on_policy,
          special_ids,
          settings.batch_size,
          settings.seed,
      )
    return trainer.train(
        objective,
        draft_acceptance.validation(
            objective,
            {
                temperature: batches.in_order(each, settings.batch_size)
                for temperature, each in measured_on.items()
            },
        ),
        examples,
        setup.learning_rate_fn,
        settings,
        model_dir,
        init=lambda: draft.params,
        samples=samples,
        mesh=mesh,
        exit_layer=objective.exit_layer,
    )


def with_dropout(
    network: network_lib.Network, rate: float
) -> network_lib.Network:
  """Return a network with a dropout rate for training."""
  if hasattr(network, 'dropout_rate'):
    return dataclasses.replace(network, dropout_rate=rate)
  if rate:
    raise ranges.ArgumentError(
        f'dropout_rate is {rate}, and {network.name} has no dropout. Set it to'
        ' 0.',
        dropout_rate=rate,
    )
  return network


def _special_ids(
    target: checkpoints.Checkpoint,
    network: network_lib.Network,
    end: int | None,
) -> contracts.SpecialIds:
  ids = network.special_ids
  if target.special_ids is None:
    return ids if end is None else dataclasses.replace(ids, end=end)
  stated = target.special_ids
  # A network without padding reads every id, and none as that of the start.
  is_read = ids.padding in (stated.padding, contracts.NO_TOKEN)
  if not is_read or stated.start != ids.start:
    raise ValueError(
        f'The target of {target.folder} has padding {stated.padding} and begins'
        f' to decode with token {stated.start}, and drafts are trained with'
        f' {ids.padding} and {ids.start}. Choose another target.'
    )
  return stated


def _check_samples(draft: network_lib.Network) -> None:
  """Check that a draft can write texts without its target."""
  if network_lib.is_feature_head(draft) or network_lib.is_block_head(draft):
    raise ValueError(
        'A head cannot write texts by itself, to be trained on them. Set'
        ' ON_POLICY_SHARE to 0.'
    )
