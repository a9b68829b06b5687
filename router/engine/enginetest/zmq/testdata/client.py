"""Clients on real libzmq for a publisher under test.

client.py sub ENDPOINT TOPIC COUNT     COUNT batches, a line "topic number size" each
client.py replay ENDPOINT FROM         the answers to their end, a line "number size" each
"""
import struct
import sys
import zmq

kind, endpoint, what = sys.argv[1:4]
ctx = zmq.Context()
if kind == "sub":
    s = ctx.socket(zmq.SUB)
    s.setsockopt(zmq.HEARTBEAT_IVL, 50)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5000)
    s.connect(endpoint)
    s.setsockopt(zmq.SUBSCRIBE, what.encode())
    for _ in range(int(sys.argv[4])):
        topic, number, payload = s.recv_multipart()
        print(topic.decode(), struct.unpack(">Q", number)[0], len(payload), flush=True)
else:
    s = ctx.socket(zmq.DEALER)
    s.connect(endpoint)
    s.send_multipart([b"", struct.pack(">Q", int(what))])
    while True:
        *_, number, payload = s.recv_multipart()
        if number == b"\xff" * 8:
            break
        print(struct.unpack(">Q", number)[0], len(payload), flush=True)
ctx.destroy(0)
