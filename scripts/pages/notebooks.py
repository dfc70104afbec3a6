# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the repository's address into the notebooks.

`project.urls.Repository` in pyproject.toml is the one place that names it. It
becomes the link that opens a notebook in Colab, and the address from which the
first cell installs the package. As long as it is not set, there is no link,
and the first cell asks for the address.
"""

from collections.abc import Iterator
import json
import pathlib
import tomllib

_ROOT = pathlib.Path(__file__).parents[2]
_COLAB = 'https://colab.research.google.com/github'
_LINK = '[Open in Colab]('
_EXTRAS = {'t5x_and_tpu': 'jobs'}  # what other notebooks need is `figures`
_ASKED = "input('Address of the repository: ')"
_SETUP = """\
import importlib.util
import subprocess
import sys

if importlib.util.find_spec('speculative_t5x') is None:  # as on Colab
  url = {url}
  pip = [sys.executable, '-m', 'pip', 'install', '-q', '-e']
  subprocess.run(['git', 'clone', '-q', url, 'source'], check=True)
  subprocess.run([*pip, 'source[{extra}]'], check=True)
  sys.path.insert(0, 'source')"""


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
    if url is not None:
      name = url.removeprefix('https://github.com/').removesuffix('.git')
      link = f'{_LINK}{_COLAB}/{name}/blob/main/notebooks/{path.name})'
      paragraphs.insert(0, link)
    setup = _SETUP.format(
        url=_ASKED if url is None else repr(url),
        extra=_EXTRAS.get(path.stem, 'figures'),
    )
    cells['title']['source'] = _lines('\n\n'.join([heading, *paragraphs]))
    cells['setup']['source'] = _lines(setup)
    yield path, json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'


def _lines(text: str) -> list[str]:
  """Return a text as notebooks keep it."""
  return text.splitlines(keepends=True)
