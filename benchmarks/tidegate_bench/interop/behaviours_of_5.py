"""What only MQTT 5 knows."""

import asyncio

from tidegate_bench.interop.behaviour import END, SETTLE_S, Behaviour, Observation, in_any_order, seen
from tidegate_bench.interop.peer import Extras, NotApplicableError, Will
from tidegate_bench.interop.stage import Stage

# What a gateway announces for itself.
_GATEWAYS_OWN = {"MaximumPacketSize", "ServerKeepAlive", "maximum_packet_size", "server_keep_alive"}


async def _carried(stage: Stage, extras: Extras) -> Observation:
    listener = await stage.listener("listener", ("p", 1))
    await stage.send("p", b"with properties", qos=1, extras=extras)
    return {"heard": seen(await listener.hears(1))}


async def user_properties(stage: Stage) -> Observation:
    return await _carried(stage, Extras(user=(("place", "hall"), ("unit", "kelvin"), ("place", "roof"))))


async def content_type(stage: Stage) -> Observation:
    return await _carried(stage, Extras(content_type="application/json"))


async def response_topic(stage: Stage) -> Observation:
    return await _carried(stage, Extras(response_topic="answers/7", correlation="seven"))


async def request_and_response(stage: Stage) -> Observation:
    """The answer goes to the topic that the request names, with its correlation data."""
    responder = await stage.listener("responder", ("requests", 1))
    requester = await stage.listener("requester", ("answers/+", 1))
    await stage.send("requests", b"how warm?", qos=1, extras=Extras(response_topic="answers/me", correlation="q1"))
    requests = [message.extras for message in await responder.hears(1) if message.extras.response_topic is not None]
    for request in requests:
        await stage.send(request.response_topic or "", b"294 K", qos=1, extras=Extras(correlation=request.correlation))
    return {"answers": seen(await requester.hears(1))}


async def topic_alias(stage: Stage) -> Observation:
    """A topic is named once, then only its number."""
    listener = await stage.listener("listener", ("a/long/topic", 1))
    alias = Extras(alias=1)
    if stage.kind.KIND == "mosquitto":
        await stage.send("a/long/topic", b"first", b"second", b"third", qos=1, extras=alias)
    else:
        await stage.send("a/long/topic", b"first", qos=1, extras=alias)
        await stage.send("", b"second", b"third", qos=1, extras=alias)
    return {"heard": seen(await listener.hears(3))}


async def session_expiry(stage: Stage) -> Observation:
    """A session that may outlive its client by a second is there at once and gone after more."""
    first = stage.keeper("brief", session_s=1)
    await first.open(("x", 1))
    await first.close()
    second = stage.keeper("brief", session_s=1)
    soon = await second.open(("x", 1), again=True)
    await second.close()
    await asyncio.sleep(3.5)
    await stage.send("x", b"too late", qos=1)
    third = stage.peer("brief", clean=False)
    late = await third.open(("y", 1))
    await stage.send("y", END, qos=1)
    return {
        "present soon": soon.session_present,
        "present late": late.session_present,
        "heard": seen(await third.hears_of(END)),
    }


async def message_expiry(stage: Stage) -> Observation:
    """What waits for a client too long is not delivered; what still may is told how long."""
    live = await stage.listener("live", ("e", 1))
    first = stage.keeper("away")
    await first.open(("e", 1))
    await first.close()
    await stage.send("e", b"brief", qos=1, extras=Extras(expiry_s=1))
    await stage.send("e", b"long", qos=1, extras=Extras(expiry_s=300))
    await live.hears(2)
    await asyncio.sleep(2.5)
    second = stage.keeper("away")
    await second.open(("e", 1), again=True)
    await stage.send("e", END, qos=1)
    await second.hears_of(END)
    left_s = [message.extras.expiry_s for message in second.heard if message.payload == b"long"]
    return {
        "live": [(message.payload.decode(), message.extras.expiry_s) for message in live.heard[:2]],
        "after the wait": [message.payload.decode() for message in second.heard],
        "its time has run": [left is not None and 200 < left < 299 for left in left_s],
    }


async def shared_subscriptions(stage: Stage) -> Observation:
    """Each message goes to one of the group."""
    workers = [await stage.listener(f"worker-{number}", ("$share/group/work", 1)) for number in range(2)]
    payloads = [b"job %d" % number for number in range(10)]
    for payload in payloads:
        await stage.send("work", payload, qos=1)
    await workers[0].until(lambda _: sum(len(worker.heard) for worker in workers) >= 10, 2.0)
    await asyncio.sleep(SETTLE_S)
    return {"together": in_any_order([message for worker in workers for message in worker.heard])}


async def subscription_identifiers(stage: Stage) -> Observation:
    listener = stage.peer("listener")
    opened = await listener.open(("i", 1), identifier=7)
    await stage.send("i", b"which", qos=1)
    return {"code": opened.code, "granted": opened.granted, "heard": seen(await listener.hears(1))}


async def will_delay(stage: Stage) -> Observation:
    """The will comes only after its delay, and not at all if the client is back before."""
    listener = await stage.listener("listener", ("will/+", 1))
    one = stage.keeper("one", will=Will(topic="will/1", payload=b"one", delay_s=2))
    two = stage.keeper("two", will=Will(topic="will/2", payload=b"two", delay_s=2))
    await one.open(("own/1", 1))
    await two.open(("own/2", 1))
    await asyncio.gather(one.vanish(), two.vanish())
    await stage.send("will/mark", b"before the delay", qos=1)
    await stage.keeper("two").open(("own/2", 1), again=True)
    await listener.hears(2)
    await asyncio.sleep(SETTLE_S)
    return {"heard": seen(listener.heard)}


async def reason_codes(stage: Stage) -> Observation:
    """Acknowledged, and yet nobody subscribes."""
    return {f"QoS {qos}": await stage.send("nobody/listens", b"?", qos=qos) for qos in (1, 2)}


async def codes_of_subscriptions(stage: Stage) -> Observation:
    """What was granted, and whether there was anything to unsubscribe."""
    peer = stage.peer("asker")
    opened = await peer.open(("r/a", 1), ("r/b", 0))
    return {"granted": opened.granted, "codes": await peer.unsubscribe("r/a", "r/never")}


async def announcements(stage: Stage) -> Observation:
    """What CONNACK says about the server."""
    if stage.kind.KIND in ("aiomqtt", "mosquitto"):
        raise NotApplicableError(f"{stage.kind.KIND} does not show the properties of CONNACK")
    opened = await stage.peer("asker", keep_alive_s=30).open()
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
