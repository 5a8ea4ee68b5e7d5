"""Whether all brokers serve and have all that they should have: the next round begins with three whole replicas."""

import http.client
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

LOOK_S = 0.5


def await_health(monitor_urls: Iterable[str], seconds_max: float) -> float | None:
    """How long it took until every broker called itself healthy, streams and all; None where that did not happen."""
    urls, began_s = list(monitor_urls), time.monotonic()
    while time.monotonic() - began_s < seconds_max:
        if all(_is_healthy(url) for url in urls):
            return round(time.monotonic() - began_s, 1)
        time.sleep(LOOK_S)
    return None


def _is_healthy(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=2.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
