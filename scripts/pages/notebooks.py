# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the repository's address into the notebooks, and runs them.

`project.urls.Repository` in pyproject.toml is the one place that names it. It
becomes the link that opens a notebook in Colab, and the address from which the
first cell fetches `set_up.py`, which clones the repository. As long as it is
not set, there is no link, and an archive of the repository is uploaded together
with `set_up.py`.

`python -m scripts.pages.notebooks [<name> ...]` runs all notebooks, or those
named, and stores them with their outputs. It needs nbclient and ipykernel.
"""

from collections.abc import Iterator, Sequence
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import tomllib
from typing import Any

_ROOT = pathlib.Path(__file__).parents[2]
_COLAB = 'https://colab.research.google.com/github'
_LINK = '[Open in Colab]('
_SETUP = """\
import set_up  # on Colab, Kaggle: upload it with an archive of the repository

set_up.set_up({extra!r})"""
_SETUP_BY_ADDRESS = """\
import importlib
import os

HELPER = 'https://raw.githubusercontent.com/{name}/main/notebooks/set_up.py'
os.path.exists('set_up.py') or os.system(f'curl -fsSLO {{HELPER}}')
importlib.import_module('set_up').set_up(
    {extra!r}, 'https://github.com/{name}'
)"""
# What other notebooks need is `figures`.
_EXTRAS = {
    'digits': 'notebooks',
    't5x_and_tpu': 'jobs',
    'time_series': 'notebooks',
}


def repository() -> str | None:
  """Return the address of the repository; None if it is not set."""
  project = tomllib.loads((_ROOT / 'pyproject.toml').read_text())['project']
  return project.get('urls', {}).get('Repository')


def render(url: str | None) -> Iterator[tuple[pathlib.Path, str]]:
  """Yield each notebook and its text with an address.

  Args:
    url: Address of the repository on GitHub; None without one.
  """
  for path in sorted((_ROOT / 'notebooks').glob('*.ipynb')):
    notebook = json.loads(path.read_text())
    cells = {cell['id']: cell for cell in notebook['cells']}
    heading, *paragraphs = ''.join(cells['title']['source']).split('\n\n')
    paragraphs = [x for x in paragraphs if not x.startswith(_LINK)]
    extra, setup = _EXTRAS.get(path.stem, 'figures'), _SETUP
    name = (url or '').removeprefix('https://github.com/').removesuffix('.git')
    if url is not None:
      link = f'{_LINK}{_COLAB}/{name}/blob/main/notebooks/{path.name})'
      paragraphs.insert(0, link)
      setup = _SETUP_BY_ADDRESS
    cells['title']['source'] = _lines('\n\n'.join([heading, *paragraphs]))
    cells['setup']['source'] = _lines(setup.format(extra=extra, name=name))
    yield path, json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'


def digest(notebook: dict[str, Any]) -> str:
  """Return a digest of what a notebook runs, its first cell apart."""
  sources = [
      ''.join(cell['source'])
      for cell in notebook['cells']
      if cell['cell_type'] == 'code' and cell['id'] != 'setup'
  ]
  return hashlib.sha256('\0'.join(sources).encode()).hexdigest()[:12]


def run(path: pathlib.Path) -> None:
  """Run a notebook, and store it with its outputs and without this folder."""
  import nbclient  # Not among the tests' requirements.
  import nbformat

  notebook = nbformat.read(path, nbformat.NO_CONVERT)
  resources = {'metadata': {'path': str(path.parent)}}
  client = nbclient.NotebookClient(
      notebook, timeout=None, resources=resources, record_timing=False
  )
  client.execute()
  notebook['metadata'] = {
      'kernelspec': notebook['metadata']['kernelspec'],
      'language_info': {'name': 'python'},
      'ran': digest(notebook),
  }
  text = nbformat.writes(notebook).replace(str(_ROOT), '<checkout>')
  temporary = rf'{re.escape(tempfile.gettempdir())}/\w+'
  path.write_text(re.sub(temporary, '<folder>', text) + '\n')


def main(names: Sequence[str]) -> None:
  """Run the named notebooks, or all."""
  for path in sorted((_ROOT / 'notebooks').glob('*.ipynb')):
    if not names or path.stem in names:
      print(f'Running {path.stem}', flush=True)
      run(path)


def _lines(text: str) -> list[str]:
  """Return a text as notebooks keep it."""
  return text.splitlines(keepends=True)


if __name__ == '__main__':
  main(sys.argv[1:])
