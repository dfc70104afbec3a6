# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for the Hugging Face hub: folders, served by its API."""

import hashlib
from http import server
import json
import pathlib
import re
import threading
import urllib.parse

_API = re.compile(r'/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?')
_FILE = re.compile(r'/([^/]+/[^/]+)/resolve/([^/]+)/(.+)')
_STORED = re.compile(r'/stored/([^/]+/[^/]+)/([^/]+)/(.+)')


class HubServer(server.ThreadingHTTPServer):
  """Serves models from folders, one per commit, and keeps what was asked for.

  Attributes:
    commits: Folders by the name of a model and its commit.
    revisions: Commits by the name of a model and a branch or tag.
    requests: Method and path of every request.
  """

  daemon_threads = True

  def __init__(self):
    super().__init__(('127.0.0.1', 0), _Handler)
    self.commits: dict[tuple[str, str], pathlib.Path] = {}
    self.revisions: dict[tuple[str, str], str] = {}
    self.requests: list[tuple[str, str]] = []

  def __enter__(self):
    threading.Thread(target=self.serve_forever, daemon=True).start()
    return self

  def __exit__(self, *error):
    self.shutdown()
    self.server_close()

  @property
  def url(self) -> str:
    return f'http://127.0.0.1:{self.server_port}'

  def add(self, repo: str, folder: pathlib.Path, *revisions: str) -> str:
    """Make a folder the commit of revisions of a model; return the commit."""
    commit = hashlib.sha1(f'{repo} {folder}'.encode()).hexdigest()
    self.commits[repo, commit] = folder
    for each in (*revisions, commit):
      self.revisions[repo, each] = commit
    return commit

  def downloaded(self) -> list[str]:
    """Return the names of the files whose bytes were asked for, sorted."""
    paths = [path for method, path in self.requests if method == 'GET']
    matches = (_FILE.fullmatch(x) or _STORED.fullmatch(x) for x in paths)
    return sorted({match[3] for match in matches if match})


class _Handler(server.BaseHTTPRequestHandler):

  server: HubServer

  def do_GET(self) -> None:
    self._answer()

  def do_HEAD(self) -> None:
    self._answer()

  def log_message(self, *args) -> None:
    pass

  def _answer(self) -> None:
    path = urllib.parse.urlsplit(self.path).path
    self.server.requests.append((self.command, path))
    if match := _API.fullmatch(path):
      repo, kind, revision = match.groups()
    elif match := _FILE.fullmatch(path) or _STORED.fullmatch(path):
      (repo, revision, name), kind = match.groups(), 'file'
    else:
      return self._send(404, b'{}')
    if repo not in {x for x, _ in self.server.commits}:
      return self._refuse(401, 'RepoNotFound')
    commit = self.server.revisions.get((repo, revision or 'main'))
    if commit is None:
      return self._refuse(404, 'RevisionNotFound')
    folder = self.server.commits[repo, commit]
    if kind != 'file':
      return self._send_listing(repo, commit, folder, kind == 'tree')
    file = folder / name
    if not file.is_file():
      return self._refuse(404, 'EntryNotFound', {'X-Repo-Commit': commit})
    data = file.read_bytes()
    etag = hashlib.sha256(data).hexdigest()
    headers = {'X-Repo-Commit': commit, 'ETag': f'"{etag}"'}
    # Large files lie elsewhere.
    if file.suffix in ('.safetensors', '.bin') and _FILE.fullmatch(path):
      headers |= {
          'Location': f'/stored/{repo}/{commit}/{name}',
          'X-Linked-Etag': f'"{etag}"',
          'X-Linked-Size': str(len(data)),
      }
      return self._send(302, b'', headers)
    return self._send(200, data, headers)

  def _send_listing(self, repo, commit, folder, is_tree: bool) -> None:
    files = sorted(x for x in folder.rglob('*') if x.is_file())
    names = [str(x.relative_to(folder)) for x in files]
    listing = {
        'id': repo,
        'sha': commit,
        'siblings': [{'rfilename': name} for name in names],
    }
    if is_tree:
      listing = [
          {'type': 'file', 'path': x, 'oid': '0' * 40, 'size': y.stat().st_size}
          for x, y in zip(names, files, strict=True)
      ]
    self._send(200, json.dumps(listing).encode())

  def _refuse(self, status: int, code: str, headers=()) -> None:
    self._send(status, b'{}', {'X-Error-Code': code, **dict(headers)})

  def _send(self, status: int, body: bytes, headers=()) -> None:
    self.send_response(status)
    for name, value in dict(headers).items():
      self.send_header(name, value)
    self.send_header('Content-Length', str(len(body)))
    self.end_headers()
    if self.command == 'GET':
      self.wfile.write(body)
