# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # shared with the files that source this one
#
# Reads and checks the command line of launch.sh, and derives settings from it.

NAME='' ZONE='' TYPE='' OUTPUT_DIR='' PROJECT='' RUNTIME=''
PROGRAM='speculative-t5x' CHIPS='all' TIME_LIMIT='2h' QUEUE_LIMIT='24h'
DRY_RUN='no' TRACE='no' SPOT='no' QUEUED='no' KEEP='no'
CREATE_FLAGS=() JOB=()

#######################################
# Reads the flags, and the job's arguments after --.
#######################################
parse_options() {
  while (($# > 0)); do
    case "$1" in
      --) shift && JOB=("$@") && return ;;
      -h | --help) usage && exit 0 ;;
      --name=*) NAME="${1#*=}" ;;
      --zone=*) ZONE="${1#*=}" ;;
      --type=*) TYPE="${1#*=}" ;;
      --output-dir=*) OUTPUT_DIR="${1#*=}" ;;
      --project=*) PROJECT="${1#*=}" ;;
      --version=*) RUNTIME="${1#*=}" ;;
      --program=*) PROGRAM="${1#*=}" ;;
      --chips=*) CHIPS="${1#*=}" ;;
      --time-limit=*) TIME_LIMIT="${1#*=}" ;;
      --queue-limit=*) QUEUE_LIMIT="${1#*=}" ;;
      --create-flag=*) CREATE_FLAGS+=("${1#*=}") ;;
      --dry-run) DRY_RUN='yes' ;;
      --trace) TRACE='yes' ;;
      --spot) SPOT='yes' ;;
      --queued) QUEUED='yes' ;;
      --keep) KEEP='yes' ;;
      *) fail "the option '$1' is unknown. See --help, and give the job's" \
        'arguments after --.' ;;
    esac
    shift
  done
}

#######################################
# Prints the head of launch.sh.
#######################################
usage() {
  awk 'NR > 4 { if (!/^#/) exit; sub(/^# ?/, ""); print }' \
    scripts/cloud_tpu/launch.sh
}

#######################################
# Prints the seconds of a duration such as 90m.
# Returns:
#   1 for another text.
#######################################
seconds_of() {
  [[ $1 =~ ^([1-9][0-9]{0,6})([smh])$ ]] || return 1
  case "${BASH_REMATCH[2]}" in
    s) echo "${BASH_REMATCH[1]}" ;;
    m) echo $((BASH_REMATCH[1] * 60)) ;;
    h) echo $((BASH_REMATCH[1] * 3600)) ;;
  esac
}

#######################################
# Fails for options that cannot work, before anything is created.
#######################################
check_options() {
  [[ -n ${NAME} ]] || fail 'give the machine a name: --name=...'
  [[ -n ${ZONE} ]] || fail 'give the zone of the TPU: --zone=...'
  [[ -n ${TYPE} ]] || fail 'give the type of the TPU: --type=v4-8, for example.'
  [[ -n ${OUTPUT_DIR} ]] || fail 'give the output folder:' \
    '--output-dir=gs://<bucket>/<folder>, or a local folder.'
  ((${#JOB[@]} > 0)) || fail 'give the job to run after --. See --help.'
  [[ ${NAME} =~ ^[a-z]([-a-z0-9]{0,60}[a-z0-9])?$ ]] ||
    fail "--name=${NAME}: give lower-case letters, digits and hyphens."
  read_type "${TYPE}" || fail "--type=${TYPE} is not a TPU type. Give one" \
    'such as v4-8, v5litepod-4, v5p-8 or v6e-8.'
  [[ ${ZONE} =~ ^[a-z0-9-]+-[a-z]$ ]] ||
    fail "--zone=${ZONE} is not a zone. Give one such as us-central2-b."
  check_limits
  check_program
  check_output_dir
  check_create_flags
  check_job
}

check_limits() {
  TIME_LIMIT_S="$(seconds_of "${TIME_LIMIT}")" ||
    fail "--time-limit=${TIME_LIMIT}: give s, m or h, as in 90m."
  QUEUE_LIMIT_S="$(seconds_of "${QUEUE_LIMIT}")" ||
    fail "--queue-limit=${QUEUE_LIMIT}: give s, m or h, as in 6h."
  # The limit includes the setup, and five minutes to collect the output.
  ((TIME_LIMIT_S >= 900)) || fail "--time-limit=${TIME_LIMIT} is too short to" \
    'set up a machine. Give 15m or more.'
}

check_program() {
  case "${PROGRAM}" in
    speculative-t5x)
      ((NUM_HOSTS == 1)) || fail "${TYPE} has ${NUM_HOSTS} hosts, and" \
        'jobs of speculative-t5x run on one host. Choose a type with one' \
        'host, such as v4-8, or run T5X: --program=t5x.eval.'
      ;;
    t5x.train | t5x.eval | t5x.infer) ;;
    *) fail "--program=${PROGRAM} is not one of speculative-t5x, t5x.train," \
      't5x.eval and t5x.infer.' ;;
  esac
  case "${CHIPS}" in
    all) ;;
    1) ((NUM_HOSTS == 1)) || fail "--chips=1 needs a single host, and" \
      "${TYPE} has ${NUM_HOSTS}. Choose a smaller type." ;;
    *) fail "--chips=${CHIPS}: give 1, or omit the flag for all chips." ;;
  esac
}

