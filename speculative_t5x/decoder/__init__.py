# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a user calls: strings or token ids in, the same out.

  text_decoder    strings     TextDecoder.decode, .stream
    |                           vocabulary, hints -> Request of token ids
    v
  token_decoder   token ids   TokenDecoder.generate
    |                           compiles `speculation.loop` for whole batches
    |
    |   service   Service.submit: requests of any thread
    |     |
    v     v
  engine          requests    Engine.stream: rows that are refilled
    |
    v
  row_programs                read, admit, advance: compiled once each
    |
    v
  results, counts             Result per request, Output of several; statistics

request, input_batch   one input and how it is decoded; several as arrays
options                what is compiled in
hints, answers         texts that an output may repeat, and where they are found
"""
