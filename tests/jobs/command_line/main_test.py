# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line: its flags, its output and its errors."""

import dataclasses
import gzip
import importlib.metadata
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import gin
import jax
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from speculative_t5x import embedded
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.tasks import bulletins
from tests import full_disk
from tests import tiny

_ROOT = pathlib.Path(__file__).parents[3]
_CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
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
_MULTI30K = 'configs/runs/eval_multi30k.gin'
_COMMANDS = [
    'eval', 'infer', 'compare', 'walltime', 'methods', 'simulate', 'paper',
    'train', 'distill', 'check-pair', 'tpu-preflight', 'make-table',
    'convert',
]  # fmt: skip
_TPU_FLAGS = '--target=t5_1_1_base', '--draft=a,b', '--topology=v4:2x2x1'
# The required flags of a command, and the macro of its output folder.
_OUTPUTS = [
    (['eval', '--gin_file=configs/runs/demo.gin'], 'EVAL_OUTPUT_DIR'),
    (
        ['infer', '--gin_file=configs/runs/infer_bulletins.gin'],
        'INFER_OUTPUT_DIR',
    ),
    (['compare', '--first=x', '--second=y'], 'COMPARE_OUTPUT_DIR'),
    (
        ['train', '--gin_file=configs/runs/train_bulletins_draft.gin'],
        'MODEL_DIR',
    ),
    (
        ['distill', '--gin_file=configs/runs/distill_bulletins.gin'],
        'MODEL_DIR',
    ),
    (
        ['walltime', '--gin_file=configs/runs/walltime_bulletins.gin'],
        'OUTPUT_DIR',
    ),
    (['methods', '--gin_file=configs/runs/methods.gin'], 'OUTPUT_DIR'),
    (['simulate'], 'OUTPUT_DIR'),
    (['convert', '--gin.CHECKPOINT_PATH=x'], 'OUTPUT_DIR'),
    (['make-table'], 'OUTPUT_DIR'),
    (['paper', 'table1'], 'OUTPUT_DIR'),
    (['paper', 'table3'], 'OUTPUT_DIR'),
    (['tpu-preflight', *_TPU_FLAGS], 'OUTPUT_DIR'),
    (
        ['check-pair', '--gin_file=configs/runs/demo.gin'],
        'CHECK_OUTPUT_DIR',
    ),
]
_USAGE = f'usage: speculative-t5x {{{",".join(_COMMANDS)}}}'
_TABLES = ['table1', 'table2', 'table3', 'table4']
_FIGURES = ['figure1', 'figure2', 'figure3', 'figure4', 'figure5']


def _configure(*flags):
  """Configures a command without running it."""
  (command,) = main._parse(list(flags))
  return main._configure(command)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Returns a gin file and two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  (folder / 'tiny.gin').write_text(_GIN)
  checkpoints.save(folder / 'target', 1, tiny.params(_CONFIG))
  checkpoints.save(folder / 'draft', 1, tiny.params(_CONFIG, noise=0.1))
  return folder


@pytest.fixture
def flags(folder, tmp_path):
  """Returns the flags of a command that would succeed."""
  return [
      'eval',
      f'--gin_file={folder / "tiny.gin"}',
      f'--gin.CHECKPOINT_PATH={folder / "target"}',
      f'--gin.DRAFT_CHECKPOINT_PATH={folder / "draft"}',
      f'--gin.EVAL_OUTPUT_DIR={tmp_path / "output"}',
  ]


@pytest.fixture
def fails(capsys, tmp_path):
  """Returns a runner of failing commands, which returns the one error."""

  def run(flags, status):
    assert main.main(flags) == status
    shown = capsys.readouterr()
    assert shown.out == ''
    *phases, error = shown.err.removesuffix('\n').split('error: ')
    said = ''.join(phases).splitlines()
    assert len(phases) == 1 and all(line.endswith(' ...') for line in said)
    assert 'Traceback' not in error and 'In call to' not in error
    assert not list(tmp_path.rglob('results.jsonl'))
    return error

  return run


@pytest.fixture
def parsed(monkeypatch):
  """Returns a function from flags to the value of a macro."""
  monkeypatch.chdir(_ROOT)
  monkeypatch.setattr(main.kinds, 'check', lambda _: None)  # of the seed

  def value(argument, name='SEED'):
    paths = ('CHECKPOINT_PATH', 'DRAFT_CHECKPOINT_PATH', 'EVAL_OUTPUT_DIR')
    _configure(
        'eval',
        f'--gin_file={_MULTI30K}',
        *(f'--gin.{path}=x' for path in (*paths, 'MULTI30K_DIR')),
        f'--gin.{name}={argument}',
    )
    return gin.query_parameter(f'{name}/macro.value')

  return value


class TestValues:

  @pytest.mark.parametrize(
      ('argument', 'value'),
      [
          ('5', 5),
          ('-1', -1),
          ('1e-3', 1e-3),
          ('None', None),
          ('(0.0, 1.0)', (0.0, 1.0)),
          ('(0.0,)', (0.0,)),
          ("{'inputs': 8, 'targets': 9}", {'inputs': 8, 'targets': 9}),
          ('"text"', 'text'),
          ("'a text'", 'a text'),
          ('"5"', '5'),
          # Values as a shell passes them without quotes.
          ('text', 'text'),
          ('gs://bucket/a-b/checkpoint_1', 'gs://bucket/a-b/checkpoint_1'),
          ('../a b/~c,d', '../a b/~c,d'),
          ('2026-11-21', '2026-11-21'),
          (r'a\b', r'a\b'),
          ("/it's/100%", "/it's/100%"),
          ('runs/[1] "a"\\\'(b)@{c}', 'runs/[1] "a"\\\'(b)@{c}'),
      ],
  )
  def test_types_of_values(self, parsed, argument, value):
    found = parsed(argument)
    assert found == value and type(found) is type(value)

  def test_macro_and_reference(self, parsed):
    assert str(parsed('%GAMMA')) == '%GAMMA'
    config = parsed('@target/t5.T5Config()', 'DRAFT_CONFIG')
    assert str(config) == '@target/t5.T5Config()'

  def test_the_last_one_counts(self, parsed):
    assert parsed(5) == 5
    _configure(
        'train',
        '--gin_file=configs/runs/train_bulletins_draft.gin',
        '--gin.MODEL_DIR=a',
        '--gin.MODEL_DIR=b',
    )
    assert gin.query_parameter('MODEL_DIR/macro.value') == 'b'

  def test_search_paths(self, tmp_path):
    for name in ('one', 'two'):
      (tmp_path / name).mkdir()
    (tmp_path / 'one' / 'a.gin').write_text(
        "include 'configs/runs/train_bulletins_draft.gin'\ninclude 'b.gin'\n"
    )
    (tmp_path / 'two' / 'b.gin').write_text("MODEL_DIR = 'from b'\n")
    paths = f'--gin_search_paths={tmp_path / "one"},{tmp_path / "two"}'
    _configure('train', paths, '--gin_file=a.gin')
    assert gin.query_parameter('MODEL_DIR/macro.value') == 'from b'

  def test_search_paths_come_first(self, tmp_path, monkeypatch):
    """They precede the current folder, and do not affect other commands."""
    monkeypatch.chdir(tmp_path)
    for name in ('.', 'one', 'two'):
      (tmp_path / name).mkdir(exist_ok=True)
      (tmp_path / name / 'a.gin').write_text(
          "include 'configs/runs/train_bulletins_draft.gin'\n"
          f"MODEL_DIR = 'from {name}'\n"
      )
    for name in ('one', 'two'):
      _configure('train', f'--gin_search_paths={name}', '--gin_file=a.gin')
      found = gin.query_parameter('MODEL_DIR/macro.value')
      assert found == f'from {name}'


