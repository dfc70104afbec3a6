# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line: its flags, its output and its errors."""

import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import sys
import types

import gin
import jax
import pytest

from speculative_t5x import embedded
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import flags as flags_lib
from speculative_t5x.jobs.command_line import gin_job
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.networks import chips
from tests import processes
from tests import workloads

_ROOT = pathlib.Path(__file__).parents[3]
# A user's file in another folder than the project's.
_GIN = """
from __gin__ import dynamic_registration

from speculative_t5x.networks import t5
from speculative_t5x.tasks import ende

include 'configs/drafters/draft_model.gin'
include 'configs/runs/eval.gin'

MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TARGET_CONFIG = @target/t5.T5Config()
DRAFT_CONFIG = @draft/t5.T5Config()
TASK_FEATURE_LENGTHS = {'inputs': 24, 'targets': 16}
NUM_EXAMPLES = 3
BATCH_SIZE = 2
GAMMA = 2

t5.T5Config:
  vocab_size = 2048
  emb_dim = 32
  num_heads = 2
  num_encoder_layers = 1
  num_decoder_layers = 1
  head_dim = 16
  mlp_dim = 48
"""
_DRAFT = 'configs/runs/train_bulletins_draft.gin'
_TPU_FLAGS = '--target=t5_1_1_base', '--draft=a,b', '--topology=v4:2x2x1'
# The required flags of a command.
_COMMANDS = {
    'eval': ['--gin_file=configs/runs/demo.gin'],
    'infer': ['--gin_file=configs/runs/infer_bulletins.gin'],
    'serve': ['--gin_file=configs/runs/serve_bulletins.gin'],
    'compare': ['--first=x', '--second=y'],
    'walltime': ['--gin_file=configs/runs/walltime_bulletins.gin'],
    'methods': ['--gin_file=configs/runs/methods.gin'],
    'simulate': [],
    'paper': ['table1'],
    'train': [f'--gin_file={_DRAFT}'],
    'distill': ['--gin_file=configs/runs/distill_bulletins.gin'],
    'check-pair': ['--gin_file=configs/runs/demo.gin'],
    'preflight': [*_TPU_FLAGS],
    'make-table': [],
    'convert': ['--gin.CHECKPOINT_PATH=x'],
}


def _configure(*flags):
  """Have gin read a command without running it."""
  (command,) = flags_lib.parse(flags)
  gin_job.read(command)


def _macro(name):
  return gin.query_parameter(f'{name}/macro.value')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a gin file and two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  (folder / 'tiny.gin').write_text(_GIN)
  workloads.save_pair(folder)
  return folder


@pytest.fixture
def flags(folder, tmp_path):
  """Return the flags of a command that would succeed."""
  return [
      'eval',
      f'--gin_file={folder / "tiny.gin"}',
      f'--gin.CHECKPOINT_PATH={folder / "target"}',
      f'--gin.DRAFT_CHECKPOINT_PATH={folder / "draft"}',
      f'--gin.EVAL_OUTPUT_DIR={tmp_path / "output"}',
  ]


@pytest.fixture
def fails(capsys, tmp_path, monkeypatch):
  """Return a runner of failing commands, which returns the one error."""
  monkeypatch.setattr(compilation_cache, 'enable', lambda _: None)

  def run(flags, status):
    assert main.main(flags) == status, capsys.readouterr().err
    shown = capsys.readouterr()
    assert shown.out == ''
    *phases, error = shown.err.removesuffix('\n').split('error: ')
    assert len(phases) == 1
    assert 'Traceback' not in error and 'In call to' not in error
    assert '\n' not in error
    assert not list(tmp_path.rglob('results.jsonl'))
    return error

  return run