#######################################
# Fails for a job that would certainly fail on the machine.
#######################################
check_job() {
  local argument file
  [[ ${PROGRAM} != speculative-t5x ]] ||
    [[ $(<speculative_t5x/jobs/command_line/commands.py) == *"    '${JOB[0]}': Job("* ]] ||
    fail "'${JOB[0]}' is not a job of speculative-t5x. See" \
      'speculative-t5x --help.'
  for argument in "${JOB[@]}"; do
    [[ ${argument} != --output_dir=* ]] ||
      fail "${argument} is added by this script. Give --output-dir before --."
    file="${argument#--gin_file=}"
    [[ ${argument} == "${file}" || ${file} == /* || ${file} == *://* ||
      ${PROGRAM} != speculative-t5x ]] ||
      git cat-file -e "HEAD:${file}" 2>/dev/null ||
      fail "${argument}: this commit has no such file."
  done
}

check_output_dir() {
  if [[ ${OUTPUT_DIR} == gs://* ]]; then
    [[ ${OUTPUT_DIR} =~ ^gs://[[:alnum:]_.-]+/[[:alnum:]_./=-]+$ ]] ||
      fail "--output-dir=${OUTPUT_DIR}: give gs://<bucket>/<folder>, without" \
        'spaces and quotes.'
  elif [[ ${OUTPUT_DIR} == *://* ]]; then
    fail "--output-dir=${OUTPUT_DIR}: give gs://<bucket>/<folder>, or a local" \
      'folder.'
  elif ((NUM_HOSTS > 1)); then
    fail "${TYPE} has ${NUM_HOSTS} hosts, which write to one folder. Give" \
      '--output-dir=gs://<bucket>/<folder>.'
  fi
}

check_create_flags() {
  local flag
  for flag in "${CREATE_FLAGS[@]}"; do
    [[ ${flag} == --* ]] ||
      fail "--create-flag=${flag}: give a complete flag, as --network=mine."
    [[ ${flag} != --metadata* ]] || fail "--create-flag=${flag} would replace" \
      'the metadata that the guard needs. Remove it.'
  done
}

#######################################
# Fails if there are uncommitted changes: the machine gets only the commit.
#######################################
check_tree() {
  local changes
  changes="$(git status --porcelain 2>/dev/null)" || fail 'this is not a git' \
    'checkout, and the machine gets a commit. Run this script in a clone.'
  [[ -n ${changes} ]] || return 0
  local line='this checkout has uncommitted changes, and the machine gets only'
  line+=' the commit. Commit them, or stash them: git stash -u.'
  [[ ${DRY_RUN} == yes ]] || fail "${line}"
  echo "warning: ${line}" >&2
}

#######################################
# Sets the variables that depend on the options.
#######################################
settle() {
  WHERE=("--zone=${ZONE}" "--project=${PROJECT}" --quiet)
  BUNDLE="runs/cloud_tpu/${NAME}.bundle"
  WORKER_OUTPUT_DIR='output' # in the home of the one host
  RUNTIME="${RUNTIME:-${RUNTIME_VERSION}}"
  if [[ ${OUTPUT_DIR} == gs://* ]]; then
    WORKER_OUTPUT_DIR="${OUTPUT_DIR}"
  else
    [[ ${OUTPUT_DIR} == /* ]] || OUTPUT_DIR="${CALLED_FROM}/${OUTPUT_DIR}"
    step mkdir -p "${OUTPUT_DIR}" || fail "${OUTPUT_DIR} cannot be created."
  fi
}