class TestKinds:
  """A setting of another kind than its argument is refused at once."""

  @pytest.mark.parametrize(
      ('command', 'settings'),
      [
          (
              'eval --gin_file=configs/runs/demo.gin'
              ' --gin_file=configs/policies/schedule.gin',
              [
                  'GAMMA=five', 'GAMMA=2.0', 'GAMMA=True', 'GAMMA=(1, 2)',
                  'DRAFTER=None', 'DRAFTER=draft_model', 'TEMPERATURE=warm',
                  'TEMPERATURE=(0.0, None)', 'TEMPERATURE=True', 'TOPK="3"',
                  'MINP=low', 'CHECKPOINT_PATH=2024', 'DRAFT_CONFIG=small',
                  "MIXTURE_OR_TASK_NAME=['a']", 'DRAFT_MODEL_PARALLEL=false',
                  'DRAFT_VOCABULARY_FILE=3', 'EVAL_OUTPUT_DIR=5',
                  'EVAL_OUTPUT_DIR=None', 'TASK_FEATURE_LENGTHS=96',
                  "TASK_FEATURE_LENGTHS={'inputs': '96', 'targets': 96}",
                  'MESH_SHAPE=8', 'LOGGERS=tensorboard', 'DRAFT_LENGTHS=3',
                  "WORKLOAD={'split': 'test'}",
              ],
          ),
          (
              'infer --gin_file=configs/runs/infer_paraphrases.gin'
              ' --gin.ANSWERS_PATH=x',
              [
                  'INPUTS=2024', "INPUTS=('a', 3)", 'VOCABULARY_FILE=3',
                  'SCORES=yes', 'STATISTICS=1', 'TOKENS=no', 'ANSWERS=yes',
                  'TEMPERATURE=(0.0, 1.0)', 'LOOKUP_ONLY_HINTS=yes',
                  'ANSWERS_APPEND=false', 'INPUT_FIELD=None',
              ],
          ),
          (
              'walltime --gin_file=configs/runs/walltime_bulletins.gin',
              ['ONE_AT_A_TIME=false', 'GAMMA=(1, 2.5)', 'DRAFTERS=[None]'],
          ),
          (
              'methods --gin_file=configs/runs/methods.gin',
              ["TASKS=[('a', 'walltime')]", 'TASKS=None', 'TASKS=[(1, 2, 3)]'],
          ),
          (
              'distill --gin_file=configs/runs/distill_bulletins.gin'
              ' --gin_file=configs/origins/target_layers.gin'
              ' --gin.DRAFT_DECODER_LAYERS=(0,)',
              [
                  'DIVERGENCE=nothing', 'TRAIN_STEPS=2.5', 'MODEL_DIR=3',
                  'DRAFT_DECODER_LAYERS=1', 'DRAFT_SHARES_ENCODER=false',
                  'DRAFT_ENCODER_LAYERS=(None,)', 'ON_POLICY_SHARE=half',
                  'DROPOUT_RATE=None',
              ],
          ),
          ('simulate', ['DRAFT_SIZE=3', 'ALPHA=much', 'TARGET_SIZE=11']),
          (
              'paper table2',
              ['MEASURED=x', "MEASURED={('EnDe', 'small'): 'x'}"],
          ),
      ],
  )  # fmt: skip
  def test_is_refused(self, fails, monkeypatch, tmp_path, command, settings):
    monkeypatch.chdir(_ROOT)
    name = commands.JOBS[command.split()[0]].output_macro
    for setting in settings:
      macro, _, value = setting.partition('=')
      output = f'--gin.{name}={tmp_path / "out"}'
      error = fails([*command.split(), output, f'--gin.{setting}'], 2)
      assert error.startswith(f'{macro} must be '), setting
      found = gin.config._CONFIG[macro, 'gin.macro']['value']
      assert f', got {found!r}.' in error and '\n' not in error
      assert value.strip('\'"')[:4] in error
    assert not list(tmp_path.iterdir())

  def test_value_in_a_scope_or_behind_macros(self, fails, tmp_path):
    (tmp_path / 'own.gin').write_text(
        'from __gin__ import dynamic_registration\n'
        'from speculative_t5x.jobs import evaluation\n'
        "include 'configs/runs/demo.gin'\n"
        "COUNT = 'two'\nREPEATS = %COUNT\n"
    )
    flags = ['eval', f'--gin_file={tmp_path / "own.gin"}']
    assert fails(flags, 2).startswith("COUNT must be a whole number, got 'two'")
    bad = '--gin.a/evaluation.evaluate.gamma=5.0'
    error = fails([*flags, '--gin.COUNT=2', bad], 2)
    assert error.startswith('a/') and 'gamma must be a whole number' in error

  def test_string_that_looks_like_a_number(self, fails):
    error = fails(['compare', '--gin.FIRST=2024', '--second=x'], 2)
    assert error.endswith('"\'2024\'".')