class TestValues:

  @pytest.mark.parametrize(
      ('argument', 'value'),
      [
          ('5', 5),
          ('1e-3', 1e-3),
          ('None', None),
          ('(0.0,)', (0.0,)),
          ("{'inputs': 8, 'targets': 9}", {'inputs': 8, 'targets': 9}),
          ("'a text'", 'a text'),
          ('"5"', '5'),
          # Values as a shell passes them without quotes.
          ('text', 'text'),
          ('gs://bucket/a-b/checkpoint_1', 'gs://bucket/a-b/checkpoint_1'),
          ('../a b/~c,d', '../a b/~c,d'),
          (r'a\b', r'a\b'),
          ("/it's/100%", "/it's/100%"),
          ('runs/[1] "a"\\\'(b)@{c}', 'runs/[1] "a"\\\'(b)@{c}'),
      ],
  )
  def test_types_of_values(self, argument, value):
    """Macros and references stay as they are."""
    for text in ('%GAMMA', '@target/t5.T5Config()', '(3, %X)'):
      assert flags_lib.gin_value('X', text) == text
    gin.clear_config()
    gin.parse_config(f'X = {flags_lib.gin_value("X", argument)}')
    found = _macro('X')
    assert found == value and type(found) is type(value)

  def test_last_setting_counts(self):
    folders = '--gin.MODEL_DIR=a', '--gin.MODEL_DIR=b'
    _configure('train', *_COMMANDS['train'], *folders)
    assert _macro('MODEL_DIR') == 'b'

  def test_search_paths(self, tmp_path):
    (tmp_path / 'searched_b.gin').write_text("include 'searched_a.gin'\n")
    (tmp_path / 'searched_a.gin').write_text(
        f"include '{_DRAFT}'\nMODEL_DIR = 'mine'\n"
    )
    paths = f'--gin_search_paths={tmp_path}'
    _configure('train', paths, '--gin_file=searched_b.gin')
    assert _macro('MODEL_DIR') == 'mine'

  @pytest.mark.parametrize(
      'name',
      [x for x in _COMMANDS if x not in ('paper', 'check-pair', 'serve')],
  )
  def test_output_dir_of_each_command(self, name):
    """The value is the text of the flag, unchanged."""
    path = "%X it's"
    _configure(name, *_COMMANDS[name], f'--output_dir={path}')
    assert _macro(commands.JOBS[name].output_macro) == path
    for flag in _TPU_FLAGS if name == 'preflight' else ():
      own, _, value = flag.removeprefix('--').partition('=')
      assert _macro(own.upper()) == value


@pytest.mark.parametrize(
    ('status', 'ended'), [(130, [130]), (1, []), (0, [])]
)
def test_an_interrupted_process_ends_at_once(monkeypatch, status, ended):
  """Python's own end would wait for threads, or meet them in ruins."""
  found = []
  monkeypatch.setattr(main, 'main', lambda: status)
  monkeypatch.setattr(os, '_exit', found.append)
  # The reader of the output was interrupted too.
  monkeypatch.setattr(sys, 'stdout', types.SimpleNamespace(flush=_broken_pipe))
  with pytest.raises(SystemExit) as error:
    main.run()
  assert found == ended and error.value.code == status


def _broken_pipe():
  raise BrokenPipeError


