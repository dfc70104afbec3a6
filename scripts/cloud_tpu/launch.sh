#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a job on a Cloud TPU: creates a machine, installs this commit on it,
# runs the job on all its hosts, fetches the output and deletes the machine.
#
#   scripts/cloud_tpu/launch.sh --output-dir=gs://<bucket>/<folder> --dry-run \
#     -- simulate --gin.TARGET_SIZE=xxl --gin.DRAFT_SIZE=small
#
# Arguments after -- are the program's, and its output folder is added. The
# machine gets TFDS_DATA_DIR and JAX_COMPILATION_CACHE_DIR if they name buckets.
#
#   --output-dir=<folder>  gs:// folder that the job writes to, or a local one,
#                          to which the output of a single host is copied
#   --dry-run              prints all commands and the chip-hours, runs nothing
#   --type=v4-8            also v4-16, v5p-8, v5litepod-4, v6e-1, ...
#   --zone=us-central2-b   the only one with v4; to be given for other types
#   --chips=1              lets the job use one chip of its host; default: all
#   --hours=2              until the machine deletes itself at the latest
#   --spot                 resumes on another machine after a preemption
#   --program=t5x.eval     also t5x.train, t5x.infer; default: speculative-t5x
#   --trace                writes an xprof trace to <output dir>/trace
#   --project=<project>    default: the project of gcloud's configuration
#   --create-flag=<flag>   a further flag of gcloud's create; may be repeated
set -euo pipefail && shopt -s extglob

OUTPUT_DIR='' DRY_RUN='' TYPE=v4-8 ZONE='' CHIPS=all HOURS=2 SPOT='' TRACE=''
PROGRAM=speculative-t5x PROJECT='' CREATE_FLAGS=() JOB=() EXISTS='' STARTED=''
NUM_HOSTS=1 ENVIRONMENT=()

fail() { echo "error: $*" >&2 && exit 1; }

parse() {
  while (($# > 0)); do
    local name="${1%%=*}" && name="${name#--}" && name="${name//-/_}"
    case "$1" in
      --) JOB=("${@:2}") && return ;;
      -h | --help) sed -n '5,/^set/{/^set/!s/^# \?//p}' "${SCRIPT}" && exit ;;
      --create-flag=*) CREATE_FLAGS+=("${1#*=}") ;;
      --dry-run | --spot | --trace) printf -v "${name^^}" yes ;;
      --output-dir=* | --type=* | --zone=* | --chips=1 | --hours=* | \
        --program=t5x.@(train|eval|infer) | --project=*)
        printf -v "${name^^}" %s "${1#*=}" ;;
      *) fail "the option '$1' is unknown. See --help." ;;
    esac
    shift
  done
}

matches() { # <option> <its value> <pattern> <what to give>
  [[ $2 =~ ^($3)$ ]] || fail "$1='$2': give $4."
}

