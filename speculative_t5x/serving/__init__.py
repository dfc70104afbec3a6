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

Each model is decoded by a `decoder.service.Service`: that with a drafter, and
the target alone beside it where that is asked for. Their threads alone call
JAX; an event loop does all the rest, but for tokenizing, which has threads.
`page.html` is the page for a person. By `batch_lines` files of requests get the
same answers from the infer job.
"""
