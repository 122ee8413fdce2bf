#!/bin/bash
# In a folder that is no part of the suite's pnpm workspace: its installations leave the package alone.
cd "$(dirname "$0")/kit" && npm install --install-links --no-audit --no-fund
