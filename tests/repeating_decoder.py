# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Has the infer job repeat its inputs, without a model.

One text cannot be decoded.
"""

import types

import numpy as np

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import results
from speculative_t5x.drafters import nothing
from speculative_t5x.jobs import workload
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import network
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins
from tests import workloads

POISON = 'poison'


class _Decoder:
  """A decoder whose outputs are its inputs."""

  target_model = network.NetworkModel(workloads.CONFIG, t5.SPECIAL_IDS)
  loaded_drafter, drafter = drafting.Drafting(), nothing.NoDrafter(1)
  options = options_lib.Options(gamma=1, max_tokens=16)
  mesh = matmul_precision = None
  target = types.SimpleNamespace(
      describe=lambda: descriptions.ModelDescription(), config=workloads.CONFIG
  )
  reads_hints = False
  alone = None


class _Engine:
  """An engine whose outputs are its inputs."""

  compile_s = None

  def __init__(self, *args, **options):
    self.counters = counts.Counts()
    vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
    self._poison = vocabulary.encode(POISON)

  def warm_up(self, search=None):
    """Compile nothing."""

  def stream_ended(self, requests):
    yield from requests

  def result(self, request):
    tokens = list(request.inputs)
    if tokens[:-1] == self._poison:
      raise ValueError('its logits are not finite')
    none = np.zeros((0,), np.float32)
    decode = results.Decode(tokens, none, none, none, 0, True, 0.0, 1, None)
    return results.Result(
        [''], [tokens[:-1]], np.zeros(1), {}, decodes=[decode]
    )


def install(setattr_=setattr) -> None:
  """Have jobs of this process decode by it; `monkeypatch.setattr` undoes it."""
  setattr_(
      workload.Workload,
      'find_decoder',
      lambda *_, batch_size, **__: (_Decoder(), batch_size),
  )
  setattr_(engine_lib, 'Engine', _Engine)
