# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The recipes: how a draft is trained, and how it drafts afterwards."""

from collections.abc import Mapping
import dataclasses

BASELINE = 'references'


@dataclasses.dataclass(frozen=True)
class Recipe:
  """Gin files, without their suffix, and macros.

  Attributes:
    run: of the training, in `configs/runs`.
    gin_files: of `configs`, given after it.
    training_macros: of the training alone.
    drafter: of the trained draft, in `configs/drafters`.
    macros: of the training and of the drafter.
  """

  run: str = 'distill_multi30k'
  gin_files: tuple[str, ...] = ()
  training_macros: Mapping[str, str] = dataclasses.field(default_factory=dict)
  drafter: str = 'draft_model'
  macros: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def decodes_alone(self) -> bool:
    """Whether the draft is a model with an encoder of its own."""
    return self.drafter == 'draft_model'


def _divergence(name: str, *gin_files: str, **macros: str) -> Recipe:
  return Recipe(
      gin_files=(f'divergences/{name}', *gin_files), training_macros=macros
  )


RECIPES = {
    BASELINE: _divergence('cross_entropy', 'training_data/references'),
    'decodes': _divergence('cross_entropy'),
    **{
        name: _divergence(name)
        for name in (
            'forward_kl',
            'reverse_kl',
            'jensen_shannon',
            'total_variation',
        )
    },
    'forward_kl_on_references': _divergence(
        'forward_kl', 'training_data/references'
    ),
    'forward_kl_on_both': _divergence('forward_kl', 'training_data/both'),
    'on_policy': _divergence('forward_kl', ON_POLICY_SHARE='0.5'),
    'shared_encoder': Recipe(
        run='distill_multi30k_shared_encoder', drafter='shared_encoder'
    ),
    'cut': Recipe(run='distill_multi30k_cut', drafter='shared_encoder'),
    'exit_head': Recipe(
        gin_files=('origins/exit_head',),
        drafter='exit_head',
        macros={'EXIT_LAYER': '1'},
    ),
}