class TestUsage:

  def test_help(self, capsys):
    assert main.main(['--help']) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f'{_USAGE} ') and shown.err == ''
    for name in _COMMANDS:
      assert re.search(f'^  {name} +[a-z].*$', shown.out, re.MULTILINE)
    for flag in ('--gin_file', '--gin.NAME', '--gin_search_paths', '--output_'):
      assert f'\n  {flag}' in shown.out
    assert max(map(len, shown.out.splitlines()[1:])) <= 80

  def test_examples_in_the_help(self, capsys):
    main.main(['--help'])
    text = capsys.readouterr().out.replace('\\\n', ' ')
    examples = re.findall('^  speculative-t5x (.*-.*)$', text, re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
      for command in main._parse(example.split()):
        assert callable(main._configure(command))

  @pytest.mark.parametrize('name', _COMMANDS)
  def test_help_of_a_command(self, capsys, name):
    file = _ROOT / commands.JOBS[name].gin_file
    assert main.main([name, '--gin.GAMMA=3', '--help']) == 0
    shown = capsys.readouterr()
    assert re.search('Required:(\n- | none)', shown.out) and shown.err == ''
    assert f'speculative-t5x {name} ' in shown.out
    assert 'The speculative_t5x Authors' not in shown.out
    assert 'dynamic_registration' not in shown.out
    lines = file.read_text().splitlines()
    assert all(f'# {x}'.rstrip() in lines for x in shown.out.splitlines())

  def test_help_of_a_part(self, capsys):
    assert main.main(['paper', 'table2', '--help']) == 0
    assert '# - TARGET_SIZE' not in (shown := capsys.readouterr().out)
    assert '\n- TARGET_SIZE' in shown and 'paper table2' in shown
    assert main.main(['paper', 'table9', '-h']) == 2
    assert "there is no 'table9'" in capsys.readouterr().err

  def test_output_is_utf_8_in_every_locale(self, monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), 'ascii')
    monkeypatch.setattr(sys, 'stdout', stdout)
    monkeypatch.setattr(main, '_help', lambda _: '\u2581T\xfcr \udcff')
    assert main.main(['--help']) == 0
    assert stdout.buffer.getvalue() == '\u2581T\xfcr '.encode() + b'\xff\n'

  def test_reader_of_the_output_that_ends_early(self, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, 'w') as stdout:
      monkeypatch.setattr(sys, 'stdout', stdout)
      assert main.main(['--help']) == 141
    assert capsys.readouterr().err == ''

  def test_no_arguments(self, capsys):
    assert main.main([]) == 2
    assert 'usage: speculative-t5x' in capsys.readouterr().out

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          (['evil'], "there is no command 'evil'"),
          (['eval'], '--gin_file is required'),
          (['eval', 'x.gin'], "the flag 'x.gin' is unknown"),
          (
              ['evl', '--gin_file=x.gin'],
              "there is no command 'evl'. Did you mean eval?",
          ),
          (
              ['eval', '--gin-file=x.gin'],
              "the flag '--gin-file=x.gin' is unknown. Did you mean --gin_file",
          ),
          (
              ['eval', '--gamma=3'],
              "the flag '--gamma=3' is unknown. Did you mean --gin.GAMMA=3?",
          ),
          (
              ['infer', '--draft-checkpoint-path=x'],
              "the flag '--draft-checkpoint-path=x' is unknown. Did you mean"
              ' --gin.DRAFT_CHECKPOINT_PATH=x?',
          ),
          (['simulate', 'base'], "the flag 'base' is unknown"),
          (['paper', '--table1'], "the flag '--table1' is unknown"),
      ],
  )
  def test_flags(self, fails, changes, message):
    error = fails(changes, 2)
    assert error.startswith(message)
    assert _USAGE in error

  @pytest.mark.parametrize(
      'name', ['--gin.GAMMA', '--gin_file', '--output_dir']
  )
  def test_value_after_a_space(self, fails, name):
    error = fails(['eval', name, 'value'], 2)
    assert error.startswith(f"'{name}' has no value. Write {name}=VALUE")

  def test_version(self, capsys):
    assert main.main(['--version']) == 0
    version = importlib.metadata.version('speculative_t5x')
    assert capsys.readouterr().out == f'speculative-t5x {version}\n'

  @pytest.mark.parametrize(
      ('flag', 'message'),
      [
          ('--gin.GAMA=3', 'no gin file mentions the macro GAMA. Did you mean'
           ' GAMMA?'),
          ('--gin.gamma=3', 'no gin file mentions the macro gamma. Did you'
           ' mean GAMMA?'),
          ('--gin.XYZZY=3', 'no gin file mentions the macro XYZZY.'),
          ('--gin.evaluation.evaluate.gama=3', '--gin.evaluation.evaluate.gama'
           "=3 cannot be read: Configurable 'evaluation.evaluate' doesn't have"
           " a parameter named 'gama'."),
          ('--gin.nothing.here=3', '--gin.nothing.here=3 cannot be read: No'
           " configurable matching 'nothing'."),
          ('--gin.GAMMA=', '--gin.GAMMA= has no value. Give one; a shell'
           ' variable in it may be unset.'),
          ('--gin.TEMPERATURE=0,1', '--gin.TEMPERATURE=0,1 cannot be read:'
           ' several values need parentheses. Write'
           " --gin.TEMPERATURE='(0,1)'."),
          ('--gin.TEMPERATURE=0.5,', '--gin.TEMPERATURE=0.5, cannot be read:'
           ' several values need parentheses.'),
          ('--gin.TEMPERATURE=(0,),(1,)', '--gin.TEMPERATURE=(0,),(1,) cannot'
           ' be read: several values need parentheses.'),
          ('--gin.GAMMA=%GAMA', 'The macro GAMA is used but has no value.'
           ' Correct its name, or add the gin file that sets it.'),
          ('--gin_file=no.gin', 'there is no gin file no.gin in '),
          ('--gin_file=configs/runs/dmo.gin', 'there is no gin file'
           ' configs/runs/dmo.gin in '),
          ('--gin_file=', 'the name of a gin file is empty. Give a name; a'),
      ],
  )  # fmt: skip
  def test_names(self, fails, flags, flag, message):
    error = fails([*flags, flag], 2)
    assert error.startswith(message) and '\n' not in error

  def test_names_an_open_bracket(self, fails, flags):
    flag = '--gin.TEMPERATURE=(0.0'
    error = fails([*flags, flag], 2)
    assert error.startswith(f'{flag} cannot be read: ') and '\n' not in error
    # The middle is from Python's tokenizer, and differs between versions.
    assert error.endswith('EOF in multi-line statement.')

  def test_a_comment_does_not_mention_a_macro(self, fails, flags, tmp_path):
    (tmp_path / 'more.gin').write_text('# FOO = 1, or %FOO\n')
    more = [f'--gin_file={tmp_path / "more.gin"}', '--gin.FOO=1']
    assert 'mentions the macro FOO' in fails([*flags, *more], 2)

  def test_required_macros(self, fails, flags):
    given = [flag for flag in flags if 'CHECKPOINT_PATH' not in flag]
    assert fails(given, 2) == (
        'CHECKPOINT_PATH, DRAFT_CHECKPOINT_PATH must be set:'
        ' --gin.CHECKPOINT_PATH=... --gin.DRAFT_CHECKPOINT_PATH=..., or in a'
        ' gin file.'
    )

  def test_drafter_left_out(self, fails, tmp_path):
    names = 'MIXTURE_OR_TASK_NAME', 'CHECKPOINT_PATH', 'EVAL_OUTPUT_DIR'
    given = [f'--gin.{name}={tmp_path / name}' for name in names]
    flags = ['eval', '--gin_file=configs/runs/eval.gin', *given]
    hint = (
        ' Add the file of a drafter, as'
        ' --gin_file=configs/drafters/draft_model.gin.'
    )
    message = 'The macro DRAFTER is used but has no value.'
    assert fails(flags, 2) == message + hint
    name = 'DRAFT_CHECKPOINT_PATH'
    message = f'no gin file mentions the macro {name}.'
    assert fails([*flags, f'--gin.{name}=x'], 2) == message + hint

  def test_draft_model_left_out(self, fails, flags, tmp_path):
    (tmp_path / 'own.gin').write_text(
        "include 'configs/runs/eval.gin'\n"
        "include 'configs/drafters/lookup_then_model.gin'\n"
    )
    names = 'MIXTURE_OR_TASK_NAME', 'CHECKPOINT_PATH', 'EVAL_OUTPUT_DIR'
    given = [f'--gin.{name}={tmp_path / name}' for name in names]
    assert fails(['eval', f'--gin_file={tmp_path / "own.gin"}', *given], 2) == (
        'The macro DRAFT_CHECKPOINT_PATH is used but has no value. Add the file'
        ' of a drafter, as --gin_file=configs/drafters/draft_model.gin.'
    )

  def test_setting_of_another_job(self, fails, flags):
    more = '--gin_file=configs/decoding/answers.gin', '--gin.ANSWERS_PATH=x'
    error = fails([*flags, *more], 2)
    assert error.endswith(
        'sets the macro ANSWERS, which is not used. It is a setting of: infer.'
    )

  @pytest.mark.parametrize(
      ('reference', 'message'),
      [
          (
              '@sumaries/walltime.measure_walltime',
              'measure_walltime is used in the scope sumaries, in which nothing'
              ' is set. Did you mean summaries?',
          ),
          (
              '@summaries/walltime.measure_walltime()',
              'A gin file calls the job measure_walltime. Refer to it without'
              ' parentheses: @summaries/walltime.measure_walltime.',
          ),
      ],
  )
  def test_tasks_of_methods(self, fails, tmp_path, reference, message):
    (tmp_path / 'own.gin').write_text(
        'from __gin__ import dynamic_registration\n'
        'from speculative_t5x.jobs import walltime\n'
        f"include 'configs/runs/methods.gin'\nTASKS = [('a', {reference})]\n"
    )
    flags = 'methods', f'--gin_file={tmp_path / "own.gin"}'
    assert fails([*flags, f'--output_dir={tmp_path / "out"}'], 2) == message

  def test_no_job(self, fails):
    models = '--gin_file=configs/models/bulletins_draft.gin'
    error = fails(['eval', models], 2)
    assert 'evaluate' in error and 'configs' in error

  @pytest.mark.parametrize(
      ('text', 'message'),
      [
          ('GAMMA = (3\nTOPK = 1\n', "Expected ',' or ')'. (bad.gin, line 2)"),
          ('GAMMA = a b\n', "token 'a' (bad.gin, line 1); strings need"),
          ('GAMMA = (3', 'EOF in multi-line statement.'),
          (
              'evaluation.evaluate.gama = 3\n',
              "have a parameter named 'gama' ({path}, line 1).",
          ),
          (
              'from __gin__ import dynamic_registration\n'
              'from speculative_t5x import nothing_here\n',
              "No module named 'speculative_t5x.nothing_here' ({path}, line 2)",
          ),
          (
              'from __gin__ import dynamic_registration\n'
              'TOPK = @t5.T5Config()\n',
              "'t5' was not provided by an import statement ({path}, line 2)."
              " Import it in this file, as by 'import t5'",
          ),
          (
              'TOPK = @my_module.Own()\n',
              "reference '@my_module.Own()' ({path}, line 1). Import it in this"
              " file, as by 'import my_module' for a module of your own, after"
              " 'from __gin__ import dynamic_registration'.",
          ),
          (
              'from __gin__ import dynamic_registration\nimport my_module\n',
              "No module named 'my_module' ({path}, line 2). If my_module is a"
              ' module of your own, set PYTHONPATH to the folder that it is',
          ),
      ],
  )
  def test_gin_file(self, fails, flags, tmp_path, text, message):
    path = tmp_path / 'bad.gin'
    path.write_text(text)
    error = fails([*flags, f'--gin_file={path}'], 2)
    assert error.startswith(f'{path} cannot be read: ') and '\n' not in error
    assert message.replace('{path}', str(path)) in error

  @pytest.mark.parametrize(
      ('text', 'message'),
      [
          ('GAMA = 3\n', '1 sets the macro GAMA, which is not used. Did you'
           ' mean GAMMA?'),
          ('\n\ngamma = 3\n', '3 sets the macro gamma, which is not used. Did'
           ' you mean GAMMA?'),
          ('XYZZY = (\n1,\n)\n', '1 sets the macro XYZZY, which is not used.'
           ' Remove it, or add the gin file that uses it.'),
          ('GAMMA = 3\na/GAMMA = 3\n', '2 sets the macro a/GAMMA, which'
           ' is not used. Did you mean GAMMA?'),
      ],
  )  # fmt: skip
  @pytest.mark.parametrize('is_included', [False, True])
  def test_unused_macro(
      self, fails, flags, tmp_path, text, message, is_included
  ):
    path = tmp_path / 'mine.gin'
    path.write_text(text)
    (tmp_path / 'more.gin').write_text(f"include '{path}'\n")
    name = 'more.gin' if is_included else 'mine.gin'
    error = fails([*flags, f'--gin_file={tmp_path / name}'], 2)
    assert error == f'{path}, line {message}'

  @pytest.mark.parametrize(
      ('text', 'flag'),
      [
          ('TWO = 2\nGAMMA = %TWO\n', '--gin.SEED=1'),
          ('TWO = 2\n', '--gin.GAMMA=%TWO'),
          ("TWO = 2\nTEMPERATURE = ('#', %TWO)\n", '--gin.TEMPERATURE=0'),
      ],
  )
  def test_macro_that_a_flag_or_another_macro_uses(
      self, flags, tmp_path, text, flag
  ):
    (tmp_path / 'mine.gin').write_text(text)
    more = [f'--gin_file={tmp_path / "mine.gin"}', flag, '--gin.GAMA=3']
    with pytest.raises(main.UsageError, match='no gin file mentions the macro'):
      main._check_macros(main._parse([*flags, *more]))

  @pytest.mark.parametrize(
      ('file', 'name'),
      [
          ('configs/rules/lenience.gin', 'RULE'),
          ('configs/policies/confidence.gin', 'POLICY'),
      ],
  )
  def test_rule_or_policy_before_the_job(self, fails, file, name):
    """The job's file would replace it by its default."""
    job = 'configs/runs/demo.gin'
    error = fails(['eval', f'--gin_file={file}', f'--gin_file={job}'], 2)
    assert error == (
        f'{file} sets {name}, but {job}, given after it, sets it again. Give'
        f' {file} last.'
    )
    in_order = ['eval', f'--gin_file={job}', f'--gin_file={file}']
    main._check_macros(main._parse(in_order))

  @pytest.mark.parametrize(
      ('content', 'message'),
      [
          (b"include 'bad.gin'\n", ' includes itself. Remove'),
          (b"include 'more.gin'\n", ' includes itself through {more}. Remove'),
          (b'GAMMA = 3\nSPLIT = "\xff"\n', ', line 2 is not UTF-8 text. Save'),
          (b'\x80' * 99, ', line 1 is not UTF-8 text. Save'),
          (b'\x00\x01\n', ' cannot be read: '),
      ],
  )
  @pytest.mark.parametrize('command', ['eval', 'check-pair'])
  def test_binary_gin_file(
      self, fails, flags, tmp_path, content, message, command
  ):
    (tmp_path / 'bad.gin').write_bytes(content)
    (tmp_path / 'more.gin').write_text("include 'bad.gin'\n")
    path, more = tmp_path / 'bad.gin', tmp_path / 'more.gin'
    files = [f'--gin_search_paths={tmp_path}', f'--gin_file={path}']
    error = fails([command, *flags[1:], *files], 2)
    assert error.startswith(f'{path}{message.replace("{more}", str(more))}')
    assert '\n' not in error

  def test_included_file_is_missing(self, fails, flags, tmp_path):
    (tmp_path / 'bad.gin').write_text("include 'configs/no.gin'\n")
    more = f'--gin_file={tmp_path / "bad.gin"}'
    assert 'no gin file configs/no.gin in ' in fails([*flags, more], 2)

  @pytest.mark.parametrize('job', ['eval', 'simulate', 'paper'])
  def test_several_hosts(self, fails, flags, tmp_path, monkeypatch, job):
    monkeypatch.setattr(jax.distributed, 'is_initialized', lambda: True)
    monkeypatch.setattr(jax, 'process_count', lambda: 4)
    if job != 'eval':
      flags = [job, f'--output_dir={tmp_path}']
    assert fails(flags, 1) == (
        'JAX connects 4 processes, and the jobs of this package run in one.'
        " Start the job on a single host; T5X's eval and infer jobs run on"
        ' several (docs/t5x.md).'
    )

  def test_a_bug_keeps_its_traceback(self, flags, monkeypatch):
    from speculative_t5x.tasks import examples

    def bug(*_, **__):
      raise TypeError('load() missing 1 required positional argument: x')

    monkeypatch.setattr(examples, 'load', bug)
    with pytest.raises(TypeError, match='missing 1 required'):
      main.main(flags)


