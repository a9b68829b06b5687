"""A rank of an engine on real libzmq: PUB beside a ROUTER that replays.

Usage: engine.py PUB_ENDPOINT REPLAY_ENDPOINT old|topic HEARTBEAT_MS BUFFER
With "connect:" before it PUB_ENDPOINT is connected to instead of bound.
Writes the two endpoints that were bound, then does what stdin says, a line each:

  publish N SIZE   N batches, each its number, a colon and SIZE letters
  other            a message of another topic
and answers each line with one. Batches carry the topic kv@pod.
"""
import struct
import sys
import zmq

pub_at, replay_at, framing, heartbeat, buffer = sys.argv[1:]
TOPIC = b"kv@pod"
END = b"\xff" * 8


def num(n):
    return struct.pack(">Q", n)


def say(*words):
    print(*words, flush=True)


ctx = zmq.Context()
pub = ctx.socket(zmq.PUB)
pub.setsockopt(zmq.SNDHWM, 100000)
router = ctx.socket(zmq.ROUTER)
router.setsockopt(zmq.SNDHWM, 100000)
if int(heartbeat):
    for s in (pub, router):
        s.setsockopt(zmq.HEARTBEAT_IVL, int(heartbeat))
        s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 20 * int(heartbeat))
        s.setsockopt(zmq.HEARTBEAT_TTL, 20 * int(heartbeat))
if pub_at.startswith("connect:"):
    pub.connect(pub_at[len("connect:"):])
else:
    pub.bind(pub_at)
router.bind(replay_at)
say(pub.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"), router.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"))

kept, seq = [], 0
poller = zmq.Poller()
poller.register(sys.stdin.fileno(), zmq.POLLIN)
poller.register(router, zmq.POLLIN)


def replay():
    who, empty, start = router.recv_multipart()
    assert empty == b"", empty
    topic = [TOPIC] if framing == "topic" else []
    for n, payload in kept:
        if n >= struct.unpack(">Q", start)[0]:
            router.send_multipart([who, b""] + topic + [num(n), payload])
    router.send_multipart([who, b""] + ([b""] if topic else []) + [END, b""])


while True:
    ready = dict(poller.poll())
    if router in ready:
        replay()
    if sys.stdin.fileno() not in ready:
        continue
    line = sys.stdin.readline()
    if not line:
        break
    words = line.split()
    if words[0] == "publish":
        for _ in range(int(words[1])):
            payload = b"%d:" % seq + b"x" * int(words[2])
            kept.append((seq, payload))
            kept = kept[-int(buffer):]
            pub.send_multipart([TOPIC, num(seq), payload])
            seq += 1
        say("published", seq)
    elif words[0] == "other":
        pub.send_multipart([b"other", num(0), b"not asked for"])
        say("sent")
ctx.destroy(0)
