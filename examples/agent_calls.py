# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""An agent turns requests into tool calls, by a server that knows earlier ones.

  python examples/agent_calls.py http://127.0.0.1:8000 < requests.txt

The server drafts each call from the answers to the most similar requests in its
store: calls that were written beforehand, and calls of earlier days. They save
target calls and change no call. docs/serving.md says how to start it.

Prints a line of JSON per request, and the tokens per target call at the end.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request


def send(url, key, body=None):
  """Return the answer to a request, or end with the server's own words."""
  headers = {'Content-Type': 'application/json'}
  if key:
    headers['Authorization'] = f'Bearer {key}'
  data = None if body is None else json.dumps(body).encode()
  request = urllib.request.Request(url, data, headers)
  try:
    with urllib.request.urlopen(request) as answer:
      return json.load(answer)
  except urllib.error.HTTPError as error:
    sys.exit(f'{url}: {error.code} {error.read().decode()}')
  except urllib.error.URLError as error:
    sys.exit(f'{url} cannot be reached: {error.reason}.')


def ask(url, key, model, text, max_tokens):
  """Return the call that the model makes of a request, and what it took."""
  body = {'model': model, 'prompt': text, 'max_tokens': max_tokens}
  body |= {'temperature': 0, 'return_trace': True}
  answer = send(f'{url}/v1/completions', key, body)
  (choice,) = answer['choices']
  kinds = [token['kind'] for token in choice['trace']]
  # Each call draws its last token, but for one that accepts the text's end.
  target_calls = kinds.count('drawn') + (kinds[-1] == 'accepted')
  return {
      'request': text,
      'call': choice['text'],
      'tokens': answer['usage']['completion_tokens'],
      'target_calls': target_calls,
  }


def main(arguments=None):
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('url', help='of the server')
  parser.add_argument('--max_tokens', type=int, default=64, help='per call')
  options = parser.parse_args(arguments)
  url, key = options.url.rstrip('/'), os.environ.get('API_KEY')
  model = send(f'{url}/v1/models', key)['data'][0]['id']
  tokens = target_calls = 0
  for text in filter(None, map(str.strip, sys.stdin)):
    made = ask(url, key, model, text, options.max_tokens)
    print(json.dumps(made), flush=True)
    tokens += made['tokens']
    target_calls += made['target_calls']
  if not target_calls:
    parser.error('there is no request on the standard input')
  print(f'{tokens / target_calls:.2f} tokens per target call', file=sys.stderr)


if __name__ == '__main__':
  main()
