# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Networks whose decoder takes a block of tokens per call."""

from etils import epy

__all__ = [
    'EncoderDecoder',
    'DecoderOnly',
    'Network',
    'SpecialIds',
    'T5Config',
    'T5Gemma',
]

with epy.lazy_api_imports(globals()):
  from speculative_t5x.networks.decoder_only import DecoderOnly
  from speculative_t5x.networks.encoder_decoder import EncoderDecoder
  from speculative_t5x.networks.network import Network
  from speculative_t5x.networks.t5 import T5Config
  from speculative_t5x.networks.t5gemma import T5Gemma
  from speculative_t5x.speculation.contracts import SpecialIds


def __dir__() -> list[str]:
  return __all__
