#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a job on a Cloud TPU v4: creates a machine, installs this commit on it,
# runs the job on all its hosts, fetches the output and deletes the machine.
#
#   scripts/cloud_tpu/launch.sh --output-dir=gs://<bucket>/<folder> --dry-run \
#     -- simulate --gin.TARGET_SIZE=xxl --gin.DTYPE=bfloat16
#
# Arguments after -- are the program's, and its output folder is added.
#
#   --output-dir=<folder>  gs:// folder that the job writes to, or a local one,
#                          to which the output of a single host is copied
#   --dry-run              prints all commands and the chip-hours, runs nothing
#   --type=v4-8            also v4-16, v4-32, ...: twice the number of chips
#   --chips=1              lets the job use one chip of its host; default: all
#   --hours=2              until the machine deletes itself at the latest
#   --spot                 takes machines that may be preempted, up to five in
#                          turn: the job resumes from what is in gs://
#   --program=t5x.eval     also t5x.train, t5x.infer; default: speculative-t5x
#   --trace                writes an xprof trace to <output dir>/trace
#   --project=<project>    default: the project of gcloud's configuration
#   --create-flag=<flag>   a further flag of gcloud's create; may be repeated
set -euo pipefail

OUTPUT_DIR='' DRY_RUN='' TYPE='v4-8' CHIPS='all' HOURS=2 SPOT='' TRACE=''
PROGRAM='speculative-t5x' PROJECT='' CREATE_FLAGS=() JOB=() EXISTS='' STARTED=''
readonly ZONE='us-central2-b' # the only one that has v4

fail() { echo "error: $*" >&2 && exit 1; }

parse() {
  while (($# > 0)); do
    local name="${1%%=*}" && name="${name#--}" && name="${name//-/_}"
    case "$1" in
      --) JOB=("${@:2}") && return ;;
      -h | --help) sed -n '5,/^set/{/^set/!s/^# \?//p}' "${SCRIPT}" && exit ;;
      --create-flag=*) CREATE_FLAGS+=("${1#*=}") ;;
      --dry-run | --spot | --trace) printf -v "${name^^}" yes ;;
      --output-dir=* | --type=* | --chips=* | --hours=* | --program=* | \
        --project=*) printf -v "${name^^}" %s "${1#*=}" ;;
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
  matches --type "${TYPE}" 'v4-(8|16|32|64|128|256|512|1024|2048)' \
    'v4-8, v4-16, v4-32, ...'
  NUM_HOSTS=$((${TYPE#v4-} / 8)) # of four chips with two TensorCores each
  matches --chips "${CHIPS}" '1|all' '1, or leave it out'
  matches --hours "${HOURS}" '[1-9][0-9]*' 'a whole number'
  matches --program "${PROGRAM}" 'speculative-t5x|t5x\.(train|eval|infer)' \
    'speculative-t5x, t5x.train, t5x.eval or t5x.infer'
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
  tpu create "${NAME}" "--accelerator-type=${TYPE}" \
    --version=tpu-ubuntu2204-base "${CREATE_FLAGS[@]}" ${SPOT:+--spot} \
    "--metadata-from-file=startup-script=${WORK}/guard"
}

set_up() {
  local unpack='rm -rf speculative_t5x && git clone --quiet source.bundle'
  unpack+=' speculative_t5x && cd speculative_t5x && bash'
  tpu scp "${WORK}/source.bundle" "${NAME}:" --worker=all &&
    tpu ssh "${NAME}" --worker=all \
      "--command=${unpack} scripts/cloud_tpu/worker.sh set_up ${PROGRAM}"
}

run_job() {
  local -a command=(env "CHIPS=${CHIPS}" "END_AT=$((DELETE_AT - 300))")
  # Without this variable, jobs keep compiled programs beside their output.
  [[ -z ${JAX_COMPILATION_CACHE_DIR-} ]] ||
    command+=("JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR}")
  command+=(bash speculative_t5x/scripts/cloud_tpu/worker.sh run
    "--num_hosts=${NUM_HOSTS}" "--output_dir=${FOLDER}" ${TRACE:+--trace})
  STARTED='yes'
  tpu ssh "${NAME}" --worker=all \
    "--command=$(printf '%q ' "${command[@]}" "${PROGRAM}" "${JOB[@]}")"
}

delete() {
  tpu delete "${NAME}" || tpu delete "${NAME}" ||
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
  rm -rf "${WORK}"
  exit "${status}"
}

main() {
  SCRIPT="$(realpath "${BASH_SOURCE[0]}")"
  parse "$@"
  [[ ${OUTPUT_DIR:-gs://} == gs://* ]] ||
    OUTPUT_DIR="$(realpath -m "${OUTPUT_DIR}")"
  cd "$(dirname "${SCRIPT}")/../.."
  check
  WORK="$(mktemp -d)"
  DELETE_AT=$(($(date +%s) + HOURS * 3600))
  # No other run has this name, so that no machine of another run is touched.
  NAME="speculative-$(date +%m%d-%H%M%S)-${RANDOM}"
  echo "${NAME}: ${TYPE}, at most $((NUM_HOSTS * 4 * HOURS)) chip-hours" >&2
  trap finish EXIT
  trap 'exit 143' INT TERM HUP PIPE
  FOLDER="${OUTPUT_DIR}"
  [[ ${FOLDER} == gs://* ]] || FOLDER=../output # beside the host's checkout
  [[ ${FOLDER} == gs://* ]] || step mkdir -p "${OUTPUT_DIR}"
  # This commit with its history, so that run records can name it.
  step git bundle create --quiet "${WORK}/source.bundle" HEAD
  local attempt status=0
  for attempt in 1 2 3 4 5; do
    create || exit
    { set_up && run_job; } || status=$?
    [[ ${status} != 0 && -n ${SPOT} && PREEMPTED == \
      "$(tpu describe "${NAME}" '--format=value(state)')" ]] || exit "${status}"
    echo "The machine of attempt ${attempt} was preempted." >&2
    delete && status=0
  done
  fail 'five machines were preempted. The same command resumes the job.'
}

main "$@"
