# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server of completions over HTTP, as OpenAI's clients speak it.

  server     one process: sockets, signals
    app        routes, by FastAPI
      body_limits   size of bodies, and the time until they are whole
      schemas       bodies and answers, by pydantic; published as /openapi.json
      completions   body -> Requests, beside what the server offers
      running       Requests -> `decoder.service` -> tokens of each choice
        transcripts   tokens -> text that cannot change any more
      replies       choices -> answer, or server-sent events as tokens come
      prometheus    /metrics
  api_error  errors as OpenAI's clients read them, raised by all of these

Each model is decoded by a `decoder.service.Service`: that with a drafter, and
the target alone beside it where that is asked for. Their threads alone call
JAX; an event loop does all the rest, but for tokenizing, which has threads.
`page.html` is the page for a person. By `batch_lines` files of requests get the
same answers from the infer job.
"""
