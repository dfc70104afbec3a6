# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the infer job is made of.

  infer_setup        arguments of the job -> inputs, models, engine
  inference          inputs -> engine -> rows and counts, a part at a time
    text_rows          what a text becomes: a request, and a row
    batch_rows         likewise a line of a batch of OpenAI's
  infer_output       parts -> chunks -> files, or lines printed
  infer_on_cluster   the same, where other machines decode the parts
"""
