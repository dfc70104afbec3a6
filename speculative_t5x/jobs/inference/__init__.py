# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The parts of the infer job.

  infer_setup        its settings, filled by gin and checked
                     -> inputs, and the target that decodes them
  inference          inputs -> engine -> rows and counts, a part at a time
    text_rows          a text as a request, and its row
  infer_output       parts -> chunks -> files, or lines printed
  infer_on_cluster   the same, where other machines decode the parts
"""
