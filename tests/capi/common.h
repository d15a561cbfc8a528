/* What the test programs have in common. Plain C11 that is C++17, too. */
#ifndef COMMON_H
#define COMMON_H

#include "bankshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(bankshot_status status) {
    char text[1024];
    if (status != BANKSHOT_OK) {
        bankshot_last_error(text, sizeof text);
        fprintf(stderr, "error %d: %s\n", (int)status, text);
        exit(1);
    }
}

/* The demo model on the CPU. */
static inline bankshot_engine *open_demo(void) {
    bankshot_engine_options options;
    bankshot_engine *engine = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.flags = BANKSHOT_ENGINE_DEMO;
    options.device = "cpu";
    options.device_bytes = 3;
    options.context = 128;
    check(bankshot_engine_open(&options, &engine));
    check(bankshot_engine_wait(engine, BANKSHOT_NONE));
    return engine;
}

static inline bankshot_session *begin(bankshot_engine *engine, const char *text) {
    bankshot_session *session = NULL;
    check(bankshot_session_create(engine, NULL, &session));
    check(bankshot_session_feed_text(session, text, strlen(text)));
    return session;
}

static inline uint32_t next(bankshot_session *session) {
    bankshot_event event;
    memset(&event, 0, sizeof event);
    event.struct_size = sizeof event;
    check(bankshot_session_next(session, &event));
    return event.id;
}

#endif
