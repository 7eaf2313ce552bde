#!/usr/bin/env bash
# Runs `awari run ARGUMENTS...` on three ranks of MPICH, each in a network namespace of its own, joined by pairs of veths
# and a switch that holds every frame back. The switch has a namespace too: an interface that appeared among those of the
# machine would make its browsers drop their requests (net::ERR_NETWORK_CHANGED).
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
clean() {
    # The switch ends when its last veth goes, and these go with the namespaces.
    for name in 1 2 3 switch; do
        ip netns del "$NAMESPACE-$name" 2>/dev/null || true
    done
}
trap clean EXIT
ip netns add "$NAMESPACE-switch" || exit 77
for rank in 1 2 3; do
    ip netns add "$NAMESPACE-$rank" || exit 77
    ip -n "$NAMESPACE-switch" link add "rank$rank" type veth peer name eth0 netns "$NAMESPACE-$rank" || exit 77
    ip -n "$NAMESPACE-switch" link set "rank$rank" up
    ip -n "$NAMESPACE-$rank" addr add "10.77.0.$rank/24" dev eth0
    ip -n "$NAMESPACE-$rank" link set eth0 up
    ip -n "$NAMESPACE-$rank" link set lo up
    # What the switch sees must be whole frames with checksums.
    ip netns exec "$NAMESPACE-$rank" ethtool -K eth0 tx off rx off tso off gso off gro off >/dev/null
    ip netns exec "$NAMESPACE-switch" ethtool -K "rank$rank" tx off tso off gso off gro off >/dev/null
done
# A launcher that finds no switch for three seconds waits for its ranks for ever.
exec {switch}< <(ip netns exec "$NAMESPACE-switch" python3 "$here/switch.py" "$delay" rank1 rank2 rank3)
read -r -u "$switch"
# The kernel may take a second to call an interface up, and until then UCX does not use it.
for _ in {1..200}; do
    up=0
    for rank in 1 2 3; do
        ip -n "$NAMESPACE-$rank" link show eth0 | grep "state UP" >/dev/null && up=$((up + 1))
    done
    [ $up = 3 ] && break
    sleep 0.05
done
# Everything through the network: ranks of one machine would share memory.
ip netns exec "$NAMESPACE-1" "$mpirun" -launcher ssh -launcher-exec "$here/hook.sh" -iface eth0 \
    -hosts 10.77.0.1,10.77.0.2,10.77.0.3 -ppn 1 -n 3 \
    -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 -genv MPIR_CVAR_NOLOCAL 1 "$@"
