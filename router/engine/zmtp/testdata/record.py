"""Records conversations with real libzmq into the *.txt files beside it.

Lines are "> hex" (this client wrote) and "< hex" (libzmq wrote); # is a comment.
Needs pyzmq: python3 record.py
"""
import os
import socket
import struct
import zmq

HERE = os.path.dirname(os.path.abspath(__file__))
CTX = zmq.Context()


def greeting(minor=1, mechanism=b"NULL"):
    return b"\xff" + b"\0" * 8 + b"\x7f" + bytes([3, minor]) + mechanism.ljust(20, b"\0") + b"\0" * 32


def ready(kind, identity):
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    if identity:
        body += b"\x08Identity" + struct.pack(">I", 0)
    return bytes([4, len(body)]) + body


def num(n):
    return struct.pack(">Q", n)


class Talk:
    def __init__(self, name, about):
        self.name, self.lines = name, ["# libzmq %s: %s" % (zmq.zmq_version(), about)]

    def attach(self, c):
        self.c = c
        return self

    def write(self, data):
        self.lines.append("> " + data.hex())
        self.c.sendall(data)

    def read(self, wait=0.4, most=None):
        self.c.settimeout(wait)
        got = b""
        try:
            while most is None or len(got) < most:
                part = self.c.recv(65536 if most is None else most - len(got))
                if not part:
                    break
                got += part
        except OSError:
            pass
        if got:
            self.lines.append("< " + got.hex())
        return got

    def save(self):
        with open(os.path.join(HERE, self.name + ".txt"), "w") as f:
            f.write("\n".join(self.lines) + "\n")


def client(name, about, kind, steps, setup=lambda s: None):
    """A raw client before a libzmq socket that binds."""
    s = CTX.socket(kind)
    setup(s)
    port = s.bind_to_random_port("tcp://127.0.0.1")
    t = Talk(name, about).attach(socket.create_connection(("127.0.0.1", port)))
    steps(t, s)
    t.c.close()
    s.close(0)
    t.save()


def server(name, about, kind, mine, steps=lambda s: None, minor=1, setup=lambda s: None):
    """A raw server before a libzmq socket that connects."""
    l = socket.socket()
    l.bind(("127.0.0.1", 0))
    l.listen()
    s = CTX.socket(kind)
    setup(s)
    s.connect("tcp://127.0.0.1:%d" % l.getsockname()[1])
    c, _ = l.accept()
    t = Talk(name, about).attach(c)
    t.write(greeting(minor))
    t.read(most=64)
    t.write(ready(mine, mine == b"ROUTER"))
    t.read()
    steps(s)
    t.read()
    c.close()
    s.close(0)
    l.close()
    t.save()


def sub(t, s):
    t.write(greeting())
    t.read()
    t.write(ready(b"SUB", False))
    t.write(bytes([0, 3, 1]) + b"kv")
    t.read()
    s.send_multipart([b"kv@pod", num(0), b"payload"])
    s.send_multipart([b"other", num(1), b"not asked for"])
    s.send_multipart([b"kv@pod", num(2), bytes(range(256)) + b"!"])
    s.send_multipart([b"kv", num(3), b""])
    s.send_multipart([b"kv only one frame"])
    t.read()


def heartbeat(t, s):
    t.write(greeting())
    t.read()
    t.write(ready(b"SUB", False))
    t.write(bytes([0, 1, 1]))
    ping = t.read(most=9)
    assert ping[:7] == b"\x04\x07\x04PING", ping
    t.write(b"\x04\x05\x04PONG")
    s.send_multipart([b"", num(0), b"alive"])
    t.read(wait=0.1)


def dealer(topic):
    def steps(t, s):
        t.write(greeting())
        t.read()
        t.write(ready(b"DEALER", True))
        t.write(b"\x01\x00\x00\x08" + num(5))
        frames = s.recv_multipart()
        assert frames[1:] == [b"", num(5)], frames
        for n in (5, 6, 7):
            s.send_multipart([frames[0], b""] + ([b"kv"] if topic else []) + [num(n), b"batch %d" % n])
        s.send_multipart([frames[0], b""] + ([b""] if topic else []) + [b"\xff" * 8, b""])
        t.read()
    return steps


def greet(kind):
    def steps(t, s):
        t.write(greeting())
        t.read()
        if kind:
            t.write(ready(kind, False))
            t.read()
    return steps


def plain(s):
    s.plain_server = True


def beat(s):
    s.setsockopt(zmq.HEARTBEAT_IVL, 150)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5000)
    s.setsockopt(zmq.HEARTBEAT_TTL, 5000)


def on(topic):
    return lambda s: s.setsockopt(zmq.SUBSCRIBE, topic)


client("sub-pub", "SUB before PUB", zmq.PUB, sub)
client("sub-pub-heartbeat", "SUB before PUB with ZMQ_HEARTBEAT_IVL", zmq.PUB, heartbeat, beat)
client("dealer-router", "replay, answers without topic", zmq.ROUTER, dealer(False))
client("dealer-router-topic", "replay, answers with topic", zmq.ROUTER, dealer(True))
client("sub-rep", "SUB before REP, the wrong type", zmq.REP, greet(b"SUB"))
client("sub-plain", "SUB before PUB with PLAIN", zmq.PUB, greet(None), plain)
server("pub-sub", "SUB of libzmq before a PUB of 3.1", zmq.SUB, b"PUB", setup=on(b"kv"))
server("pub-sub-old", "SUB of libzmq before a PUB of 3.0", zmq.SUB, b"PUB", minor=0, setup=on(b"kv"))
server("router-dealer", "DEALER of libzmq before a ROUTER", zmq.DEALER, b"ROUTER", lambda s: s.send_multipart([b"", num(2)]))
server("router-req", "REQ of libzmq before a ROUTER", zmq.REQ, b"ROUTER", lambda s: s.send(num(2)))
