# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Checks the settings that gcloud needs to create a machine.

#######################################
# Fails if gcloud is missing or not logged in, or if ssh-agent has no key and
# the slice has several hosts: gcloud would wait for a key while the machine is
# billed.
#######################################
check_login() {
  command -v gcloud >/dev/null || fail 'gcloud is not on the PATH. Install the' \
    'Google Cloud CLI: https://cloud.google.com/sdk/docs/install'
  local account
  account="$(gcloud auth list --filter=status:ACTIVE \
    '--format=value(account)' 2>/dev/null)" || account=''
  [[ -n ${account} ]] || fail 'gcloud is not logged in: run gcloud auth login.'
  ((NUM_HOSTS == 1)) || ssh-add -l >/dev/null 2>&1 ||
    fail "gcloud needs a key in ssh-agent to connect to ${NUM_HOSTS} hosts," \
      "and there is none. Run eval \$(ssh-agent) and" \
      'ssh-add ~/.ssh/google_compute_engine.'
}

#######################################
# Takes the project from gcloud's configuration if none was given.
#######################################
fill_in_project() {
  if [[ -z ${PROJECT} ]]; then
    PROJECT="$(gcloud config get-value project 2>/dev/null)" || PROJECT=''
  fi
  if [[ -z ${PROJECT} && ${DRY_RUN} == yes ]]; then
    PROJECT='PROJECT' # a dry run needs no gcloud
  fi
  [[ -n ${PROJECT} ]] || fail 'no project is set. Give --project=..., or run' \
    'gcloud config set project ...'
  [[ ${PROJECT} =~ ^[[:alnum:].:-]+$ ]] ||
    fail "${PROJECT@Q} is not the id of a project. Give --project=..."
}
