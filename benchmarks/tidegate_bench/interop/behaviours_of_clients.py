"""How clients come, stay and go, in every version of MQTT."""

import asyncio
import contextlib

from tidegate_bench.interop.behaviour import END, SETTLE_S, Behaviour, Observation, in_any_order, seen
from tidegate_bench.interop.peer import NotApplicableError, WillMessage
from tidegate_bench.interop.scene import Scene


async def _will(scene: Scene, *, normal: bool, retain: bool = False) -> Observation:
    listener = await scene.listener("listener", ("will/#", 1))
    will = WillMessage(topic="will/w", payload=b"gone", retain=retain)
    mortal = await scene.listener("mortal", ("own", 1), will=will)
    await (mortal.close() if normal else mortal.vanish())
    if normal:
        await asyncio.sleep(SETTLE_S)
    else:
        await listener.hears(1)
    await scene.send("will/end", END, qos=1)
    observed: Observation = {"heard": seen(await listener.hears_of(END))}
    if retain:
        late = await scene.listener("late", ("will/#", 1))
        observed["late"] = seen(await late.hears(1))
    return observed


async def will_on_abnormal_end(scene: Scene) -> Observation:
    return await _will(scene, normal=False)


async def no_will_on_normal_end(scene: Scene) -> Observation:
    return await _will(scene, normal=True)


async def retained_will(scene: Scene) -> Observation:
    return await _will(scene, normal=False, retain=True)


async def persistent_session(scene: Scene) -> Observation:
    """What is sent while it is away waits for it."""
    topics = (("s/#", 2),)
    first = scene.keeper("keeper")
    opened = await first.open(*topics)
    await first.close()
    await scene.send("s/1", b"1a", b"1b", qos=1)
    await scene.send("s/2", b"2a", qos=2)
    second = scene.keeper("keeper")
    reopened = await second.open(*topics, again=True)
    await second.hears(3)
    await second.close()
    third = scene.peer("keeper")
    cleaned = await third.open(("s/#", 2))
    await scene.send("s/end", END, qos=2)
    return {
        "present": [opened.session_present, reopened.session_present, cleaned.session_present],
        "granted": opened.granted,
        "waited": in_any_order(second.heard),
        "after a clean start": seen(await third.hears_of(END)),
    }


async def clean_session(scene: Scene) -> Observation:
    """What is sent while it is away is not for it, and its subscriptions are gone."""
    first = await scene.listener("guest", ("c/#", 1))
    await first.close()
    await scene.send("c/away", b"missed", qos=1)
    second = scene.peer("guest")
    opened = await second.open(("d", 1))
    await scene.send("c/back", b"not asked for", qos=1)
    await scene.send("d", END, qos=1)
    return {"present": opened.session_present, "heard": seen(await second.hears_of(END))}


async def _takeover(scene: Scene, *, clean: bool) -> Observation:
    """The same client id connects again: the older connection ends, and its session goes on unless it is clean."""
    if scene.kind.KIND == "mosquitto":
        raise NotApplicableError("mosquitto_sub connects again when its connection is taken, so two would fight")
    watcher = await scene.listener("watcher", ("will", 1))
    session_s, will = 0 if clean else 300, WillMessage(topic="will", payload=b"first")
    first = scene.peer("twin", clean=clean, session_s=session_s, will=will)
    await first.open(("t", 1))
    second = scene.peer("twin", clean=clean, session_s=session_s)
    opened = await second.open(("t", 1), again=not clean)
    closed = await first.is_closed()
    await asyncio.sleep(SETTLE_S)
    await scene.send("t", b"to whom", qos=1)
    await second.hears(1)
    await scene.send("will", END, qos=1)
    return {
        "code": opened.code,
        "present": opened.session_present,
        "first closed": closed,
        "close code": first.close_code,
        "first": seen(first.heard),
        "second": seen(second.heard),
        "will": seen(await watcher.hears_of(END)),
    }


async def takeover(scene: Scene) -> Observation:
    return await _takeover(scene, clean=False)


async def takeover_of_a_clean_session(scene: Scene) -> Observation:
    return await _takeover(scene, clean=True)


async def idle_with_pings(scene: Scene) -> Observation:
    """Idle beyond one and a half keep-alives: pings keep the connection."""
    listener = await scene.listener("listener", ("k", 1), keep_alive_s=2)
    await asyncio.sleep(2 * listener.options.keep_alive_s)
    await scene.send("k", END, qos=1)
    return {"heard": seen(await listener.hears_of(END))}


async def silent_beyond_the_keep_alive(scene: Scene) -> Observation:
    """Nothing comes from it for one and a half keep-alives: it is taken for dead, and its will is published."""
    listener = await scene.listener("listener", ("will", 1))
    silent = await scene.listener(
        "silent", ("own", 1), keep_alive_s=2, will=WillMessage(topic="will", payload=b"silent")
    )
    await silent.fall_silent()
    await asyncio.sleep(silent.options.keep_alive_s * 0.75)
    early = seen(listener.heard)
    await listener.until(bool, 3 * silent.options.keep_alive_s + 4)
    return {"before the keep-alive": early, "after": seen(listener.heard)}


# "Bad user name or password" and "not authorised", in both versions: whoever judges clients says it in its own words.
_NOT_LET_IN = (4, 5, 0x86, 0x87)


async def wrong_password(scene: Scene) -> Observation:
    peer = scene.peer("stranger", password="wrong")  # noqa: S106
    with contextlib.suppress(OSError):
        code = (await peer.open(("x", 0))).code
        return {"code": "not let in" if code in _NOT_LET_IN else code}
    return {"code": "closed"}


CLIENTS: dict[str, Behaviour] = {
    "will on abnormal end": will_on_abnormal_end,
    "no will on normal end": no_will_on_normal_end,
    "retained will": retained_will,
    "persistent session": persistent_session,
    "clean session": clean_session,
    "takeover": takeover,
    "takeover, clean session": takeover_of_a_clean_session,
    "idle with pings": idle_with_pings,
    "silent beyond the keep-alive": silent_beyond_the_keep_alive,
    "wrong password": wrong_password,
}
