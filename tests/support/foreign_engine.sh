#!/bin/sh
# A foreign engine for tests of `awari match`. It knows the rules and plays the first legal move.
#
# usage: foreign_engine.sh good|crash|silent|illegal|late|mute|noisy|remarks|blunt [oware]
#
# By oware a move that would capture all of the opponent's stones captures nothing.
#
#   blunt    moves from its first pit with stones, whether that is legal or not
#   crash    ends with status 3 at its second move
#   silent   never answers `go`
#   illegal  moves from a pit of the opponent at its second move
#   late     answers after a second
#   mute     answers nothing at all
#   noisy    writes much that is no answer before it answers
#   remarks  says at `isready` that it has no memory

mode=$1
rules=$2
moves=0

# Sows pit $1 of the board p0..p11, A to F and a to f; the result is q0..q11.
sow() {
    i=0
    while [ $i -lt 12 ]; do eval "q$i=\$p$i"; i=$((i + 1)); done
    eval "n=\$q$1; q$1=0"
    taken=''
    at=$1
    while [ "$n" -gt 0 ]; do
        at=$(((at + 1) % 12))
        [ $at -eq "$1" ] && continue
        eval "q$at=\$((q$at + 1))"
        n=$((n - 1))
    done
    while [ $((at / 6)) -ne $(($1 / 6)) ]; do
        eval "v=\$q$at"
        [ "$v" -eq 2 ] || [ "$v" -eq 3 ] || break
        eval "q$at=0; taken=\"\$taken $at:$v\""
        at=$(((at + 11) % 12))
    done
    [ "$rules" = oware ] || return 0
    row=$((($1 / 6 + 1) % 2 * 6))
    i=0
    while [ $i -lt 6 ]; do
        eval "v=\$q$((row + i))"
        [ "$v" -gt 0 ] && return 0
        i=$((i + 1))
    done
    for pair in $taken; do eval "q${pair%:*}=${pair#*:}"; done
}

# Reads the arguments of `position`.
position() {
    board='4-4-4-4-4-4-4-4-4-4-4-4-0-0-S'
    [ "$1" = fen ] && { board=$2; shift; }
    shift
    played=''
    [ "$1" = moves ] && played=$2
    side=${board##*-}
    i=0
    while [ $i -lt 12 ]; do
        eval "p$i=${board%%-*}"
        board=${board#*-}
        i=$((i + 1))
    done
    while [ -n "$played" ]; do
        rest=${played#?}
        letter=${played%"$rest"}
        played=$rest
        pit=0
        for name in A B C D E F a b c d e f; do
            [ "$name" = "$letter" ] && break
            pit=$((pit + 1))
        done
        sow $pit
        i=0
        while [ $i -lt 12 ]; do eval "p$i=\$q$i"; i=$((i + 1)); done
        if [ $side = S ]; then side=N; else side=S; fi
    done
}

# Sets `best` to the first move that leaves the opponent stones, or to the first one with stones.
choose() {
    best=''
    fallback=''
    if [ $side = S ]; then first=0; names='A B C D E F'; else first=6; names='a b c d e f'; fi
    pit=$first
    for name in $names; do
        eval "stones=\$p$pit"
        if [ "$stones" -gt 0 ] && [ -z "$best" ]; then
            [ -z "$fallback" ] && fallback=$name
            sow $pit
            left=0
            i=0
            while [ $i -lt 6 ]; do eval "left=\$((left + q$(((first + 6 + i) % 12))))"; i=$((i + 1)); done
            [ $left -gt 0 ] && best=$name
        fi
        pit=$((pit + 1))
    done
    [ -z "$best" ] && best=$fallback
}

while read -r command arguments; do
    [ "$mode" = mute ] && continue
    case $command in
    uci) printf 'id name foreign engine\nid author the tests\nuciok\n' ;;
    isready)
        [ "$mode" = remarks ] && echo 'info string cannot allocate the table'
        echo readyok
        ;;
    position)
        # shellcheck disable=SC2086
        position $arguments
        ;;
    go)
        moves=$((moves + 1))
        case $mode in
        crash) [ $moves -gt 1 ] && exit 3 ;;
        silent) continue ;;
        late) sleep 1 ;;
        noisy)
            i=0
            while [ $i -lt 600 ]; do echo "info string $i"; i=$((i + 1)); done
            ;;
        esac
        choose
        [ "$mode" = blunt ] && best=$fallback
        if [ "$mode" = illegal ] && [ $moves -gt 1 ]; then
            if [ $side = S ]; then best=a; else best=A; fi
        fi
        echo "bestmove $best"
        ;;
    quit) exit 0 ;;
    esac
done
