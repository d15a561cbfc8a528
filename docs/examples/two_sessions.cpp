// Two sessions on two threads share an engine. One is saved half-way, and goes on in a third session.
// docs/capi.md says how to build it. Usage: two_sessions FOLDER
#include "bankshot.h"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

static void check(bankshot_status status) {
    if (status != BANKSHOT_OK) {
        std::string text(bankshot_last_error(nullptr, 0) + 1, '\0');
        bankshot_last_error(&text[0], text.size());
        throw std::runtime_error(text.c_str());
    }
}

struct Destroy {
    void operator()(bankshot_engine *engine) const { bankshot_engine_destroy(engine); }
    void operator()(bankshot_session *session) const { bankshot_session_destroy(session); }
};
using Engine = std::unique_ptr<bankshot_engine, Destroy>;
using Session = std::unique_ptr<bankshot_session, Destroy>;

static Session begin(const Engine &engine, const std::string &text) {
    bankshot_session *session = nullptr;
    check(bankshot_session_create(engine.get(), nullptr, &session));
    Session owned(session);
    if (!text.empty()) {
        check(bankshot_session_feed_text(session, text.data(), text.size()));
    }
    return owned;
}

static std::string tokens(const Session &session, int count) {
    std::string all;
    for (int i = 0; i < count; i++) {
        bankshot_event event{};
        event.struct_size = sizeof event;
        check(bankshot_session_next(session.get(), &event));
        std::string text(event.text_bytes, '\0');
        std::size_t bytes = 0;
        check(bankshot_session_text(session.get(), &text[0], text.size(), &bytes));
        all += text;
    }
    return all;
}

int main(int argc, char **argv) try {
    const std::string folder = argc > 1 ? argv[1] : ".", name = "first", device = "cpu";
    bankshot_engine_options options{};
    options.struct_size = sizeof options;
    options.flags = BANKSHOT_ENGINE_DEMO;
    options.device = device.data();
    options.device_bytes = device.size();
    options.context = 256;
    bankshot_engine *opened = nullptr;
    check(bankshot_engine_open(&options, &opened));
    const Engine engine(opened);
    check(bankshot_engine_wait(opened, BANKSHOT_NONE));

    std::string first, second, rest;
    // What a thread throws ends the program, as is right for an example.
    std::thread one([&] {
        const Session session = begin(engine, "Once upon a time");
        first = tokens(session, 8);
        check(bankshot_session_save(session.get(), folder.data(), folder.size(), name.data(), name.size(), 0));
    });
    std::thread two([&] { second = tokens(begin(engine, "The old man"), 16); });
    one.join();
    two.join();
    const Session third = begin(engine, "");
    check(bankshot_session_restore(third.get(), folder.data(), folder.size(), name.data(), name.size()));
    rest = tokens(third, 8);
    std::printf("%s\n%s\n%s\n", first.c_str(), second.c_str(), rest.c_str());
    check(bankshot_engine_close(opened, 30000));
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
}
