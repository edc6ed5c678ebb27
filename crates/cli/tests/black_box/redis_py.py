"""What a program does with redis-py, on the server whose port it is told. Says "done" at the end."""

import sys
import threading

import redis

port = int(sys.argv[1])
text = redis.Redis(port=port, decode_responses=True)
raw = redis.Redis(port=port)

assert text.ping() and text.flushdb()
assert text.set("name", "välue") and text.get("name") == "välue"
assert text.set("name", "other", nx=True) is None and text.get("none") is None
blob = bytes(range(256)) * 4_000
assert raw.set("blob", blob) and raw.get("blob") == blob
assert raw.getrange("blob", 255, 257) == blob[255:258] and raw.strlen("blob") == len(blob)
assert text.mset({f"k{number}": number for number in range(100)})
assert text.mget("k7", "none", "k99") == ["7", None, "99"]
assert text.incrby("count", 5) == 5 and text.incrbyfloat("count", 0.5) == 5.5
assert text.delete("k0", "k1", "none") == 2 and text.exists("k1", "k2") == 1

# All keys once, with a pattern too.
assert sorted(text.scan_iter("k*", count=7)) == sorted(f"k{number}" for number in range(2, 100))
assert text.dbsize() == 98 + 3

assert text.set("brief", "x", px=60_000) and 0 < text.pttl("brief") <= 60_000
assert text.persist("brief") and text.ttl("brief") == -1 and text.ttl("none") == -2

assert text.hset("hash", mapping={"a": "1", "b": "2"}) == 2 and text.hincrby("hash", "a", 4) == 5
assert text.hgetall("hash") == {"a": "5", "b": "2"} and text.hmget("hash", "b", "c") == ["2", None]
assert dict(text.hscan_iter("hash")) == {"a": "5", "b": "2"} and text.hdel("hash", "a") == 1
assert text.zadd("set", {"x": 1.5, "y": -2, "z": 1e300}) == 3
assert text.zrange("set", 0, -1, withscores=True) == [("y", -2.0), ("x", 1.5), ("z", 1e300)]
assert text.zrangebyscore("set", "-inf", 2, start=1, num=1) == ["x"] and text.zrank("set", "z") == 2
assert text.type("set") == "zset" and text.type("hash") == "hash" and text.type("name") == "string"

# A transaction, one that others overtake, and a pipeline.
with text.pipeline() as pipe:
    pipe.set("a", 1).incr("a").hget("hash", "b")
    assert pipe.execute() == [True, 2, "2"]
with text.pipeline() as pipe:
    pipe.watch("a")
    text.set("a", 9)
    pipe.multi()
    pipe.set("a", 10)
    try:
        pipe.execute()
        raise SystemExit("a transaction was done that others had overtaken")
    except redis.WatchError:
        assert text.get("a") == "9"
with text.pipeline(transaction=False) as pipe:
    for number in range(1_000):
        pipe.set(f"p{number}", number)
    pipe.get("p999")
    assert pipe.execute()[-1] == "999"

# Databases do not see each other; clients do.
other = redis.Redis(port=port, db=3, client_name="other")
assert other.get("name") is None and other.client_getname() == "other"
assert any(client["name"] == "other" for client in text.client_list())
assert text.info("server")["redis_version"] and text.config_get("maxclients")
assert isinstance(text.slowlog_get(), list) and text.time()[0] > 1_700_000_000

try:
    text.lpush("list", 1)
    raise SystemExit("there are lists")
except redis.ResponseError as error:
    assert "unknown command" in str(error)
try:
    text.hget("name", "a")
    raise SystemExit("a string is a hash")
except redis.ResponseError as error:
    assert str(error).startswith("WRONGTYPE")


def count():
    for _ in range(200):
        text.incr("shared")


threads = [threading.Thread(target=count) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert text.get("shared") == "1600"
print("done")