# Refuses what cannot work before anything is created and billed.
check() {
  ((${#JOB[@]} > 0)) || fail 'give the job to run after --. See --help.'
  matches --output-dir "${OUTPUT_DIR}" 'gs://[^/]+/.+|[^:]+' \
    'gs://<bucket>/<folder>, or a local folder'
  matches --type "${TYPE}" '(v4|v5p|v5litepod|v6e)-[1-9][0-9]*' 'v4-8, ...'
  NUM_CHIPS="${TYPE#*-}"
  case "${TYPE}" in # v4 and v5p count TensorCores, two per chip
    v4-*) VERSION=tpu-ubuntu2204-base NUM_CHIPS=$((NUM_CHIPS / 2)) ;;
    v5p-*) VERSION=v2-alpha-tpuv5 NUM_CHIPS=$((NUM_CHIPS / 2)) ;;
    v5litepod-*) VERSION=v2-alpha-tpuv5-lite ;;
    v6e-*) VERSION=v2-alpha-tpuv6e ;;
  esac
  # A host has four chips, or all eight of types of that number.
  [[ ${TYPE} == v@(5litepod|6e)-8 ]] || NUM_HOSTS=$(((NUM_CHIPS + 3) / 4))
  [[ ${TYPE} != v4-* ]] || ZONE="${ZONE:-us-central2-b}"
  matches --zone "${ZONE}" '[a-z]+-[a-z]+[0-9]+-(ai[0-9]+)?[a-z]' \
    "a zone that has ${TYPE}, such as us-east5-b or us-south1-ai1b"
  matches --hours "${HOURS}" '[1-9][0-9]*' 'a whole number'
  ((NUM_HOSTS == 1)) || [[ ${PROGRAM} == t5x.* && ${CHIPS} == all &&
    ${OUTPUT_DIR} == gs://* ]] || fail "${TYPE} has ${NUM_HOSTS} hosts: they" \
    'need --program=t5x..., --output-dir=gs://... and all chips.'
  [[ -z ${SPOT} || ${OUTPUT_DIR} == gs://* ]] ||
    fail '--spot needs --output-dir=gs://..., from where the job resumes.'
  [[ -n ${DRY_RUN} || -z $(git status --porcelain) ]] || fail 'this' \
    'checkout has uncommitted changes, and the machine gets the commit.'
  PROJECT="${PROJECT:-$(gcloud config get-value project 2>/dev/null || true)}"
  [[ -z ${DRY_RUN} ]] || PROJECT="${PROJECT:-PROJECT}"
  matches --project "${PROJECT}" '[a-zA-Z0-9.:-]+' 'the id of a project'
  local name
  for name in "${JOB[@]}"; do
    [[ ${name} != --gin_file=!(gs:*|t5x/*) || ${JOB[*]} == *paths=@(gs:|/)* ]] ||
      git cat-file -e "HEAD:${name#*=}" 2>/dev/null ||
      fail "the machine gets this commit only, which lacks '${name#*=}'."
  done
  for name in "${JOB[@]}"; do # the machine has no other files
    [[ ${name#--gin_file=} == "${name}" &&
      ${name#*=} =~ ^[\"\']?(/|~|\.\./|file:) ]] &&
      fail "'${name}' is on this computer, not on the machine: give gs://..."
  done
  # Misspelt settings, where the package is installed here.
  [[ ${PROGRAM} != speculative-t5x || ${JOB[*]} == *gs:*.gin* ||
    ! -x .venv/bin/python ]] || .venv/bin/python - "${JOB[@]}" <<'END' || exit 1
import sys
from speculative_t5x.jobs.command_line import commands, flags, macro_names
try:
  macro_names.check(flags.parse(sys.argv[1:]))
except (commands.UsageError, ValueError) as error:
  sys.exit(f'error: {error}')
END
  for name in TFDS_DATA_DIR JAX_COMPILATION_CACHE_DIR; do
    [[ ${!name-} != gs://* ]] || ENVIRONMENT+=("${name}=${!name}")
    [[ ${!name-} == @(gs://*|) ]] ||
      echo "${name} is not in a bucket: the machine does not get it." >&2
  done
  # gcloud would wait for a key while the machine is billed.
  ((NUM_HOSTS == 1)) || [[ -n ${DRY_RUN} ]] || ssh-add -l >/dev/null ||
    fail 'several hosts need a key: ssh-add ~/.ssh/google_compute_engine.'
}

# Shows a command and runs it, unless this is a dry run: in the background, so
# that a signal is handled at once and not when the command has ended.
step() {
  printf '+%s\n' "$(printf ' %q' "$@")" >&2
  [[ -z ${DRY_RUN} ]] || return 0
  "$@" &
  wait $!
}

tpu() { # <verb> <arguments>
  step timeout "$((HOURS * 3600 + 600))" gcloud compute tpus tpu-vm "$@" \
    "--zone=${ZONE}" "--project=${PROJECT}" --quiet
}

# Runs a command on all hosts. One that no longer answers is given up.
on_hosts() {
  tpu ssh "${NAME}" --worker=all --ssh-flag=-oServerAliveInterval=40 \
    "--command=$1"
}

# Prints the state of the machine, or nothing if there is none.
state() { tpu list "--filter=name~/${NAME}$" '--format=value(state)'; }

# Creates a machine that deletes itself at the limit, even if this computer is
# gone by then. The time is absolute: a restart of the machine adds nothing.
create() {
  cat >"${WORK}/guard" <<END
#!/bin/bash
left=\$((${DELETE_AT} - \$(date +%s)))
systemd-run --unit=cloud-tpu-guard --on-active="\$((left > 1 ? left : 1))s" \\
  --setenv="PATH=\${PATH}:/snap/bin" bash -c 'until gcloud compute tpus tpu-vm \\
  delete ${NAME} --zone=${ZONE} --project=${PROJECT} --quiet; do sleep 60; done'
END
  EXISTS='yes' # perhaps even if the command fails
  tpu create "${NAME}" "--accelerator-type=${TYPE}" "--version=${VERSION}" \
    "${CREATE_FLAGS[@]}" ${SPOT:+--spot} \
    "--metadata-from-file=startup-script=${WORK}/guard"
}

# Installs this commit and runs the job.
work() {
  local set_up='rm -rf speculative_t5x && git clone -q source.bundle'
  set_up+=' speculative_t5x && bash speculative_t5x/scripts/cloud_tpu/set_up.sh'
  set_up+=' && systemctl is-active cloud-tpu-guard.timer || { echo error:'
  set_up+=' set-up failed, or no timer deletes the machine. && exit 1; }'
  tpu scp "${WORK}/source.bundle" "${NAME}:" --worker=all &&
    on_hosts "${set_up}" && STARTED='yes' && on_hosts "$(printf '%q ' env \
      "END_AT=$((DELETE_AT - 300))" "${ENVIRONMENT[@]}" \
      bash speculative_t5x/scripts/cloud_tpu/run.sh ${TRACE:+--trace} \
      "--num_hosts=${NUM_HOSTS}" "--chips=${CHIPS}" \
      "--output_dir=${FOLDER}" "${PROGRAM}" "${JOB[@]}")"
}

delete() {
  tpu delete "${NAME}" || tpu delete "${NAME}" ||
    [[ -z $(state || echo unknown) ]] || # it could not be created
    fail "${NAME} is billed until it deletes itself. Run the last command."
  EXISTS=''
}

# Fetches the output and deletes the machine, however this script ends.
# shellcheck disable=SC2329  # a trap runs it
finish() {
  local status=$?
  set +e
  trap '' EXIT INT TERM HUP PIPE
  jobs -p | xargs --no-run-if-empty kill 2>/dev/null
  wait
  [[ -z ${STARTED} || ${FOLDER} != ../output ]] || tpu scp --recurse \
    "${NAME}:output/*" "${NAME}:run/log.txt" "${OUTPUT_DIR}" --worker=0 ||
    status="$((status ? status : 1))"
  [[ -z ${EXISTS} ]] || (delete) || status=1
  rm -rf "${WORK}" && exit "${status}"
}

main() {
  SCRIPT="$(realpath "${BASH_SOURCE[0]}")"
  parse "$@"
  [[ ${OUTPUT_DIR:-gs://} == gs://* ]] ||
    OUTPUT_DIR="$(realpath -m "${OUTPUT_DIR}")"
  cd "$(dirname "${SCRIPT}")/../.."
  check
  DELETE_AT=$(($(date +%s) + HOURS * 3600)) WORK="$(mktemp -d)"
  # No other run has this name, so that no machine of another run is touched.
  NAME="speculative-$(date +%m%d-%H%M%S)-${RANDOM}"
  echo "${NAME}: ${TYPE}, at most $((NUM_CHIPS * HOURS)) chip-hours" >&2
  trap finish EXIT && trap 'exit 143' INT TERM HUP PIPE
  FOLDER="${OUTPUT_DIR}" # for a local one, one beside the host's checkout
  [[ ${FOLDER} == gs://* ]] ||
    { FOLDER=../output && step mkdir -p "${OUTPUT_DIR}"; }
  # This commit with its history, so that run records can name it.
  step git bundle create --quiet "${WORK}/source.bundle" HEAD
  local attempt status
  for attempt in 1 2 3 4 5; do
    create || exit
    work && exit
    status=$?
    [[ -n ${SPOT} && $(state || true) != @(READY|) ]] || exit "${status}"
    echo "Machine ${attempt} was preempted." >&2 && delete
  done
  fail 'five machines were preempted. The same command resumes the job.'
}

main "$@"
