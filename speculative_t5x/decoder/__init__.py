# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings or token ids in, the same out: the part that a user calls.

  text_decoder   strings      TextDecoder.decode, .stream
    |                           vocabulary, hints -> Request of token ids
    |   token_decoder         TokenDecoder.generate: token ids
    |     |
    |     |   service         Service.submit: requests of any thread
    v     v     v
  engine         requests     Engine.stream: in their order, read ahead
    |
    v
  rows           places       refilled as soon as their request has ended
    |   pending                 a request on its way, and what reads it
    |   searches                beam searches
    v
  row_programs   arrays       read, admit, advance, take: compiled once each
    |   bound_pair              what they are compiled of
    v
  report         rows         what they have made -> Decode per output
    |
    v
  results, counts             Result per request, Output of several; Counts

request, input_batch   one input and how it is decoded; several as arrays
beam_search            a search as one value
options                what is compiled in
hints                  texts that an output may repeat
"""
