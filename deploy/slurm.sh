#!/bin/bash
# A sweep as a Slurm array: every task does its share of the runs, all into one folder on shared storage.
#
#   sbatch --array=0-15 deploy/slurm.sh grid.toml /shared/runs/grid
#
# Any range works, also 1-16: tasks count from the first. Submit it again after a time limit or a failure: finished runs are
# not repeated, and interrupted ones resume from their last checkpoint. Then, on any machine that sees the folder:
#
#   fedtvd report /shared/runs/grid
#SBATCH --job-name=fedtvd
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:INT@60
set -euo pipefail
config="${1:?the configuration with a [sweep] table}"
out="${2:?a folder on storage that all nodes share}"

# FEDTVD_DATA names the folder with data sets, on shared storage too; the embedded fmnist-mini needs none.
# Slurm sends INT a minute before the time limit: the rounds in progress are finished and saved.
fedtvd sweep "$config" --out "$out" --shards "$SLURM_ARRAY_TASK_COUNT" --workers "${SLURM_CPUS_PER_TASK:-1}" --quiet &
sweep=$!
trap 'kill -INT "$sweep"' INT
# wait returns early when the trap has run; the second one waits for the saving.
wait "$sweep" || wait "$sweep"
