# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the project as a whole: imports, files, and reports of bugs."""

import ast
import functools
import graphlib
import itertools
import pathlib
import re
import subprocess
import sys
import types
import zipfile

import pytest

import speculative_t5x

_CHECKOUT = pathlib.Path(__file__).parents[1]
_HEAVY = (
    'fastapi', 'gin', 'orbax', 'prometheus_client', 'pydantic', 'seqio',
    'starlette', 'tensorflow', 'tensorstore', 'uvicorn',
)  # fmt: skip
_LICENCE = re.compile(
    r'# Copyright \d{4} The speculative_t5x Authors\.\n'
    r'# SPDX-License-Identifier: Apache-2\.0\n'
)
# Paths of one machine, and options that name a package index.
_LOCAL = re.compile(
    r'(?<![\w.})>$-])/(?:work|tmp|root|home|Users)\b'
    r'|--(?:find-links|(?:extra-)?index-url)'
)


# The names of each room, which is the first that the package loads.
_ROOMS = """
import sys
import types

for name in {rooms}:
  for loaded in [x for x in sys.modules if x.startswith('speculative_t5x')]:
    del sys.modules[loaded]
  import speculative_t5x as st
  room = getattr(st, name)
  assert dir(room) == sorted(room.__all__), name
  values = [getattr(room, x) for x in room.__all__]
  assert not any(isinstance(x, types.ModuleType) for x in values)
  print(*room.__all__)
"""


def _run(code: str) -> str:
  """Run code in a separate Python process, from the checkout."""
  done = subprocess.run(
      [sys.executable, '-c', code],
      cwd=_CHECKOUT,
      check=True,
      stdout=subprocess.PIPE,
      text=True,
  )
  return done.stdout


def _tracked_files() -> list[pathlib.Path]:
  """Return the files that git tracks, or would by the next `git add`."""
  command = ['git', 'ls-files', '-z', '--cached', '--others']
  try:
    done = subprocess.run(
        [*command, '--exclude-standard'],
        cwd=_CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    )
  except (OSError, subprocess.CalledProcessError):
    pytest.skip('not a git checkout')
  paths = [_CHECKOUT / name for name in done.stdout.split('\0') if name]
  return [path for path in paths if path.is_file()]


def _pins(lock: str) -> dict[str, str]:
  """Return the version of each package that a lock pins."""
  lines = (_CHECKOUT / lock).read_text().splitlines()
  return dict(line.split('==') for line in lines if '==' in line)


