# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server of completions over HTTP, as OpenAI's clients speak it.

  server     one process: sockets, signals
  app        routes; key, request ids, errors, log
    completions   body -> Requests, checked by the table of `fields`
    running       Requests -> `decoder.service` -> tokens of each choice
    transcripts   tokens -> text that cannot change any more
    replies       choices -> JSON
    streaming     choices -> server-sent events, as tokens come
    prometheus    /metrics
    openapi       /openapi.json

Everything is decoded by one `decoder.service.Service`. Its thread alone calls
JAX; an event loop does all the rest, but for tokenizing, which has threads.
"""
