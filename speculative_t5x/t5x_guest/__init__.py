# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding and distillation in T5X jobs, T5X left as it is.

The only package that needs T5X. T5X's gin files import it, see `configs/t5x`,
and `jobs.t5x_baseline` where T5X is installed.
"""

from speculative_t5x.t5x_guest.distillation_model import DistillationModel
from speculative_t5x.t5x_guest.draft_module import DraftModule
from speculative_t5x.t5x_guest.example_id_converter import (
    DecoderExampleIdConverter,
)
from speculative_t5x.t5x_guest.example_id_converter import ExampleIdConverter
from speculative_t5x.t5x_guest.model import SpeculativeDecoderOnlyModel
from speculative_t5x.t5x_guest.model import SpeculativeModel
from speculative_t5x.t5x_guest.restoring import PairInitializer
from speculative_t5x.t5x_guest.restoring import PairRestorer
from speculative_t5x.t5x_guest.samplers import plain_sample
from speculative_t5x.t5x_guest.samplers import speculative_beam_search
from speculative_t5x.t5x_guest.samplers import speculative_sample