class TestHelp:

  def test_overview(self, capsys):
    assert main.main(['--help']) == 0
    shown = capsys.readouterr()
    assert shown.err == '' and max(map(len, shown.out.splitlines())) <= 80
    assert list(_COMMANDS) == list(commands.JOBS)
    for name in _COMMANDS:
      assert re.search(f'^  {name} +[a-z].*$', shown.out, re.MULTILINE)
    assert main.main([]) == 2 and 'usage' in capsys.readouterr().out
    assert main.main(['--version']) == 0
    version = importlib.metadata.version('speculative_t5x')
    assert capsys.readouterr().out == f'speculative-t5x {version}\n'

  def test_settings_of_the_files_given(self, capsys, tmp_path):
    (tmp_path / 'my.gin').write_text("MULTI30K_DIR = '/data'\n")
    files = ['configs/runs/eval.gin', 'configs/tasks/multi30k_ende.gin']
    given = [f'--gin_file={file}' for file in [*files, 'my.gin']]
    paths = f'--gin_search_paths={tmp_path}'
    assert main.main(['eval', *given, paths, '--help']) == 0
    shown = capsys.readouterr().out
    assert "\n  MULTI30K_DIR = '/data'\n" in shown
    assert '\n  EVAL_OUTPUT_DIR = <required>\n' in shown
    assert main.main(['walltime', *given, '--help']) == 2  # my.gin is not found
    checkpoints = '--gin_file=configs/paper/checkpoints.gin'
    for part in ([], ['table2']):
      assert main.main(['paper', *part, checkpoints, '--help']) == 0
      shown = capsys.readouterr().out
      assert '\n  ALPHA_TOKENS = ' in shown and '\n  ENDE_TARGET = ' in shown

  @pytest.mark.parametrize('name', _COMMANDS)
  def test_of_a_command(self, capsys, name):
    assert main.main([name, '--gin.GAMMA=3', '--help']) == 0
    shown = capsys.readouterr()
    assert shown.err == ''
    assert re.search(rf'speculative-t5x {name}\b', shown.out)
    assert 'The speculative_t5x Authors' not in shown.out
    head, _, settings = shown.out.partition('\n\nAll settings and their ')
    text = (_ROOT / commands.JOBS[name].gin_file).read_text().splitlines()
    assert all(f'# {line}'.rstrip() in text for line in head.splitlines())
    if name == 'eval':
      assert '\n  CHECKPOINT_PATH = <required>\n' in settings
      assert '\n  TARGET_CONFIG = None\n' in settings
      assert '--gin_file=configs/drafters/<name>.gin' in settings

  def test_reader_of_the_output_that_ends_early(self, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, 'w') as stdout:
      monkeypatch.setattr(sys, 'stdout', stdout)
      assert main.main(['--help']) == 141
    assert capsys.readouterr().err == ''


# Command lines that are not valid, and what their errors have.
_USAGE = [
    (['unheard'], 'eval, infer'),
    (['eval'], 'MIXTURE_OR_TASK_NAME'),
    (['eval', 'x.gin'], 'x.gin'),
    (['eval', '--gin-file=x.gin'], '--gin-file'),
    (['eval', '--gin.GAMMA'], '--gin.GAMMA'),
    (['eval', '--output_dir', '--gin.GAMMA=3'], '--output_dir'),
    (['simulate', '--target=t5_1_1_base'], '--target=t5_1_1_base'),
    (['paper', 'table1', 'table9'], 'table9'),
    (['paper', 'table1', 'figure2', '--gin.TARGET_SIZE=base'], 'TARGET_SIZE'),
    (['preflight', *_TPU_FLAGS[:2]], '--topology=..'),
    (['check-pair', '--gin.VOCABULARY=x'], 'VOCABULARY_FILE?'),
    (['eval', '--gin_file=configs/runs/eval.gin', '--output_dir=x'],
     'configs/drafters'),
    (['check-pair'], '--gin.CHECKPOINT_PATH=... --gin.DRAFT_CHECKPOINT_PATH='),
]  # fmt: skip
# Flags that are added to those of a valid command line.
_ADDED = [
    ('--gin.GAMA=3', 'the macro GAMA.*GAMMA'),
    ('--gin.evaluation.EvalSetup.gama=3', "parameter named 'gama'"),
    ('--gin.nothing.here=3', "'nothing'"),
    ('--output_dir= ', '--output_dir'),
    ('--gin.TEMPERATURE=0,1', r"--gin.TEMPERATURE='\(0,1\)'"),
    ('--gin.TEMPERATURE=(0.0', '--gin.TEMPERATURE'),
    ('--gin.GAMMA=%GAMA', 'GAMA'),
    ('--gin.GAMMA=%GAMMA', 'GAMMA refers to itself'),
    ('--gin.DRAFTER=@nothing.Here()', 'nothing.Here'),
    ('--gin_file=/no/where.gin', '/no/where.gin'),
    ('--gin_file=configs/engines/ray.gin', 'CLUSTER'),
]
# Gin files that are not valid, and what their errors have.
_TEXTS = [
    (b'GAMMA = (3\nTOPK = 1\n', 'bad.gin'),
    (b'evaluation.EvalSetup.gama = 3\n', "'gama'"),
    (b'TOPK = @my_module.Own()\n', '@my_module.Own'),
    (b'from __gin__ import dynamic_registration\nimport own_module\n',
     'own_module'),
    (b'# FOO = 1, or %FOO\nGAMA = 3\n', 'GAMA'),
    (b"include 'configs/no.gin'\n", 'configs/no.gin'),
    (b'GAMMA = 3\nSPLIT = "\xff"\n', 'bad.gin'),
]  # fmt: skip
_KINDS = {
    'eval --gin_file=configs/policies/schedule.gin': [
        'GAMMA=five', 'GAMMA=True', 'GAMMA=(1, 2)', 'DRAFTER=None',
        'TEMPERATURE=(0.0, None)', 'CHECKPOINT_PATH=2024',
        "MIXTURE_OR_TASK_NAME=['a']", 'TASK_FEATURE_LENGTHS=96',
        'DRAFTER=@drafters.DraftModel', 'LOGGERS=tensorboard',
        'DRAFT_LENGTHS=3', "WORKLOAD={'split': 'test'}",
    ],
    'infer': [
        "INPUTS=('a', 3)", 'SCORES=yes', 'TEMPERATURE=(0.0, 1.0)',
        'ON_EMPTY=keep', 'INPUT_FORMAT=csv',
    ],
    'methods': [
        'TASKS=[(1, 2, 3)]', "TASKS=[('a', @walltime.WalltimeSetup)]",
    ],
    'distill': ['DIVERGENCE=nothing', 'TRAIN_STEPS=2.5', 'DROPOUT_RATE=None'],
}  # fmt: skip


