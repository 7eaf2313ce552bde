#!/usr/bin/env bash
# What MPICH's launcher calls in the place of ssh: hook.sh [OPTIONS] HOST COMMAND... The host is a namespace.
while [[ "$1" == -* ]]; do
    shift
done
host=$1
shift
exec ip netns exec "$NAMESPACE-${host##*.}" bash -c "$*"
