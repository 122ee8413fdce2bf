#!/bin/bash
# The suite runs this file, or only takes the line below out of it: it has to begin with `node`.
node start.mjs