class TestUsage:

  @pytest.mark.parametrize(('arguments', 'message'), _USAGE)
  def test_command_line(self, fails, arguments, message):
    assert message in fails(arguments, 2)

  @pytest.mark.parametrize(('flag', 'message'), _ADDED)
  def test_added_flag(self, fails, flags, flag, message):
    assert re.search(message, fails([*flags, flag], 2))

  @pytest.mark.parametrize(('text', 'message'), _TEXTS)
  def test_gin_file(self, fails, flags, tmp_path, text, message):
    path = tmp_path / 'bad.gin'
    path.write_bytes(text)
    assert message in fails([*flags, f'--gin_file={path}'], 2)

  @pytest.mark.parametrize('command', _KINDS)
  def test_setting_of_another_kind(self, fails, tmp_path, command):
    """It is refused before the job runs."""
    name, *more = command.split()
    for setting in _KINDS[command]:
      macro, _, value = setting.partition('=')
      flags = [name, *_COMMANDS[name], *more]
      if commands.JOBS[name].output_macro:
        flags.append(f'--output_dir={tmp_path / "out"}')
      error = fails([*flags, f'--gin.{setting}'], 2)
      assert error.startswith(f'{macro} must be '), setting
      assert value.strip('\'"')[:4] in error
    assert not list(tmp_path.iterdir())

  def test_several_hosts(self, fails, flags, monkeypatch):
    monkeypatch.setattr(jax.distributed, 'is_initialized', lambda: True)
    monkeypatch.setattr(jax, 'process_count', lambda: 4)
    assert fails(flags, 1).startswith('JAX connects 4 processes, and the jobs')

  def test_argument_that_no_gin_file_sets(self, fails, flags, tmp_path):
    (tmp_path / 'own.gin').write_text(
        'from __gin__ import dynamic_registration\n'
        'from speculative_t5x.loading import drafters\n'
        'DRAFTER = @drafters.EarlyExit()\n'
    )
    error = fails([*flags, f'--gin_file={tmp_path / "own.gin"}'], 1)
    assert 'missing' in error and "'exit_layer'" in error

  def test_a_bug_keeps_its_traceback(self, flags, monkeypatch):
    from speculative_t5x.tasks import examples

    def bug(*_, **__):
      raise TypeError('load() missing 1 required positional argument: x')

    monkeypatch.setattr(examples, 'load', bug)
    with pytest.raises(TypeError, match='missing 1 required'):
      main.main(flags)