class TestDoor:

  def test_loads_no_jax(self):
    loaded = _packages(_loaded('speculative_t5x'))
    assert 'etils' in loaded
    assert not loaded & {'jax', 'jaxlib', 'flax', 'numpy', *_HEAVY}

  def test_names(self):
    """Each is found, shown by `dir`, and explained by docs/python.md."""
    page = (_CHECKOUT / 'docs/python.md').read_text()
    shown = dir(speculative_t5x)
    assert shown == sorted(speculative_t5x.__all__)
    assert 'CandidateTree' in dir(speculative_t5x.drafters)
    assert len(shown) <= 22
    for name in shown:
      assert getattr(speculative_t5x, name) is not None
      assert f'st.{name}' in page, name

  def test_rooms(self):
    """`dir` shows their public names alone, which are found first of all."""
    rooms = [
        name
        for name in dir(speculative_t5x)
        if isinstance(getattr(speculative_t5x, name), types.ModuleType)
    ]
    assert {'drafters', 'testing'} < {*rooms}
    pages = 'python.md', 'own.md', 'correctness.md', 'checkpoints.md'
    page = ''.join((_CHECKOUT / 'docs' / x).read_text() for x in pages)
    lines = _run(_ROOMS.format(rooms=rooms)).splitlines()
    for room, line in zip(rooms, lines, strict=True):
      names = line.split()
      assert names
      for name in names:
        assert f'`{name}' in page or f'{room}.{name}' in page, (room, name)

  def test_runs_as_a_module(self):
    done = subprocess.run(
        [sys.executable, '-m', 'speculative_t5x', '--version'],
        cwd=_CHECKOUT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout == f'speculative-t5x {speculative_t5x.__version__}\n'


class TestImport:

  def test_core_loads_no_heavy_package(self):
    """This includes the jobs that read no task."""
    jobs = 'speculative_t5x.jobs.simulate, speculative_t5x.jobs.paper'
    loaded = _loaded(jobs)
    assert 'speculative_t5x.jobs.paper' in loaded
    assert not _packages(loaded) & set(_HEAVY)

  def test_loop_loads_only_jax_and_flax(self):
    """Only the package for shape annotations is added."""
    before = _packages(_loaded('jax, flax.linen'))
    loaded = _packages(_loaded('speculative_t5x.speculation.loop'))
    assert loaded - before == {'speculative_t5x', 'jaxtyping'}


class TestLayers:

  def test_floors(self):
    """Imports run downwards, and the core is the three lowest floors."""
    graph = graphlib.TopologicalSorter(_package_imports())
    graph.prepare()  # raises for a cycle
    floors = []
    while ready := set(graph.get_ready()):
      floors.append(ready)
      graph.done(*ready)
    assert floors[:3] == [
        {'speculation'}, {'rules', 'policies', 'networks'}, {'drafters'}
    ]
    assert len(floors) <= 10

  def test_networks_are_imported_by_families_alone(self):
    """Whatever decodes takes any; T5, the first one, has other users too."""
    room = _CHECKOUT / 'speculative_t5x'
    trees = {path: ast.parse(path.read_text()) for path in room.rglob('*.py')}
    networks = {
        path.stem
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == 'name'
        and ast.unparse(node.annotation) == 'ClassVar[str]'
        and node.value is not None  # not the Protocol
    } - {'t5'}
    assert {'decoder_only', 'encoder_decoder'} <= networks
    importing = {
        path.parent.relative_to(room).as_posix()
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for part in re.findall(r'\w+', ast.unparse(node))
        if part.startswith(tuple(networks))
    }
    # T5X's own models are networks of this package, by their names.
    assert importing <= {'networks', 'loading/families', 't5x_guest'}

  def test_no_file_name_occurs_twice(self):
    paths = (_CHECKOUT / 'speculative_t5x').rglob('*.py')
    names = [path.name for path in paths if path.name != '__init__.py']
    assert len(names) == len(set(names))
    # pytest collects two tests of one name from one folder only.
    tests = [path.name for path in (_CHECKOUT / 'tests').rglob('*_test.py')]
    assert len(tests) == len(set(tests))

  def test_arrows_of_the_architecture_page_are_imports(self):
    page = (_CHECKOUT / 'docs/architecture.md').read_text()
    picture = page.split('```mermaid\n')[1].split('```')[0]
    imports = _package_imports()
    arrows = 0
    for line in picture.splitlines()[1:]:
      steps = [_names(step) for step in line.split('-->')]
      for above, below in itertools.pairwise(steps):
        for one, other in itertools.product(above, below):
          found = set().union(*(imports[name] for name in one))
          assert found & set(other), (one, other)
          arrows += 1
    assert arrows > 15

  def test_no_job_imports_a_job(self):
    """But for what two jobs share, and the jobs that others run."""
    folder = _CHECKOUT / 'speculative_t5x/jobs'
    imported = {
        name
        for path in folder.glob('*.py')
        for name in re.findall(
            r'from speculative_t5x\.jobs import (\w+)', path.read_text()
        )
    }
    assert imported <= {
        'evaluation', 'infer', 'measurements', 't5x_baseline', 'walltime',
        'workload',
    }  # fmt: skip


def test_macros_are_named_by_jobs_alone():
  """The library names arguments, and the command line knows gin.

  The server, which its job alone starts, names macros to clients too.
  """
  configs = (_CHECKOUT / 'configs').rglob('*.gin')
  macros = {
      name
      for path in configs
      for name in re.findall(r'^([A-Z][A-Z0-9_]+) =', path.read_text(), re.M)
  }
  named = [
      (path.name, node.lineno, word)
      for path in sorted((_CHECKOUT / 'speculative_t5x').rglob('*.py'))
      if not {'jobs', 'serving'} & {*path.parts}
      for statement in ast.parse(path.read_text()).body
      if not ast.unparse(statement).startswith('__all__')
      for node in ast.walk(statement)
      if isinstance(node, ast.Constant) and isinstance(node.value, str)
      for word in re.findall(r'\b([A-Z]+_[A-Z0-9_]+|[A-Z]+(?==))', node.value)
      if word in macros
  ]
  assert named == []


def _package_imports() -> dict[str, set[str]]:
  """Return what each package or module of the first level imports."""
  root = _CHECKOUT / 'speculative_t5x'
  found = {}
  for path in root.glob('*/**/*.py'):
    own = path.relative_to(root).parts[0]
    imported = re.findall(
        r'^ *from speculative_t5x(?:\.(\w+)[\w.]*)? import (\w+)',
        path.read_text(),
        re.MULTILINE,
    )
    names = {package or module for package, module in imported}
    found.setdefault(own, set()).update(names - {own, 'version', 'extras'})
  return found


def _names(step: str) -> list[list[str]]:
  """Return the folder of each box."""
  return [[box.strip()] for box in step.split('&')]


def _loaded(modules: str) -> set[str]:
  """Return what a Python that imports these modules has loaded."""
  return set(_run(f'import sys, {modules}; print(*sys.modules)').split())


def _packages(modules: set[str]) -> set[str]:
  """Return the packages of modules, without the standard library's."""
  return {name.split('.')[0] for name in modules} - sys.stdlib_module_names


class TestFiles:

  def test_every_python_and_gin_file_bears_the_licence(self):
    folders = 'speculative_t5x', 'scripts', 'tests', 'benchmarks', 'examples'
    files = [f for name in folders for f in (_CHECKOUT / name).rglob('*.py')]
    files += (_CHECKOUT / 'configs').rglob('*.gin')
    texts = {str(f.relative_to(_CHECKOUT)): f.read_text() for f in files}
    # An empty file needs no licence.
    without = [
        name
        for name, text in texts.items()
        if text and not _LICENCE.match(re.sub(r'\A#!.*\n', '', text))
    ]
    assert not without

  def test_text_files_are_utf_8_in_every_locale(self):
    calls = [
        node
        for path in _CHECKOUT.glob('speculative_t5x/**/*.py')
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ('read_text', 'write_text')
    ]
    assert calls
    for call in calls:
      given = {each.arg: ast.unparse(each.value) for each in call.keywords}
      assert given.get('encoding') == "'utf-8'", ast.unparse(call)

  def test_no_file_names_a_machine_or_a_registry(self):
    found = []
    for path in _tracked_files():
      try:
        lines = path.read_text(encoding='utf-8').splitlines()
      except UnicodeDecodeError:
        continue
      found += [
          f'{path.relative_to(_CHECKOUT)}:{number}: {match[0]}'
          for number, line in enumerate(lines, start=1)
          if (match := _LOCAL.search(line))
      ]
    assert not found


def test_wheel_holds_the_package_and_the_configs_alone(tmp_path):
  """It is built with installed packages only."""
  pytest.importorskip('hatchling')
  command = [sys.executable, '-m', 'hatchling', 'build', '-t', 'wheel']
  subprocess.run(
      [*command, '-d', str(tmp_path)],
      cwd=_CHECKOUT,
      check=True,
      capture_output=True,
  )
  (wheel,) = tmp_path.iterdir()
  found = zipfile.ZipFile(wheel).namelist()
  names = [str(p.relative_to(_CHECKOUT)) for p in _tracked_files()]
  package = 'speculative_t5x'
  for folder, prefix in (package, ''), ('configs', f'{package}/'):
    expected = {prefix + n for n in names if n.startswith(f'{folder}/')}
    assert expected and expected <= {*found}
  roots = {name.split('/')[0] for name in found}
  assert {r for r in roots if not r.endswith('.dist-info')} == {package}


@pytest.mark.parametrize('suffix', ['', '-py312', '-py311'])
def test_locks(suffix):
  """The one for a TPU adds libtpu, and the README has what is tested."""
  pins = _pins(f'requirements{suffix}.txt')
  for_tpu = _pins(f'requirements-tpu{suffix}.txt')
  different = {
      name for name, version in for_tpu.items() if pins.get(name) != version
  }
  assert different == {'libtpu'}
  packages = ('jax', 'flax', 'orbax-checkpoint', 'numpy', 'tensorflow')
  versions = ' | '.join(pins[package] for package in packages)
  row = f' | {versions} | `requirements{suffix}.txt` |\n'
  assert row in (_CHECKOUT / 'README.md').read_text()


_TESTS = pathlib.Path(__file__).parent
_ROW = re.compile(
    r'\| [^|]+ \| \[(?P<repository>[\w.-]+)#(?P<number>\d+)\]'
    r'\((?P<link>https://github\.com/[\w-]+/(?P=repository)'
    r'/(issues|pull)/(?P=number))\) \|(?P<tests>( `[\w/]+\.py::[\w:]+`)+) \|'
)
_HEADING = ('| what went wrong ', '|---|')


def _rows() -> list[re.Match]:
  lines = (_TESTS / 'public_reports.md').read_text().splitlines()
  rows = [x for x in lines if x.startswith('|') and not x.startswith(_HEADING)]
  matches = {row: _ROW.fullmatch(row) for row in rows}
  assert all(matches.values()), [x for x in rows if not matches[x]]
  return list(matches.values())


@functools.cache
def _test_names(file: str) -> set[str]:
  """Return the tests of a file, those of classes as `Class::test`."""

  def names(body, prefix=''):
    for node in body:
      if isinstance(node, ast.ClassDef):
        yield from names(node.body, f'{node.name}::')
      elif isinstance(node, ast.FunctionDef) and node.name.startswith('test_'):
        yield prefix + node.name

  return {*names(ast.parse((_TESTS / file).read_text()).body)}


def test_links_are_unique():
  links = [row['link'] for row in _rows()]
  assert len(links) == len(set(links)) >= 40


def test_tests_exist():
  find = lambda row: re.findall('`(.*?)::(.*?)`', row['tests'])
  tests = [test for row in _rows() for test in find(row)]
  assert [x for x in tests if x[1] not in _test_names(x[0])] == []
