#!/usr/bin/env bash
# Runs `awari run ARGUMENTS...` on three ranks of MPICH, each in a network namespace of its own, joined by pairs of veths
# and a switch that holds every frame back.
#
#     run.sh DELAY_SECONDS AWARI ARGUMENTS...
#
# Needs root, iproute2, ethtool, Python and MPICH (`MPIRUN`, or mpirun); 77 where one of them is missing, which is all that
# `run.sh --check` looks for.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
delay=$1
shift
[ "$(id -u)" = 0 ] || exit 77
mpirun=${MPIRUN:-mpirun}
for tool in ip ethtool python3 "$mpirun"; do
    command -v "$tool" >/dev/null || exit 77
done
"$mpirun" --version | grep HYDRA >/dev/null || exit 77
if [ "$delay" = --check ]; then
    ip netns add "awari$$-check" 2>/dev/null && ip netns del "awari$$-check" || exit 77
    exit 0
fi
export NAMESPACE=awari$$
# Names of interfaces have at most 15 letters.
veth=aw$$v
clean() {
    # The switch ends when its last veth goes, and these go with the namespaces.
    for rank in 1 2 3; do
        ip netns del "$NAMESPACE-$rank" 2>/dev/null || true
    done
}
trap clean EXIT
for rank in 1 2 3; do
    ip netns add "$NAMESPACE-$rank" || exit 77
    ip link add "$veth$rank" type veth peer name eth0 netns "$NAMESPACE-$rank" || exit 77
    ip link set "$veth$rank" up
    ip -n "$NAMESPACE-$rank" addr add "10.77.0.$rank/24" dev eth0
    ip -n "$NAMESPACE-$rank" link set eth0 up
    ip -n "$NAMESPACE-$rank" link set lo up
    # What the switch sees must be whole frames with checksums.
    ip netns exec "$NAMESPACE-$rank" ethtool -K eth0 tx off rx off tso off gso off gro off >/dev/null
    ethtool -K "$veth$rank" tx off tso off gso off gro off >/dev/null
done
# A launcher that finds no switch for three seconds waits for its ranks for ever.
exec {switch}< <(python3 "$here/switch.py" "$delay" "${veth}1" "${veth}2" "${veth}3")
read -r -u "$switch"
# Everything through the network: ranks of one machine would share memory.
ip netns exec "$NAMESPACE-1" "$mpirun" -launcher ssh -launcher-exec "$here/hook.sh" -iface eth0 \
    -hosts 10.77.0.1,10.77.0.2,10.77.0.3 -ppn 1 -n 3 \
    -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 -genv MPIR_CVAR_NOLOCAL 1 "$@"