# Settings that a job refuses, and what the error has.
_SETTINGS = {
    'eval': [
        ('--gin.GAMMA=0', '^GAMMA must be a whole number .* got 0.$'),
        ('--gin.TEMPERATURE=(0.0, -0.5)', 'temperature must be'),
        ('--gin.MESH_SHAPE=(512, 2)', '512 x 2 .* 1024 devices'),
        ("--gin.TASK_FEATURE_LENGTHS={'inputs': 8}", '^TASK_FEATURE_LENGTHS'),
        ('--gin.NUM_EXAMPLES=1000000', 'validation of bulletins_ende'),
        ('--gin.MIXTURE_OR_TASK_NAME=wmt', 'no task named wmt'),
        ('--gin.target/t5.T5Config.emb_dim=16', 'is of another network than'),
        ('--gin.CHECKPOINT_PATH=/no/where', '^The target: No che.*/no/where'),
        ('--gin.DRAFT_CHECKPOINT_PATH=/no/where', '^The draft: No che'),
        ('--gin.CHECKPOINT_PATH=memory:///x', 'begin with memory:// are not'),
        ('--gin_file=configs/rules/lenience.gin --gin.LENIENCE=-0.5',
         '^LENIENCE must .* got -0.5.$'),
    ],
    'infer': [
        ('--gin.INPUTS=missing.txt', 'missing.txt'),
        ('--gin.INPUTS=None', 'INPUTS'),
        ('--gin.BEAMS=2 --gin.TEMPERATURE=1.0', 'TEMPERATURE'),
    ],
    'walltime': [
        ('--gin.GAMMA=(1, 97)', 'GAMMA 97'),
        ('--gin.ALPHA_TOKENS=0', 'ALPHA_TOKENS must be'),
        ('--gin.SPLIT=dev', 'no split dev'),
        ('--gin_file=configs/policies/expected_speed.gin --gin.GAMMA=(2, 8)'
         ' --gin.COST_COEFFICIENT=0.1 --gin.VERIFY_COST_RATIO={2: 1.4, 8: 1.7}',
         'verify_cost_ratio ends at width 8, but gamma 8'),
    ],
    'simulate': [
        ('--gin.ALPHA=(0.5, 1.01)', 'ALPHA must'),
        ('--gin.TARGET_SIZE=3b', "'3b'"),
        ('--gin.DTYPE=float23', 'must be float32 or bfloat16'),
    ],
}  # fmt: skip


