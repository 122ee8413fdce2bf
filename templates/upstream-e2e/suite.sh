#!/bin/bash
# Runs the suite against this kit: bash suite.sh, with options of the suite's `pnpm test` where they are wanted.
# Parts of the suite read their variables before its .env is, so they are set here.
cd "$(dirname "$0")" || exit 1
set -a
. ./suite.env
set +a
# Else a server that the suite has npx start outlives its end, and the suite waits for it.
export npm_config_script_shell=bash
cd ../../.. || exit 1
exec pnpm test "$@" --testnet --facilitators=x402-kit --families=evm '--endpoints=^.*(exact|upto).evm.*'
