/* What the library writes at its border, into blocks of exactly the size that it is told, for the address sanitizer. Needs no device. */
#include "common.h"

typedef bankshot_status (*text_call)(char *, size_t, size_t *);

static void texts(text_call call) {
    size_t needed = 0, got = 0;
    check(call(NULL, 0, &needed));
    for (size_t cap = 1; cap <= needed; cap++) {
        char *block = (char *)malloc(cap);
        bankshot_status status = call(block, cap, &got);
        if (status != (cap < needed ? BANKSHOT_ERR_BUFFER : BANKSHOT_OK)) {
            exit(2);
        }
        free(block);
    }
    if (got != needed) {
        exit(3);
    }
}

int main(void) {
    texts(bankshot_features);
    for (size_t cap = 0; cap < 200; cap++) {
        /* The text of a failed call, cut to each length. */
        char *block = (char *)malloc(cap + 1);
        if (bankshot_session_feed(NULL, NULL, 0) != BANKSHOT_ERR_NULL) {
            return 4;
        }
        size_t bytes = bankshot_last_error(block, cap);
        if (cap > 0 && strlen(block) != (bytes < cap ? bytes : cap - 1)) {
            return 5;
        }
        free(block);
    }
    for (uint32_t size = 4; size < 300; size++) {
        /* No byte behind the size is read. */
        bankshot_engine_options *options = (bankshot_engine_options *)calloc(1, size);
        bankshot_engine *engine = NULL;
        memcpy(options, &size, sizeof size);
        bankshot_status status = bankshot_engine_open(options, &engine);
        bankshot_status expected = size < sizeof *options ? BANKSHOT_ERR_STRUCT : BANKSHOT_ERR_NULL;
        if (status != expected || engine != NULL) {
            return 6;
        }
        free(options);
    }
    printf("clean\n");
    return 0;
}
