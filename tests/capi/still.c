/* A program in which the library may change nothing but OCL_ICD_FILENAMES. Prints what changed. */
#define _POSIX_C_SOURCE 200809L
#include "common.h"

#include <locale.h>
#include <signal.h>
#include <unistd.h>

extern char **environ;

#define SIGNALS 32

static void look(struct sigaction *actions, char *folder, size_t cap) {
    for (int i = 1; i < SIGNALS; i++) {
        sigaction(i, NULL, &actions[i]);
    }
    if (getcwd(folder, cap) == NULL) {
        exit(2);
    }
}

int main(void) {
    static struct sigaction before[SIGNALS], after[SIGNALS];
    static char folder_before[4096], folder_after[4096];
    size_t variables = 0;
    static char *kept[4096];
    while (environ[variables] != NULL && variables + 1 < 4096) {
        kept[variables] = environ[variables];
        variables++;
    }
    look(before, folder_before, sizeof folder_before);
    bankshot_engine *engine = open_demo();
    bankshot_session *session = begin(engine, "Once upon a time");
    next(session);
    /* A panic of the library would print; a refused call does not. */
    if (bankshot_session_feed(session, NULL, 1) != BANKSHOT_ERR_NULL) {
        return 3;
    }
    bankshot_session_destroy(session);
    check(bankshot_engine_close(engine, 30000));
    bankshot_engine_destroy(engine);
    look(after, folder_after, sizeof folder_after);
    for (int i = 1; i < SIGNALS; i++) {
        if (before[i].sa_handler != after[i].sa_handler) {
            printf("signal %d\n", i);
        }
    }
    if (strcmp(folder_before, folder_after) != 0) {
        printf("folder\n");
    }
    if (strcmp(setlocale(LC_ALL, NULL), "C") != 0) {
        printf("locale\n");
    }
    for (size_t i = 0; environ[i] != NULL; i++) {
        size_t k = 0;
        while (k < variables && strcmp(environ[i], kept[k]) != 0) {
            k++;
        }
        if (k == variables) {
            printf("environment %.*s\n", (int)strcspn(environ[i], "="), environ[i]);
        }
    }
    return 0;
}