class TestBadInput:

  @pytest.mark.parametrize('name', _SETTINGS)
  def test_settings(self, fails, flags, tmp_path, name):
    if name != 'eval':
      flags = [name, *_COMMANDS[name], f'--output_dir={tmp_path / "output"}']
    for setting, message in _SETTINGS[name]:
      more = setting.split(' --')
      more = [more[0], *(f'--{each}' for each in more[1:])]
      error = fails([*flags, *more], 1)
      found = re.search(message, error, re.IGNORECASE)
      assert found, (setting, error)
      assert list(tmp_path.iterdir()) == []

  def test_cross_entropy_of_samples_of_the_draft(
      self, fails, monkeypatch, tmp_path
  ):
    """Gin wraps the function, which the job must still recognize."""
    monkeypatch.chdir(_ROOT)
    more = '--gin_file=configs/divergences/cross_entropy.gin'
    flags = ['distill', *_COMMANDS['distill'], more]
    share = '--gin.ON_POLICY_SHARE=0.5'
    error = fails([*flags, share, f'--output_dir={tmp_path / "model"}'], 1)
    assert error.startswith('By cross entropy the draft would learn its own')

  def test_resumed_with_other_settings(self, fails, monkeypatch, tmp_path):
    monkeypatch.chdir(_ROOT)
    (tmp_path / 'checkpoint_5').mkdir()
    flags = [
        'train',
        '--gin_file=configs/runs/train_bulletins_target.gin',
        f'--output_dir={tmp_path}',
        '--gin.PATIENCE=0',  # so that nothing is trained
    ]
    assert 'PATIENCE' in fails(flags, 1)
    other = ['--gin.BATCH_SIZE=7', '--gin.t5.T5Config.mlp_dim=9']
    free = {
        'TRAIN_STEPS': 10, 'CHECKPOINT_PERIOD': 7, 'KEEP': 3, 'PATIENCE': 2,
        'NUM_PARTS': 4, 'MESH_SHAPE': (2, 1),
    }  # fmt: skip
    changed = [f'--gin.{name}={value}' for name, value in free.items()]
    error = fails([*flags[:-1], *changed, *other], 1)
    assert 'BATCH_SIZE was 32 and is now 7; ' in error
    assert 't5.T5Config.mlp_dim was unset and is now 9' in error
    assert not [name for name in free if name in error]
    # What the machine chooses is kept, and another machine chooses another.
    kept = json.loads((tmp_path / 'settings.json').read_text())
    assert kept['DTYPE'] == "'float32'"
    monkeypatch.setattr(chips, 'suited_dtype', lambda: 'bfloat16')
    error = fails(flags, 1)
    assert "DTYPE was 'float32' and is now 'bfloat16'" in error

  def test_output_folder(self, fails, flags, tmp_path):
    """A command that fails before it begins removes nothing."""
    (tmp_path / 'file').write_text('mine')
    path = tmp_path / 'file' / 'output'
    error = fails([*flags, f'--gin.EVAL_OUTPUT_DIR={path}'], 1)
    assert f'The output folder {path} cannot be written to' in error
    assert (tmp_path / 'file').read_text() == 'mine'
    (tmp_path / 'output').mkdir()
    (tmp_path / 'output' / 'results.jsonl').write_text('{}\n')
    assert main.main([*flags, '--gin.GAMMA=0']) == 1
    assert (tmp_path / 'output' / 'results.jsonl').read_text() == '{}\n'

  @pytest.mark.parametrize(
      ('name', 'folder'),
      [('eval', ''), ('train', ''), ('simulate', ''), ('convert', ''),
       ('paper table3', 'measured')],
  )  # fmt: skip
  def test_folder_that_another_job_writes_to(
      self, fails, tmp_path, name, folder
  ):
    """The job is refused immediately, and the other's files remain."""
    path = tmp_path / folder / 'records' / 'temperature_0.json'
    path.parent.mkdir(parents=True)
    path.write_text('{}')
    flags = name.split() if ' ' in name else [name, *_COMMANDS[name]]
    if name == 'convert':
      flags[1:] = [f'--gin.CHECKPOINT_PATH={embedded.draft_checkpoint()}']
    with folder_lock.hold(tmp_path / folder):
      error = fails([*flags, f'--output_dir={tmp_path}'], 1)
    assert error.startswith(
        f'The folder {tmp_path / folder} is in use by another job'
    )
    assert [x for x in tmp_path.rglob('*') if x.is_file()] == [path]

