// What the op launch files need from the runtime: the exception wall, argument checks and kernel launches.
// It keeps SYCL's headers out, so that an op file compiles in a moment.
#pragma once

#include "xk.h"

#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>

namespace xk {

// A failure on its way to the caller; thrown only below guard().
struct Error : std::exception {
    xk_status status;
    std::string text;

    Error(xk_status s, std::string t) : status(s), text(std::move(t)) {}
    const char *what() const noexcept override { return text.c_str(); }
};

// Turns the exception in flight into a status, and leaves "call: what happened" as the thread's last error.
xk_status caught(const char *call) noexcept;

// The body of every C entry point.
template <class F> xk_status guard(const char *call, F &&body) noexcept {
    try {
        body();
        return XK_OK;
    } catch (...) {
        return caught(call);
    }
}

// Ends the call: "what: expected ..., got ...".
template <class E, class G>
[[noreturn]] void fail(xk_status status, const char *what, const E &expected, const G &got) {
    std::ostringstream text;
    text << what << ": expected " << expected << ", got " << got;
    throw Error(status, text.str());
}

inline void require(const void *pointer, const char *what) {
    if (pointer == nullptr) {
        fail(XK_ERR_NULL, what, "a pointer", "null");
    }
}

// Copies a sized struct: fields that the caller does not have are zero, and fields that we do not have must be.
template <class T> T read_struct(const T *from, const char *what, uint32_t first_version_bytes = sizeof(T)) {
    require(from, what);
    const uint32_t bytes = from->struct_size;
    if (bytes < first_version_bytes || bytes > 4096) {
        fail(XK_ERR_STRUCT, what, "struct_size of at least " + std::to_string(first_version_bytes), bytes);
    }
    T copy{};
    std::memcpy(&copy, from, bytes < sizeof(T) ? bytes : sizeof(T));
    const auto *raw = reinterpret_cast<const unsigned char *>(from);
    for (uint32_t i = sizeof(T); i < bytes; ++i) {
        if (raw[i] != 0) {
            fail(XK_ERR_UNSUPPORTED, what, "zero in fields newer than this library", "a value");
        }
    }
    return copy;
}

// Fills a sized struct as far as the caller has it. struct_size stays the caller's.
template <class T> void write_struct(T from, T *to, const char *what, uint32_t first_version_bytes = sizeof(T)) {
    require(to, what);
    const uint32_t bytes = to->struct_size;
    if (bytes < first_version_bytes) {
        fail(XK_ERR_STRUCT, what, "struct_size of at least " + std::to_string(first_version_bytes), bytes);
    }
    from.struct_size = bytes;
    std::memcpy(to, &from, bytes < sizeof(T) ? bytes : sizeof(T));
}

// One kernel argument: a device pointer by value, or the bytes of a scalar.
struct Arg {
    const void *data;
    uint32_t bytes;
    bool is_pointer;
};

template <class T> Arg arg(const T &value) {
    static_assert(std::is_pointer_v<T> || std::is_arithmetic_v<T>, "kernel arguments are pointers and numbers");
    static_assert(!std::is_same_v<T, bool>, "pass a uint32_t");
    return {&value, sizeof(T), std::is_pointer_v<T>};
}

// Enqueues `groups` work-groups of `local` work-items each. A failure poisons the queue under the kernel's name.
void launch_args(xk_queue &queue, xk_kernel &kernel, size_t groups, size_t local, const Arg *args, size_t count);

// The argument types must be the kernel's parameter types: their sizes are checked by the driver at best.
template <class... A> void launch(xk_queue &queue, xk_kernel &kernel, size_t groups, size_t local, A... args) {
    const Arg list[] = {arg(args)...};
    launch_args(queue, kernel, groups, local, list, sizeof...(A));
}

} // namespace xk
