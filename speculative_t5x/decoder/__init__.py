# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a user calls: strings or token ids in, the same out.

  text_decoder   strings     TextDecoder.decode, .stream
    |                          vocabulary, hints, answers -> Row per input
    v
  token_decoder  token ids   TokenDecoder.generate
    |                          batching: rows -> Request, of few shapes
    v
  engine         requests    Engine.stream, .run: one after another, timed
    |
    v
  token_decoder              compiles `speculation.loop` once per shape
    |
    v
  results, counts            Result per input, Output of several; statistics

options          what is compiled in; `requests.Settings`: what is not
hints, answers   texts that an output may repeat, and where they are found
"""