class TestProcess:

  def test_host_without_accelerator_and_without_tensorflow(self, tmp_path):
    """Both are absent, whatever the environment says."""
    code = (
        'import sys; absent = ("tensorflow", "seqio", "tensorflow_datasets");'
        'sys.modules.update(dict.fromkeys([*absent, "gcsfs"]));'
        'from speculative_t5x.jobs.command_line import main;'
        'print(main.main(["simulate", "--output_dir=x"]));'
        'print(main.main(["convert", "--gin.CHECKPOINT_PATH=gs://bucket/a",'
        '                 "--gin.OUTPUT_DIR=x"]))'
    )
    command = [sys.executable, '-c', code]
    done = processes.outside(command, tmp_path, JAX_PLATFORMS='absent')
    assert done.returncode == 0, done.stderr
    assert done.stdout == '1\n1\n'
    devices, bucket = done.stderr.splitlines()
    assert devices.startswith('error: ') and 'absent' in devices
    assert bucket.startswith('error: ') and "'.[gcs]'" in bucket
    assert list(tmp_path.iterdir()) == []

  def test_without_extras(self, tmp_path):
    """The core decodes lines; what else is missing is named with its extra."""
    infer = [
        'infer',
        '--gin_file=configs/runs/infer_bulletins.gin',
        "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 4}",
        '--gin.GAMMA=2',
    ]
    code = (
        'import sys; absent = ("tensorflow", "seqio", "tensorflow_datasets",'
        ' "optax", "matplotlib", "tokenizers", "torch", "clu");'
        'from speculative_t5x.jobs.command_line import main;'
        f'print(main.main({infer})); print(*sys.modules);'
        'sys.modules.update(dict.fromkeys(absent));'
        'print(main.main(["eval", "--gin_file=configs/runs/demo.gin"]));'
        'print(main.main(["train", "--output_dir=x"]))'
    )
    line = 'There will be showers in Turin.\n'
    command = [sys.executable, '-c', code]
    done = processes.outside(command, tmp_path, stdin=line)
    first, status, modules, *statuses = done.stdout.splitlines()
    assert json.loads(first)['prediction'], done.stderr
    assert [status, *statuses] == ['0', '1', '1'], done.stderr
    # What decoding a file of text does not load, whether installed or not.
    unneeded = {
        'clu', 'fastapi', 'matplotlib', 'optax', 'prometheus_client',
        'pydantic', 'sacrebleu', 'scipy', 'seqio', 'starlette', 'tensorflow',
        'tensorflow_datasets', 'tokenizers', 'torch', 'uvicorn',
    }  # fmt: skip
    assert not unneeded & {name.split('.')[0] for name in modules.split()}
    lines = [x for x in done.stderr.splitlines() if x.startswith('error: ')]
    assert len(lines) == 2 and all("extra 'jobs'" in line for line in lines)


def test_interrupted(monkeypatch, capsys):

  def interrupt(_):
    raise KeyboardInterrupt

  monkeypatch.setattr(flags_lib, 'parse', interrupt)
  assert main.main(['eval']) == 130
  shown = capsys.readouterr()
  assert shown.err.count('\n') == 1 and shown.out == ''


class TestPaper:

  def test_parts(self):
    """Figures come last, because they show measurements of the tables."""
    parts = lambda *flags: [
        command.job.function.removeprefix('paper.')
        for command in flags_lib.parse(['paper', *flags])
    ]
    first = 'task_pairs.measure'
    every = [first, *(f'table{i}' for i in (1, 2, 3, 5))]
    every += [f'figure{i}' for i in range(1, 6)]
    assert parts() == parts('--output_dir=x') == every
    named = 'figure4', 'table2', 'figure4'
    assert parts(*named) == [first, 'table2', 'figure4']
    assert parts('figure4', 'table1') == ['table1', 'figure4']
    more = 'configs/rules/block.gin'
    for command in flags_lib.parse(['paper', f'--gin_file={more}']):
      assert command.gin_files == (command.job.gin_file, more)
    measure, *_ = flags_lib.parse(['paper', 'table5', 'table1', 'table3'])
    assert measure.bindings == (('TABLES', "('table3', 'table5')"),)

  def test_runs_the_named_part(self, tmp_path, capsys):
    output = tmp_path / 'output'
    assert main.main(['paper', 'table1', f'--output_dir={output}']) == 0
    assert [path.name for path in output.iterdir()] == ['table1.md']
    shown = capsys.readouterr()
    assert '| 1.5306 |' in (output / 'table1.md').read_text()
    assert ' 1.5306 ' in shown.out and '|' not in shown.out
    assert shown.err == ''
