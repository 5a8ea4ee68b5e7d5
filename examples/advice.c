/* How a device follows advice without Tidegate's library: plain C, no allocation, no JSON parser.
 *
 * Connect to the gateway by the device's own name, with the password that "tidegate device add NAME" prints. Subscribe
 * to "tidegate/advice" at QoS 0 after every connect: every device may, and hears only what is meant for it. Pass each
 * message on that topic to take_advice(), and ask interval_s() before every send. Times come from a clock that never
 * jumps (CLOCK_MONOTONIC, a tick counter).
 *
 * Try it: cc -Wall -Wextra -o advice examples/advice.c && ./advice '{"interval_s": 1.5, "lifetime_s": 10}'
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_BYTES_MAX 2048

struct pace {
    double default_s;  /* how often this device sends when nobody asks otherwise */
    double advised_s;
    double lapses_at_s; /* the advice is void from then on */
};

/* The number behind "key": in a flat JSON object, or -1. */
static double number_of(const char *json, const char *key)
{
    const char *place = strstr(json, key);
    char *end;
    double value;

    if (place == NULL || (place = strchr(place, ':')) == NULL)
        return -1;
    value = strtod(place + 1, &end);
    return end == place + 1 ? -1 : value;
}

/* A message came on the topic. One that cannot be read changes nothing. */
static void take_advice(struct pace *pace, const char *payload, size_t size, double now_s)
{
    char text[PAYLOAD_BYTES_MAX + 1];
    double interval, lifetime;

    if (size > PAYLOAD_BYTES_MAX)
        return;
    memcpy(text, payload, size);
    text[size] = '\0'; /* an MQTT payload does not end with a zero */
    interval = number_of(text, "\"interval_s\"");
    lifetime = number_of(text, "\"lifetime_s\"");
    if (!(interval >= 0 && interval <= 3600 && lifetime > 0 && lifetime <= 3600))
        return;
    pace->advised_s = interval;
    pace->lapses_at_s = now_s + lifetime;
}

/* The least time between two messages now. Advice never makes a device faster than its own default. */
static double interval_s(const struct pace *pace, double now_s)
{
    if (now_s < pace->lapses_at_s && pace->advised_s > pace->default_s)
        return pace->advised_s;
    return pace->default_s;
}

int main(int argc, char **argv)
{
    struct pace pace = {.default_s = 0.5};
    const char *payload = argc > 1 ? argv[1] : "{\"interval_s\": 1.5, \"lifetime_s\": 10}";
    double now_s;

    take_advice(&pace, payload, strlen(payload), 0);
    for (now_s = 0; now_s <= 12; now_s += 4)
        printf("after %4.1f s: send every %g s\n", now_s, interval_s(&pace, now_s));
    return 0;
}
