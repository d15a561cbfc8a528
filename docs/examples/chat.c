// A chat over standard input and output. Without a model file it talks with the small model of the library.
// docs/capi.md says how to build it. Usage: chat [MODEL.gguf] [DEVICE]
#include "bankshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bankshot_status status) {
    char text[1024];
    if (status != BANKSHOT_OK) {
        bankshot_last_error(text, sizeof text);
        fprintf(stderr, "error %d: %s\n", (int)status, text);
        exit(1);
    }
}

static bankshot_message message(const char *role, const char *content) {
    bankshot_message turn = {role, strlen(role), content, strlen(content)};
    return turn;
}

int main(int argc, char **argv) {
    bankshot_engine_options options = {0};
    options.struct_size = sizeof options;
    options.flags = argc > 1 ? 0 : BANKSHOT_ENGINE_DEMO;
    options.model_path = argc > 1 ? argv[1] : NULL;
    options.model_path_bytes = argc > 1 ? strlen(argv[1]) : 0;
    options.device = argc > 2 ? argv[2] : NULL;
    options.device_bytes = argc > 2 ? strlen(argv[2]) : 0;
    bankshot_engine *engine = NULL;
    check(bankshot_engine_open(&options, &engine));
    bankshot_status status = BANKSHOT_OK;
    while ((status = bankshot_engine_wait(engine, 1000)) == BANKSHOT_ERR_TIMEOUT) {
        bankshot_progress progress = {.struct_size = sizeof progress};
        check(bankshot_engine_progress(engine, &progress));
        fprintf(stderr, "loading: %llu of %llu MiB\n", (unsigned long long)(progress.weight_bytes_done >> 20),
                (unsigned long long)(progress.weight_bytes_total >> 20));
    }
    check(status);
    bankshot_session *session = NULL;
    check(bankshot_session_create(engine, NULL, &session));

    static char lines[64][4096], answers[64][65536];
    static uint32_t ids[65536];
    bankshot_message turns[128];
    for (int turn = 0; turn < 64 && fgets(lines[turn], sizeof lines[turn], stdin) != NULL; turn++) {
        lines[turn][strcspn(lines[turn], "\n")] = '\0';
        turns[2 * turn] = message("user", lines[turn]);
        // The template writes the whole conversation anew; what is known of it is not computed again.
        size_t bytes = 0, count = 0, length = 0;
        uint32_t how = BANKSHOT_RENDER_ANSWER | BANKSHOT_RENDER_NO_THINK;
        check(bankshot_engine_render(engine, turns, 2 * turn + 1, how, NULL, 0, &bytes));
        char *text = malloc(bytes + 1);
        check(bankshot_engine_render(engine, turns, 2 * turn + 1, how, text, bytes + 1, &bytes));
        how = BANKSHOT_TOKENIZE_BEGIN | BANKSHOT_TOKENIZE_SPECIAL;
        check(bankshot_engine_tokenize(engine, text, bytes, how, ids, sizeof ids / sizeof *ids, &count));
        free(text);
        check(bankshot_session_prompt(session, ids, count));
        bankshot_event event = {.struct_size = sizeof event};
        do {
            check(bankshot_session_next(session, &event));
            size_t room = sizeof answers[turn] - 1 - length, piece = 0;
            check(bankshot_session_text(session, answers[turn] + length, room, &piece));
            fwrite(answers[turn] + length, 1, piece, stdout);
            fflush(stdout);
            length += piece;
        } while (event.finish == BANKSHOT_FINISH_NONE);
        puts("");
        turns[2 * turn + 1] = message("assistant", answers[turn]);
    }
    bankshot_session_destroy(session);
    check(bankshot_engine_close(engine, 30000));
    bankshot_engine_destroy(engine);
    return 0;
}
