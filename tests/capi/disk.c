/* Saves a session into a folder whose file system has no room, and prints the status. Usage: disk FOLDER */
#include "common.h"

int main(int argc, char **argv) {
    bankshot_engine *engine = open_demo();
    bankshot_session *session = begin(engine, "Once upon a time");
    const char *folder = argc > 1 ? argv[1] : ".";
    bankshot_status status = bankshot_session_save(session, folder, strlen(folder), "full", 4, 0);
    /* The session goes on. */
    unsigned id = next(session);
    /* A limit on the size of files would cut a file, too. */
    fprintf(stderr, "%d %u\n", (int)status, id);
    bankshot_session_destroy(session);
    bankshot_engine_destroy(engine);
    return 0;
}
