"""A switch between network interfaces that holds every frame back: switch.py SECONDS INTERFACE...

Prints a line when it takes frames, and ends when an interface goes. (The kernel's own way, netem, is not in every kernel.)"""

import heapq
import select
import socket
import sys
import time

ALL_PROTOCOLS = 3
OUTGOING = 4
FRAME_BYTES_MAX = 1 << 16
# Linux: beyond what the system allows by default.
SO_SNDBUFFORCE, SO_RCVBUFFORCE, BUFFER_BYTES = 32, 33, 16 << 20


def port(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(ALL_PROTOCOLS))
    opened.bind((name, 0))
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    return opened


def main(delay, names):
    ports = [port(name) for name in names]
    print("ready", flush=True)
    # By hardware address, the port behind which it is; and the frames on their way, by the time they leave.
    behind, travelling, number = {}, [], 0
    while True:
        now = time.monotonic()
        while travelling and travelling[0][0] <= now:
            _, _, frame, targets = heapq.heappop(travelling)
            for target in targets:
                target.send(frame)
        rest = max(0.0, travelling[0][0] - now) if travelling else 1.0
        for source in select.select(ports, [], [], rest)[0]:
            while True:
                try:
                    frame, address = source.recvfrom(FRAME_BYTES_MAX)
                except BlockingIOError:
                    break
                if address[2] == OUTGOING:
                    continue
                behind[frame[6:12]] = source
                known = behind.get(frame[:6])
                targets = [known] if known else [other for other in ports if other is not source]
                number += 1
                heapq.heappush(travelling, (time.monotonic() + delay, number, frame, targets))


try:
    main(float(sys.argv[1]), sys.argv[2:])
except OSError:
    # Its interfaces have gone.
    pass