def _model(role, name, value):
  return f'--gin.{role}/t5.T5Config.{name}={value}'


def _vocabulary(path, **options):
  """Returns a SentencePiece model with few pieces."""
  arguments = {
      'vocab_size': 99, 'pad_id': 0, 'eos_id': 1, 'unk_id': 2, 'bos_id': -1
  }  # fmt: skip
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(text for text, _ in _pairs()),
      model_writer=model,
      hard_vocab_limit=False,
      minloglevel=2,
      **{**arguments, **options},
  )
  path.write_bytes(model.getvalue())
  return f'--gin.DRAFT_VOCABULARY_FILE={path}'


def _pairs():
  return bulletins.read_pairs('validation')[:50]


class TestBadInput:

  @pytest.mark.parametrize(
      ('flag', 'message'),
      [
          ('--gin.GAMMA=0', 'gamma must be a whole number and at least 1'),
          ('--gin.GAMMA=-1', 'gamma must be'),
          (
              '--gin.DRAFTER=@draft_model_source.FromCheckpoint',
              'with parentheses.* Got <class',
          ),
          ('--gin.TEMPERATURE=-0.5', 'temperature must be'),
          ('--gin.TEMPERATURE=(0.0, -0.5)', 'temperature must be'),
          ('--gin.TOPP=-0.1', 'topp must lie in'),
          ('--gin.TOPP=1.1', 'topp must lie in'),
          ('--gin.MINP=1.1', 'minp must lie in'),
          ('--gin.TYPICALP=-0.1', 'typicalp must lie in'),
          ('--gin.TOPK=-1', 'topk must be'),
          ('--gin.NUM_EXAMPLES=0', 'num_examples must be'),
          ('--gin.NUM_EXAMPLES=100000', 'num_examples is 100000, but'),
          ('--gin.SPLIT=dev', 'no split dev'),
          ('--gin.MIXTURE_OR_TASK_NAME=wmt', 'no task named wmt'),
          (_model('target', 'num_decoder_layers', 2), 'it lacks decoder/lay'),
          (_model('target', 'num_decoder_layers', 0), 'it also holds decoder'),
          (_model('target', 'num_encoder_layers', 2), 'it lacks encoder/lay'),
          (_model('draft', 'num_decoder_layers', 2), 'draft/checkpoint_1 is'),
          (_model('target', 'emb_dim', 16), 'instead of .*emb_dim'),
          (_model('target', 'num_heads', 4), 'instead of .*num_heads'),
          (_model('target', 'head_dim', 8), 'instead of .*head_dim'),
          (_model('target', 'mlp_dim', 24), 'instead of .*mlp_dim'),
          (_model('draft', 'vocab_size', 1000), 'instead of .*vocab_size'),
      ],
  )
  def test_settings(self, fails, flags, tmp_path, flag, message):
    error = fails([*flags, flag], 1)
    assert '\n' not in error
    assert re.search(message, error), error
    assert list(tmp_path.iterdir()) == []

  @pytest.mark.parametrize(
      ('file', 'name', 'value'),
      [
          ('policies/confidence', 'CONFIDENCE', '1.5'),
          ('policies/schedule', 'DRAFT_LENGTHS', '(3, -1)'),
          ('rules/lenience', 'LENIENCE', '-0.5'),
          ('policies/expected_speed', 'COST_COEFFICIENT', '-1.0'),
      ],
  )
  def test_setting_of_a_rule_or_a_policy(self, fails, flags, file, name, value):
    more = [f'--gin_file=configs/{file}.gin', f'--gin.{name}={value}']
    if name == 'COST_COEFFICIENT':
      more.append('--gin.VERIFY_COST_RATIO=1.5')
    error = fails([*flags, *more], 1)
    assert f'got {value}. Correct {name}.' in error and '\n' not in error

  @pytest.mark.parametrize(
      ('setting', 'message'),
      [
          ('DROPOUT_RATE=1.0', 'dropout_rate must lie in [0, 1), got 1.0.'),
          ('PATIENCE=0', 'patience must be a whole number and at least 1, got'),
          ('ON_POLICY_PERIOD=0', 'period must be a whole number and at lea'),
          ('ON_POLICY_SHARE=1.5', 'share must lie in [0, 1], got'),
          # Set in one scope, and another value in another scope
          ('VALIDATION_EXAMPLES=0', 'num_examples must be a whole number and '),
      ],
  )
  def test_setting_of_distill(
      self, fails, monkeypatch, tmp_path, setting, message
  ):
    monkeypatch.chdir(_ROOT)
    monkeypatch.setattr(compilation_cache, 'enable', lambda _: None)
    name = setting.partition('=')[0]
    flags = ['distill', '--gin_file=configs/runs/distill_bulletins.gin']
    error = fails(
        [
            *flags,
            f'--gin.{setting}',
            f'--gin.DECODES_DIR={tmp_path / "decodes"}',
            f'--output_dir={tmp_path / "model"}',
        ],
        1,
    )
    assert error.startswith(message) and '\n' not in error
    assert error.endswith(f'Correct {name}.')
    assert list(tmp_path.iterdir()) == []

  def test_cross_entropy_of_samples_of_the_draft(
      self, fails, monkeypatch, tmp_path
  ):
    """Gin wraps the function, which the job must still recognize."""
    monkeypatch.chdir(_ROOT)
    monkeypatch.setattr(compilation_cache, 'enable', lambda _: None)
    error = fails(
        [
            'distill',
            '--gin_file=configs/runs/distill_bulletins.gin',
            '--gin_file=configs/divergences/cross_entropy.gin',
            '--gin.ON_POLICY_SHARE=0.5',
            f'--output_dir={tmp_path / "model"}',
        ],
        1,
    )
    assert error.startswith('By cross entropy the draft would learn its own')
    assert list(tmp_path.iterdir()) == []

  @pytest.mark.parametrize('job', ['train', 'distill'])
  def test_resumed_with_other_settings(self, fails, monkeypatch, tmp_path, job):
    monkeypatch.chdir(_ROOT)
    monkeypatch.setattr(compilation_cache, 'enable', lambda _: None)
    (tmp_path / 'checkpoint_5').mkdir()
    run = {'train': 'train_bulletins_target', 'distill': 'distill_bulletins'}
    flags = [
        job,
        f'--gin_file=configs/runs/{run[job]}.gin',
        f'--output_dir={tmp_path}',
        '--gin.PATIENCE=0',  # so that nothing is trained
    ]
    assert 'patience' in fails(flags, 1)
    other = ['--gin.BATCH_SIZE=7', '--gin.t5.T5Config.mlp_dim=9']
    free = {
        'TRAIN_STEPS': 10, 'CHECKPOINT_PERIOD': 7, 'KEEP': 3, 'PATIENCE': 2,
        'NUM_PARTS': 4, 'MESH_SHAPE': (2, 1),
    }  # fmt: skip
    changed = [f'--gin.{name}={value}' for name, value in free.items()]
    error = fails([*flags[:-1], *changed, *other], 1)
    assert f'{tmp_path} has a training with other settings: BATCH_SIZE' in error
    assert 'was 32 and is now 7; ' in error
    assert 't5.T5Config.mlp_dim was no value and is now 9. Give' in error
    assert not [name for name in free if name in error]

  def test_flag_that_refers_to_what_no_gin_file_uses(self, fails, tmp_path):
    # Gin remembers what any file of the process has used; no file uses this.
    error = fails(
        [
            'distill',
            '--gin_file=configs/runs/distill_bulletins.gin',
            '--gin.DIVERGENCE=@acceptance.expected_tokens',
            f'--output_dir={tmp_path}',
        ],
        2,
    )
    assert error.startswith('--gin.DIVERGENCE=@acceptance.expected_tokens')
    assert error.endswith(
        ' A flag can refer only to what the gin files use: set this in a gin'
        ' file that imports its module, and give that by --gin_file.'
    )

  @pytest.mark.parametrize('role', ['CHECKPOINT_PATH', 'DRAFT_CHECKPOINT_PATH'])
  def test_missing_checkpoint(self, fails, flags, tmp_path, role):
    path = tmp_path / 'mistyped' / 'checkpoint_1'
    error = fails([*flags, f'--gin.{role}={path}'], 1)
    assert f'{role}: No checkpoint at {path}' in error and 'Pass a' in error
    assert list(tmp_path.iterdir()) == []

  @pytest.mark.parametrize(
      ('damaged', 'message'),
      [('_METADATA', 'is unfinished'), ('manifest.ocdbt', 'damaged')],
  )
  def test_half_written_checkpoint(
      self, fails, flags, folder, tmp_path, damaged, message
  ):
    shutil.copytree(folder / 'draft', tmp_path / 'draft')
    (tmp_path / 'draft' / 'checkpoint_1' / 'state' / damaged).unlink()
    flag = f'--gin.DRAFT_CHECKPOINT_PATH={tmp_path / "draft"}'
    error = fails([*flags, flag], 1)
    assert message in error and str(tmp_path / 'draft') in error
    assert [path.name for path in tmp_path.iterdir()] == ['draft']

  def test_nan_in_the_weights(self, fails, flags, tmp_path):
    params = jax.tree.map(jax.numpy.asarray, tiny.params(_CONFIG))
    norm = params['decoder']['decoder_norm']
    norm['scale'] = norm['scale'].at[3].set(np.nan)
    checkpoints.save(tmp_path / 'nan', 1, params)
    flag = f'--gin.CHECKPOINT_PATH={tmp_path / "nan"}'
    error = fails([*flags, flag], 1)
    assert 'NaN' in error and 'decoder/decoder_norm/scale' in error

  @pytest.mark.parametrize(
      ('options', 'message'),
      [
          ({}, "target's vocabulary has 2048 pieces, the draft's 99."),
          ({'eos_id': 3, 'bos_id': 1}, "has eos_id 1, the draft's 3."),
          ({'pad_id': 3, 'bos_id': 0}, "has pad_id 0, the draft's 3."),
      ],
  )
  def test_different_vocabularies(
      self, fails, flags, tmp_path, options, message
  ):
    flag = _vocabulary(tmp_path / 'draft.model', **options)
    assert message in fails([*flags, flag], 1)

  def test_unwritable_output_folder(self, fails, flags, tmp_path):
    (tmp_path / 'file').write_text('mine')
    path = tmp_path / 'file' / 'output'
    error = fails([*flags, f'--gin.EVAL_OUTPUT_DIR={path}'], 1)
    assert f'The output folder {path} cannot be written to' in error
    assert (tmp_path / 'file').read_text() == 'mine'

  def test_empty_line(self, fails, flags, tmp_path):
    own = shutil.copy(bulletins.VOCABULARY_FILE, tmp_path / 'own.model')
    for name in ('train', 'val', 'test_2016_flickr'):
      for language in ('en', 'de'):
        lines = b'one\n\nthree\n' if language == 'en' else b'a\nb\nc\n'
        path = tmp_path / f'{name}.{language}.gz'
        path.write_bytes(gzip.compress(lines))
    task = [f'--gin_file={_MULTI30K}', f'--gin.MULTI30K_DIR={tmp_path}']
    task.append(f'--gin.VOCABULARY_FILE={own}')  # in place of the folder's
    error = fails(['eval', *task, *flags[2:]], 1)
    assert f'{tmp_path / "val.en.gz"}, line 2 is empty' in error

  def test_missing_data_folder(self, fails, flags, tmp_path):
    data = tmp_path / 'mistyped'
    task = [f'--gin_file={_MULTI30K}', f'--gin.MULTI30K_DIR={data}']
    error = fails(['eval', *task, *flags[2:]], 1)
    assert f'There is no folder {data}' in error and '\n' not in error
    assert list(tmp_path.iterdir()) == []

  def test_results_of_an_earlier_job_remain(self, flags, tmp_path, capsys):
    """A command that fails before it begins removes nothing."""
    (tmp_path / 'output').mkdir()
    (tmp_path / 'output' / 'results.jsonl').write_text('{}\n')
    assert main.main([*flags, '--gin.GAMMA=0']) == 1
    assert (tmp_path / 'output' / 'results.jsonl').read_text() == '{}\n'


