// A program with everything that the API has, another static library in Rust, and C++.
#include <bankshot.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef void function(void);

extern unsigned other_digits(unsigned end);
extern bool other_catches(void);
extern unsigned cpp_digits(unsigned end);

// Written by the test: every function that the header declares.
static function *const api[] = {
#include "api.inc"
};

static int failed(void) {
    char text[1000] = "";
    const size_t bytes = bankshot_last_error(text, sizeof text);
    fprintf(stderr, "%.*s\n", (int)(bytes < sizeof text ? bytes : sizeof text), text);
    return 1;
}

int main(void) {
    uint32_t major = 0, minor = 0;
    if (bankshot_abi_version(&major, &minor) != BANKSHOT_OK) {
        return failed();
    }
    unsigned count = 0;
    for (size_t i = 0; i < sizeof api / sizeof *api; i++) {
        count += api[i] != NULL;
    }
    printf("%u.%u\n%u %u %u %d\n", major, minor, count, other_digits(1000), cpp_digits(1000), other_catches());

    bankshot_engine_options options = {.struct_size = sizeof options, .flags = BANKSHOT_ENGINE_DEMO};
    bankshot_engine *engine = NULL;
    if (bankshot_engine_open(&options, &engine) != BANKSHOT_OK) {
        return failed();
    }
    const bankshot_status status = bankshot_engine_wait(engine, 600000);
    const int result = status == BANKSHOT_OK ? 0 : failed();
    bankshot_engine_destroy(engine);
    return result;
}
