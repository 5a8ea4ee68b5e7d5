"""What only MQTT 5 knows."""

import asyncio

from tidegate_bench.interop.behaviour import END, SETTLE_S, Behaviour, Observation, in_any_order, seen
from tidegate_bench.interop.peer import Extras, NotApplicableError, WillMessage
from tidegate_bench.interop.scene import Scene

# What a gateway announces for itself.
_GATEWAYS_OWN = {"MaximumPacketSize", "ServerKeepAlive", "maximum_packet_size", "server_keep_alive"}


async def _carried(scene: Scene, extras: Extras) -> Observation:
    listener = await scene.listener("listener", ("p", 1))
    await scene.send("p", b"with properties", qos=1, extras=extras)
    return {"heard": seen(await listener.hears(1))}


async def user_properties(scene: Scene) -> Observation:
    return await _carried(scene, Extras(user=(("place", "hall"), ("unit", "kelvin"), ("place", "roof"))))


async def content_type(scene: Scene) -> Observation:
    return await _carried(scene, Extras(content_type="application/json"))


async def response_topic(scene: Scene) -> Observation:
    return await _carried(scene, Extras(response_topic="answers/7", correlation="seven"))


async def request_and_response(scene: Scene) -> Observation:
    """The answer goes to the topic that the request names, with its correlation data."""
    responder = await scene.listener("responder", ("requests", 1))
    requester = await scene.listener("requester", ("answers/+", 1))
    await scene.send("requests", b"how warm?", qos=1, extras=Extras(response_topic="answers/me", correlation="q1"))
    requests = [message.extras for message in await responder.hears(1) if message.extras.response_topic is not None]
    for request in requests:
        await scene.send(request.response_topic or "", b"294 K", qos=1, extras=Extras(correlation=request.correlation))
    return {"answers": seen(await requester.hears(1))}


async def topic_alias(scene: Scene) -> Observation:
    """A topic is named once, then only its number."""
    listener = await scene.listener("listener", ("a/long/topic", 1))
    alias = Extras(alias=1)
    if scene.kind.KIND == "mosquitto":
        await scene.send("a/long/topic", b"first", b"second", b"third", qos=1, extras=alias)
    else:
        await scene.send("a/long/topic", b"first", qos=1, extras=alias)
        await scene.send("", b"second", b"third", qos=1, extras=alias)
    return {"heard": seen(await listener.hears(3))}


async def session_expiry(scene: Scene) -> Observation:
    """A session that may outlive its client by a second is there at once and gone after more."""
    first = scene.keeper("brief", session_s=1)
    await first.open(("x", 1))
    await first.close()
    second = scene.keeper("brief", session_s=1)
    soon = await second.open(("x", 1), again=True)
    await second.close()
    await asyncio.sleep(3.5)
    await scene.send("x", b"too late", qos=1)
    third = scene.peer("brief", clean=False)
    late = await third.open(("y", 1))
    await scene.send("y", END, qos=1)
    return {
        "present soon": soon.session_present,
        "present late": late.session_present,
        "heard": seen(await third.hears_of(END)),
    }


async def message_expiry(scene: Scene) -> Observation:
    """What waits for a client too long is not delivered; what still may is told how long."""
    live = await scene.listener("live", ("e", 1))
    first = scene.keeper("away")
    await first.open(("e", 1))
    await first.close()
    await scene.send("e", b"brief", qos=1, extras=Extras(expiry_s=1))
    await scene.send("e", b"long", qos=1, extras=Extras(expiry_s=300))
    await live.hears(2)
    await asyncio.sleep(2.5)
    second = scene.keeper("away")
    await second.open(("e", 1), again=True)
    await scene.send("e", END, qos=1)
    await second.hears_of(END)
    left_s = [message.extras.expiry_s for message in second.heard if message.payload == b"long"]
    return {
        "live": [(message.payload.decode(), message.extras.expiry_s) for message in live.heard[:2]],
        "after the wait": [message.payload.decode() for message in second.heard],
        "its time has run": [left is not None and 200 < left < 299 for left in left_s],
    }


async def shared_subscriptions(scene: Scene) -> Observation:
    """Each message goes to one of the group."""
    workers = [await scene.listener(f"worker-{number}", ("$share/group/work", 1)) for number in range(2)]
    payloads = [b"job %d" % number for number in range(10)]
    for payload in payloads:
        await scene.send("work", payload, qos=1)
    await workers[0].until(lambda _: sum(len(worker.heard) for worker in workers) >= 10, 2.0)
    await asyncio.sleep(SETTLE_S)
    return {"together": in_any_order([message for worker in workers for message in worker.heard])}


async def subscription_identifiers(scene: Scene) -> Observation:
    listener = scene.peer("listener")
    opened = await listener.open(("i", 1), identifier=7)
    await scene.send("i", b"which", qos=1)
    return {"code": opened.code, "granted": opened.granted, "heard": seen(await listener.hears(1))}


async def will_delay(scene: Scene) -> Observation:
    """The will comes only after its delay, and not at all if the client is back before."""
    listener = await scene.listener("listener", ("will/+", 1))
    one = scene.keeper("one", will=WillMessage(topic="will/1", payload=b"one", delay_s=2))
    two = scene.keeper("two", will=WillMessage(topic="will/2", payload=b"two", delay_s=2))
    await one.open(("own/1", 1))
    await two.open(("own/2", 1))
    await asyncio.gather(one.vanish(), two.vanish())
    await scene.send("will/mark", b"before the delay", qos=1)
    await scene.keeper("two").open(("own/2", 1), again=True)
    await listener.hears(2)
    await asyncio.sleep(SETTLE_S)
    return {"heard": seen(listener.heard)}


async def reason_codes(scene: Scene) -> Observation:
    """Acknowledged, and yet nobody subscribes."""
    return {f"QoS {qos}": await scene.send("nobody/listens", b"?", qos=qos) for qos in (1, 2)}


async def codes_of_subscriptions(scene: Scene) -> Observation:
    """What was granted, and whether there was anything to unsubscribe."""
    peer = scene.peer("asker")
    opened = await peer.open(("r/a", 1), ("r/b", 0))
    return {"granted": opened.granted, "codes": await peer.unsubscribe("r/a", "r/never")}


async def announcements(scene: Scene) -> Observation:
    """What CONNACK says about the server."""
    if scene.kind.KIND in ("aiomqtt", "mosquitto"):
        raise NotApplicableError(f"{scene.kind.KIND} does not show the properties of CONNACK")
    opened = await scene.peer("asker", keep_alive_s=30).open()
    return {"announced": {name: opened.announced[name] for name in sorted(opened.announced.keys() - _GATEWAYS_OWN)}}


ONLY_5: dict[str, Behaviour] = {
    "user properties": user_properties,
    "content type": content_type,
    "response topic": response_topic,
    "request and response": request_and_response,
    "topic alias": topic_alias,
    "session expiry": session_expiry,
    "message expiry": message_expiry,
    "shared subscriptions": shared_subscriptions,
    "subscription identifiers": subscription_identifiers,
    "will delay": will_delay,
    "reason codes": reason_codes,
    "codes of subscriptions": codes_of_subscriptions,
    "announcements": announcements,
}