def _command(flags, cwd, **variables):
  """Runs the command in a separate process, outside the checkout."""
  command = ['-m', 'speculative_t5x.jobs.command_line.main', *flags]
  return _python(command, cwd, **variables)


def _python(arguments, cwd, **variables):
  paths = [str(_ROOT), os.environ.get('PYTHONPATH', '')]
  path = os.pathsep.join(filter(None, paths))
  return subprocess.run(
      [sys.executable, *arguments],
      cwd=cwd,
      env={**os.environ, 'PYTHONPATH': path, **variables},
      capture_output=True,
      text=True,
  )


class TestProcess:

  def test_success(self, folder, flags, tmp_path):
    """Progress is printed on stderr, and only the table on stdout."""
    more = ['--gin.TEMPERATURE=(0.0, 1.0)', '--gin.NUM_EXAMPLES=6']
    # Otherwise libtpu, if installed, would wait for other processes.
    several = {'ALLOW_MULTIPLE_LIBTPU_LOAD': '1'}
    done = _command([*flags, *more], tmp_path, **several)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        'reading bulletins_ende, validation ...',
        'loading the drafter ...',
        f'loading {folder / "target" / "checkpoint_1"} ...',
        *(
            line.format(temperature)
            for temperature in (0, 1)
            for line in (
                'compiling and warming up ...',
                'temperature {}: 3 of 3 batches, 0 s left',
                'temperature {}: scoring ...',
            )
        ),
    ]
    assert 'all 6 greedy outputs are identical' in done.stdout
    text = (tmp_path / 'output' / 'results.jsonl').read_text()
    records = [json.loads(line) for line in text.splitlines()]
    assert [r['temperature'] for r in records] == [0.0, 1.0]
    # Inputs that are too long are counted.
    assert {r['truncated_inputs'] for r in records} == {2}

  def test_bad_input(self, flags, tmp_path):
    flag = f'--gin.CHECKPOINT_PATH={tmp_path / "mistyped"}'
    done = _command([*flags, flag], tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f'error: CHECKPOINT_PATH: No checkpoint at {tmp_path / "mistyped"}'
    )
    assert done.stdout == ''
    assert list(tmp_path.iterdir()) == []

  def test_usage_error(self, tmp_path):
    done = _command(['eval', '--gin_file=no.gin'], tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith('error: there is no gin file no.gin')


@pytest.fixture
def pair_flags():
  """Returns the flags of a check of a pair that passes, without a gin file."""
  return [
      'check-pair',
      f'--gin.CHECKPOINT_PATH={embedded.target_checkpoint()}',
      f'--gin.DRAFT_CHECKPOINT_PATH={embedded.draft_checkpoint()}',
      f'--gin.VOCABULARY_FILE={bulletins.VOCABULARY_FILE}',
  ]


class TestRemotePaths:

  def test_unsupported(self, fails, pair_flags):
    flag = '--gin.CHECKPOINT_PATH=memory:///nowhere'
    assert fails([*pair_flags, flag], 1) == (
        'Paths that begin with memory:// are not supported. Give a local'
        ' path, or one of a bucket (gs://).'
    )

  def test_url_of_a_file_is_a_path(self, pair_flags, tmp_path):
    folder = tmp_path / "it's" / '100%'
    shutil.copytree(embedded.target_checkpoint(), folder / 'a')
    output_dir = folder / 'b c'
    flags = [
        f'--gin.CHECKPOINT_PATH={(folder / "a").as_uri()}',
        f'--gin.VOCABULARY_FILE={pathlib.Path(bulletins.VOCABULARY_FILE).as_uri()}',
        f'--output_dir={output_dir.as_uri()}',
    ]
    assert main.main([*pair_flags, *flags]) == 0
    assert (output_dir / 'check_pair.txt').exists()
    # The path itself has a quote and a percent sign.
    assert main.main([*pair_flags, f'--gin.CHECKPOINT_PATH={folder}/a']) == 0

  def test_error_of_tensorflow(self, fails, pair_flags, monkeypatch):
    """TensorFlow reads buckets."""

    def refuse(*_, **unused):
      raise tf.errors.FailedPreconditionError(None, None, 'no\n such host')

    monkeypatch.setattr(main, '_configure', lambda _: refuse)
    assert fails(pair_flags, 1) == 'no such host'


class TestCheckPair:

  def test_needs_no_gin_file(self, pair_flags, capsys):
    assert main.main(pair_flags) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith('The pair can work.\n') and shown.err == ''

  def test_output_dir(self, pair_flags, tmp_path, capsys):
    folder = tmp_path / 'new' / 'folder'
    assert main.main([*pair_flags, f'--output_dir={folder}']) == 0
    shown = capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == ['check_pair.txt']
    assert (folder / 'check_pair.txt').read_text() == shown

  def test_flags_are_applied(self, pair_flags, capsys):
    assert main.main([*pair_flags, '--gin.DTYPE=bfloat16']) == 0
    shown = capsys.readouterr().out
    assert re.search('dtype to decode in +bfloat16 +bfloat16', shown)

  @pytest.mark.parametrize('files', [[], ['configs/runs/check_pair.gin']])
  def test_configs_are_checked_against_checkpoints(
      self, pair_flags, capsys, files
  ):
    """The command reads its own file first, whatever the order of files."""
    files = ['configs/models/bulletins_target.gin', *files]
    more = [f'--gin_file={file}' for file in files]
    assert main.main([*pair_flags, *more]) == 0
    shown = capsys.readouterr().out
    assert re.search('sizes from +TARGET_CONFIG +the parameters', shown)
    wrong = '--gin.target/t5.T5Config.num_decoder_layers=3'
    assert main.main([*pair_flags, *more, wrong]) == 1

  def test_files_of_an_eval_run(self, capsys):
    flags = ['check-pair', '--gin_file=configs/runs/demo.gin']
    assert main.main(flags) == 0
    shown = capsys.readouterr().out
    assert re.search('sizes from +TARGET_CONFIG +DRAFT_CONFIG', shown)
    assert re.search('lengths of inputs, targets +96, 96', shown)
    assert 'vocabulary: SHA-256' in shown and 'warning' not in shown

  def test_cannot_work(self, pair_flags, capsys):
    """The command prints the report, then one error."""
    flags = [*pair_flags, '--gin.DEVICE_MEMORY_GIB=0.01']
    assert main.main(flags) == 1
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith('error: The pair cannot work. ')
    assert 'of 0.01 GiB. Decode in bfloat16' in line
    assert 'emb_dim' in shown.out and 'can work' not in shown.out

  def test_required_macros_are_named(self, capsys):
    assert main.main(['check-pair']) == 2
    shown = capsys.readouterr()
    assert shown.err == (
        'error: CHECKPOINT_PATH, DRAFT_CHECKPOINT_PATH must be set:'
        ' --gin.CHECKPOINT_PATH=... --gin.DRAFT_CHECKPOINT_PATH=..., or in a'
        ' gin file.\n'
    )

  def test_unknown_task(self, pair_flags, capsys):
    task = '--gin.MIXTURE_OR_TASK_NAME=wmt'
    assert main.main([*pair_flags[:3], task]) == 1
    assert 'There is no task named wmt' in capsys.readouterr().err

  def test_without_accelerator_and_without_tensorflow(
      self, pair_flags, tmp_path
  ):
    """Both are absent, whatever the environment says."""
    code = (
        'import sys; absent = ("tensorflow", "seqio", "tensorflow_datasets");'
        'sys.modules.update(dict.fromkeys(absent));'
        'from speculative_t5x.jobs.command_line import main;'
        'sys.exit(main.main(sys.argv[1:]))'
    )
    flags = ['-c', code, *pair_flags]
    done = _python(flags, tmp_path, JAX_PLATFORMS='absent')
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith('The pair can work.\n')
    assert done.stderr == ''
    # The absent platform and modules would be noticed if used.
    done = _python(
        ['-c', 'import jax; jax.devices()'], tmp_path, JAX_PLATFORMS='absent'
    )
    assert done.returncode != 0


class TestConvert:

  def test_needs_no_gin_file(self, pair_flags, tmp_path, capsys):
    """The converted checkpoint can be used in a pair like the original."""
    flags = [
        'convert',
        f'--gin.CHECKPOINT_PATH={embedded.draft_checkpoint()}',
        f'--gin.OUTPUT_DIR={tmp_path / "converted"}',
        '--gin.DTYPE=float32',
    ]
    assert main.main(flags) == 0
    capsys.readouterr()
    draft = f'--gin.DRAFT_CHECKPOINT_PATH={tmp_path / "converted"}'
    assert main.main([*pair_flags, draft]) == 0
    shown = capsys.readouterr().out
    assert re.search('dtype stored +bfloat16 +float32', shown)

  def test_full_disk(self, fails, tmp_path):
    flags = [f'--gin.CHECKPOINT_PATH={embedded.draft_checkpoint()}']
    output = tmp_path / 'new' / 'converted'
    with full_disk.full_disk(100_000) as reason:
      error = fails(['convert', *flags, f'--output_dir={output}'], 1)
    (step,) = checkpoints.step_folders(embedded.draft_checkpoint())
    assert error.startswith(
        f'The checkpoint {output}/checkpoint_{step} cannot be written'
        f' ({reason}). Nothing of it is left'
    )
    assert '\n' not in error and list(tmp_path.iterdir()) == []

  def test_required_macros_are_named(self, capsys):
    assert main.main(['convert']) == 2
    shown = capsys.readouterr().err
    assert 'CHECKPOINT_PATH, OUTPUT_DIR must be set' in shown


class TestOutputDir:
  """The flag --output_dir works for every job."""

  @pytest.mark.parametrize(('flags', 'macro'), _OUTPUTS)
  @pytest.mark.parametrize('path', ['a/b', "it's", 'None', '%X'])
  def test_sets_the_macro_of_the_job(self, flags, macro, path):
    """The value is the text of the flag, unchanged."""
    _configure(*flags, f'--output_dir={path}')
    assert gin.query_parameter(f'{macro}/macro.value') == path

  def test_the_last_one_counts(self):
    _configure('simulate', '--output_dir=a', '--gin.OUTPUT_DIR=b')
    assert gin.query_parameter('OUTPUT_DIR/macro.value') == 'b'

  def test_the_macro_of_another_job(self, fails, pair_flags):
    message = (
        'no gin file mentions the macro OUTPUT_DIR. Did you mean'
        ' CHECK_OUTPUT_DIR?'
    )
    assert fails([*pair_flags, '--gin.OUTPUT_DIR=x'], 2) == message

  @pytest.mark.parametrize(('flags', 'macro'), _OUTPUTS)
  @pytest.mark.parametrize(
      ('flag', 'shown'),
      [
          ('--output_dir=', "''"),
          ('--output_dir= ', "' '"),
          ("--gin.{macro}=''", "''"),
      ],
  )
  def test_value_that_names_no_folder(
      self, fails, tmp_path, monkeypatch, flags, macro, flag, shown
  ):
    """Otherwise results would be written to the current folder."""
    monkeypatch.chdir(tmp_path)
    assert fails([*flags, flag.replace('{macro}', macro)], 2) == (
        f'{macro} must name a folder, got {shown}. Give one:'
        ' --output_dir=<folder>. A shell variable in it may be unset.'
    )
    assert list(tmp_path.iterdir()) == []

  @pytest.mark.parametrize(
      ('flags', 'folder'),
      [
          (['eval', '--gin_file=configs/runs/demo.gin'], ''),
          (['train', '--gin_file=configs/runs/train_bulletins_draft.gin'], ''),
          (['walltime', '--gin_file=configs/runs/walltime_bulletins.gin'], ''),
          (['methods', '--gin_file=configs/runs/methods.gin'], ''),
          (['simulate'], ''),
          (
              [
                  'convert',
                  f'--gin.CHECKPOINT_PATH={embedded.draft_checkpoint()}',
              ],
              '',
          ),
          (['paper', 'table2'], 'simulated'),
          (['paper', 'table3'], 'measured'),
      ],
  )
  def test_folder_that_another_job_writes_to(
      self, fails, tmp_path, monkeypatch, flags, folder
  ):
    """The job is refused immediately, and the other's files remain."""
    path = tmp_path / folder / 'records' / 'temperature_0.json'
    path.parent.mkdir(parents=True)
    path.write_text('{}')
    monkeypatch.setattr(compilation_cache, 'enable', lambda _: None)
    with folder_lock.hold(tmp_path / folder):
      error = fails([*flags, f'--output_dir={tmp_path}'], 1)
    assert re.fullmatch(
        f'The folder {tmp_path / folder} is in use by another job'
        rf' \(process {os.getpid()} on .*, since .*\). Wait until it ends, or'
        ' give another folder.',
        error,
    )
    assert [x for x in tmp_path.rglob('*') if x.is_file()] == [path]


class TestOwnFlags:

  def test_flags_set_the_macros_of_their_names(self):
    _configure('tpu-preflight', *_TPU_FLAGS)
    for flag in _TPU_FLAGS:
      name, _, value = flag.removeprefix('--').partition('=')
      found = gin.query_parameter(f'{name.upper()}/macro.value')
      assert found == value

  def test_flags_are_required(self, fails):
    message = fails(['tpu-preflight', *_TPU_FLAGS[:2]], 2)
    assert 'TOPOLOGY must be set: --topology=..., or in' in message

  def test_flags_belong_to_one_command(self, fails):
    message = fails(['simulate', '--target=t5_1_1_base'], 2)
    assert "the flag '--target=t5_1_1_base' is unknown" in message


class TestCompilationCache:

  @pytest.fixture
  def enabled(self, monkeypatch):
    """Returns the output folders for which a cache was enabled before a job."""
    folders = []
    monkeypatch.setattr(compilation_cache, 'enable', folders.append)
    return folders

  def test_gets_the_output_folder_of_the_job(self, enabled, flags, tmp_path):
    assert main.main([*flags, '--gin.GAMMA=0']) == 1
    assert enabled == [str(tmp_path / 'output')]

  def test_folder_given_by_another_macro(self, enabled, flags, tmp_path):
    (tmp_path / 'more.gin').write_text(
        "DIR = 'gs://bucket/a'\nEVAL_OUTPUT_DIR = %DIR\n"
    )
    more = [f'--gin_file={tmp_path / "more.gin"}', '--gin.GAMMA=0']
    assert main.main([*flags[:-1], *more]) == 1
    assert enabled == ['gs://bucket/a']

  def test_enabled_for_each_part_of_a_command(self, enabled, tmp_path):
    flags = ['table1', 'figure2', f'--output_dir={tmp_path}']
    assert main.main(['paper', *flags]) == 0
    assert enabled == [str(tmp_path)] * 2

  def test_not_enabled_for_a_job_on_the_host(self, enabled, pair_flags):
    assert main.main(pair_flags) == 0
    assert enabled == []


class TestSimulate:

  def test_needs_no_gin_file(self):
    (command,) = main._parse(['simulate', '--gin.GAMMA=3'])
    assert command.gin_files == ('configs/runs/simulate.gin',)
    assert callable(main._configure(command))

  def test_bad_input_without_tensorflow(self, tmp_path):
    """The job is configured and started, and needs no missing module."""
    code = (
        'import sys; absent = ("tensorflow", "seqio", "tensorflow_datasets");'
        'sys.modules.update(dict.fromkeys(absent));'
        'from speculative_t5x.jobs.command_line import main;'
        'sys.exit(main.main(sys.argv[1:]))'
    )
    flags = ['simulate', '--gin.ALPHA=1.5', f'--output_dir={tmp_path / "x"}']
    done = _python(['-c', code, *flags], tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        'error: alpha must lie in [0, 1], got 1.5. Correct ALPHA.\n'
    )
    assert list(tmp_path.iterdir()) == []


class TestInterrupted:

  @pytest.mark.parametrize('name', _COMMANDS)
  def test_message(self, monkeypatch, capsys, name):
    """Only a command that can be resumed says so."""

    def interrupt(_):
      raise KeyboardInterrupt

    monkeypatch.setattr(main, '_parse', interrupt)
    assert main.main([name]) == 130
    is_resumed = name not in (
        'compare', 'check-pair', 'tpu-preflight', 'make-table', 'convert'
    )  # fmt: skip
    kept = ' Finished work is kept; the same command resumes.'
    shown = capsys.readouterr()
    assert shown.err == f'Interrupted.{kept if is_resumed else ""}\n'
    assert shown.out == ''

  def test_resumes(self, monkeypatch, capsys, tmp_path):
    """The interrupt comes after the first of two configurations."""
    tiny_sizes = dict(emb_dim=16, num_heads=2, num_layers=1, mlp_dim=16)
    monkeypatch.setattr(t5_published, 'SIZES', {'small': tiny_sizes})
    monkeypatch.setattr(t5_published, 'VOCAB_SIZE', 64)
    measured = []

    def measure(programs, batches, settings, name):
      if len(measured) == 1:
        measured.append('interrupted')
        raise KeyboardInterrupt
      measured.append(name.partition('alpha ')[2].partition(',')[0])
      record = dataclasses.replace(settings, c=0.25)
      return types.SimpleNamespace(record=record)

    monkeypatch.setattr(walltimes, 'measure', measure)
    flags = [
        'simulate',
        '--gin.TARGET_SIZE=small',
        '--gin.ALPHA=(0.5, 0.75)',
        f'--output_dir={tmp_path}',
    ]
    assert main.main(flags) == 130
    shown = capsys.readouterr().err
    assert shown.splitlines()[-1].startswith('Interrupted. Finished work')
    assert 'Traceback' not in shown
    assert main.main(flags) == 0
    assert measured == ['0.5', 'interrupted', '0.75']
    err = capsys.readouterr().err
    assert re.search(f'configuration 1 of 2: .*: taken from {tmp_path}', err)


def _functions(*flags):
  return [command.function for command in main._parse(['paper', *flags])]


class TestPaper:

  def test_all_parts_by_default(self):
    """Figures come last, because they show measurements of the tables."""
    assert _functions() == [*_TABLES, *_FIGURES]
    assert _functions('--output_dir=x') == [*_TABLES, *_FIGURES]

  def test_parts_by_name(self):
    assert _functions('table1', '--output_dir=x') == ['table1']
    assert _functions('figure4', 'table2', 'figure4') == ['table2', 'figure4']

  def test_each_part_reads_its_own_file(self):
    for command in main._parse(['paper', '--gin_file=mine.gin']):
      assert command.gin_files == (
          f'configs/paper/{command.function}.gin',
          'mine.gin',
      )

  @pytest.mark.parametrize('name', ['table5', 'paper', 'table1.gin', ''])
  def test_unknown_part(self, fails, name):
    known = ', '.join([*_TABLES, *_FIGURES])
    message = f'there is no {name!r}. Choose from: {known}.'
    assert fails(['paper', 'table1', name], 2) == message

  def test_runs_the_named_part(self, tmp_path, capsys):
    output = tmp_path / 'output'
    assert main.main(['paper', 'table1', f'--output_dir={output}']) == 0
    assert [path.name for path in output.iterdir()] == ['table1.md']
    shown = capsys.readouterr()
    assert (output / 'table1.md').read_text() in shown.out
    assert shown.out.endswith(f'Written: {output / "table1.md"}\n')
    assert shown.err == ''

  def test_runs_several_parts(self, tmp_path, capsys):
    """A setting may belong to only one of them."""
    flags = ['--gin.TARGET_SIZE=base', f'--output_dir={tmp_path}']
    seen = []

    def note(command):
      return lambda: seen.append(command.function)

    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(main, '_configure', note)
      assert main.main(['paper', 'table2', 'table1', *flags]) == 0
    assert seen == ['table1', 'table2']
    assert capsys.readouterr().err == ''

  def test_setting_that_no_part_uses(self, fails):
    flags = ['paper', 'table1', 'figure2', '--gin.TARGET_SIZE=base']
    message = 'no gin file mentions the macro TARGET_SIZE.'
    assert fails(flags, 2) == message

  def test_missing_records(self, fails, tmp_path):
    path = tmp_path / 'no.jsonl'
    flags = ['paper', 'figure2', f'--gin.RECORDS={path}']
    error = fails([*flags, f'--output_dir={tmp_path / "x"}'], 1)
    assert error.startswith(f'{path} cannot be read as run records')
    assert 'results.jsonl of a walltime job' in error and '\n' not in error
    assert list(tmp_path.iterdir()) == []
