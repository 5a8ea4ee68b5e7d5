"""How messages travel, in every version of MQTT."""

import asyncio

from tidegate_bench.interop.behaviour import END, SETTLE_S, Behaviour, Observation, in_any_order, seen
from tidegate_bench.interop.scene import Scene

LARGE_BYTES = (70_000, 1024**2 - 2048)
MANY = 300


async def _quality(scene: Scene, qos: int) -> Observation:
    listener = scene.peer("listener")
    opened = await listener.open(("a/b", qos))
    acknowledged = await scene.send("a/b", b"one", b"two", b"three", qos=qos)
    heard = await listener.hears(3)
    return {"code": opened.code, "granted": opened.granted, "acknowledged": acknowledged, "heard": seen(heard)}


async def qos_0(scene: Scene) -> Observation:
    return await _quality(scene, 0)


async def qos_1(scene: Scene) -> Observation:
    return await _quality(scene, 1)


async def qos_2(scene: Scene) -> Observation:
    return await _quality(scene, 2)


async def qos_is_the_lower_of_both(scene: Scene) -> Observation:
    """Published at one quality, subscribed at another."""
    observed: Observation = {}
    for subscribed in (0, 1, 2):
        listener = await scene.listener(f"listener-{subscribed}", (f"t{subscribed}", subscribed))
        for published in (0, 1, 2):
            await scene.send(f"t{subscribed}", b"at %d" % published, qos=published)
            await listener.hears(published + 1)
        observed[f"subscribed at {subscribed}"] = in_any_order(listener.heard)
    return observed


async def retained(scene: Scene) -> Observation:
    live = await scene.listener("live", ("r/#", 1))
    await scene.send("r/a", b"old", qos=1, retain=True)
    await scene.send("r/a", b"new", qos=1, retain=True)
    await scene.send("r/b", b"other", qos=1, retain=True)
    await live.hears(3)
    late = await scene.listener("late", ("r/#", 1))
    await late.hears(2)
    await scene.send("r/a", b"", qos=1, retain=True)
    await live.hears(4)
    await late.hears(3)
    after = await scene.listener("after", ("r/#", 1))
    await after.hears(1)
    await scene.send("r/end", END, qos=1)
    return {
        "live": seen(await live.hears_of(END)),
        "late": in_any_order(await late.hears_of(END)),
        "after it was cleared": seen(await after.hears_of(END)),
    }


async def retained_again_at_every_subscription(scene: Scene) -> Observation:
    await scene.send("r/a", b"kept", qos=1, retain=True)
    listener = scene.peer("listener")
    await listener.open()
    codes = [await listener.subscribe(("r/a", 1))]
    await listener.hears(1)
    codes.append(await listener.subscribe(("r/a", 1)))
    return {"codes": codes, "heard": seen(await listener.hears(2))}


async def wildcards(scene: Scene) -> Observation:
    one = await scene.listener("one", ("w/+/x", 1))
    all_below = await scene.listener("all", ("w/#", 1))
    for topic in ("w", "w/1/x", "w/2/x", "w/2/y", "w/1/x/deep", "other/1/x", "w//x"):
        await scene.send(topic, topic.encode(), qos=1)
    await scene.send("w/end/x", END, qos=1)
    return {"+": seen(await one.hears_of(END)), "#": seen(await all_below.hears_of(END))}


async def overlapping_subscriptions(scene: Scene) -> Observation:
    listener = await scene.listener("listener", ("o/+", 1), ("o/#", 1), ("o/a", 1))
    await scene.send("o/a", b"how often", qos=1)
    await scene.send("o/b", b"and this", qos=1)
    await asyncio.sleep(SETTLE_S)
    await scene.send("o/a", END, qos=1)
    await listener.hears_of(END)
    await asyncio.sleep(SETTLE_S)
    return {"heard": in_any_order(listener.heard)}


async def large_messages(scene: Scene) -> Observation:
    listener = await scene.listener("listener", ("l", 1))
    for count in LARGE_BYTES:
        await scene.send("l", bytes(index * 7 % 251 for index in range(count)), qos=1)
    return {"heard": seen(await listener.hears(len(LARGE_BYTES)))}


async def unsubscribe(scene: Scene) -> Observation:
    listener = await scene.listener("listener", ("u/a", 1), ("u/b", 1))
    await scene.send("u/a", b"before", qos=1)
    await listener.hears(1)
    codes = await listener.unsubscribe("u/a")
    await scene.send("u/a", b"after", qos=1)
    await scene.send("u/b", END, qos=1)
    return {"unsubscribed": codes, "heard": seen(await listener.hears_of(END))}


async def empty_payload(scene: Scene) -> Observation:
    listener = await scene.listener("listener", ("e", 1))
    await scene.send("e", b"", qos=0)
    await scene.send("e", b"", qos=1)
    return {"heard": in_any_order(await listener.hears(2))}


async def any_bytes(scene: Scene) -> Observation:
    """A topic beyond ASCII, a payload that is no text."""
    listener = await scene.listener("listener", ("grüße/+", 1))
    await scene.send("grüße/日本", bytes(range(256)), qos=1)
    return {"heard": seen(await listener.hears(1))}


async def many_in_order(scene: Scene) -> Observation:
    listener = await scene.listener("listener", ("m", 1))
    acknowledged = await scene.send("m", *(b"%d" % number for number in range(MANY)), qos=1)
    heard = await listener.hears(MANY)
    return {
        "acknowledged": len([code for code in acknowledged if code != "no answer"]),
        "numbers": [int(message.payload) for message in heard],
        "qos": sorted({message.qos for message in heard}),
    }


async def own_messages(scene: Scene) -> Observation:
    """A client that subscribes to what it publishes hears itself."""
    client = scene.peer("self")
    await client.open(("own", 1))
    await client.publish("own", b"hello me", qos=1)
    return {"heard": seen(await client.hears(1))}


MESSAGES: dict[str, Behaviour] = {
    "QoS 0": qos_0,
    "QoS 1": qos_1,
    "QoS 2": qos_2,
    "lower QoS of both": qos_is_the_lower_of_both,
    "retained": retained,
    "retained at every subscription": retained_again_at_every_subscription,
    "wildcards": wildcards,
    "overlapping subscriptions": overlapping_subscriptions,
    "large messages": large_messages,
    "unsubscribe": unsubscribe,
    "empty payload": empty_payload,
    "any bytes": any_bytes,
    "many in order": many_in_order,
    "own messages": own_messages,
}
