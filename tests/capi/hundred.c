/* Opens and closes an engine again and again, with sessions on it, and prints the memory in KiB after each time. Usage: hundred COUNT */
#include "common.h"

#include <unistd.h>

static long resident_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) {
        exit(2);
    }
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < count; i++) {
        bankshot_engine *engine = open_demo();
        for (int k = 0; k < 3; k++) {
            bankshot_session *session = begin(engine, "Once upon a time");
            if (next(session) != 495) {
                return 3;
            }
            bankshot_session_destroy(session);
        }
        check(bankshot_engine_close(engine, 30000));
        bankshot_engine_destroy(engine);
        printf("%ld\n", resident_kib());
    }
    return 0;
}
