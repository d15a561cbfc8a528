/* Prints the ids that follow a text. Built as C and as C++. Usage: ids TEXT COUNT */
#include "common.h"

int main(int argc, char **argv) {
    bankshot_engine *engine = open_demo();
    bankshot_session *session = begin(engine, argc > 1 ? argv[1] : "");
    int count = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < count; i++) {
        printf("%u ", (unsigned)next(session));
    }
    printf("\n");
    bankshot_engine_destroy(engine);
    bankshot_session_destroy(session);
    return 0;
}
