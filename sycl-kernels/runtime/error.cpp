// Versions and the last error.
#include "objects.hpp"

#include <new>

namespace xk {

static thread_local std::string last_error;

static xk_status leave(const char *call, xk_status status, const char *text) noexcept {
    try {
        last_error.assign(call).append(": ").append(text);
    } catch (...) {
        last_error.clear();
    }
    return status;
}

xk_status status_of(const sycl::exception &e) noexcept {
    if (std::strstr(e.what(), "DEVICE_LOST") != nullptr) {
        return XK_ERR_DEVICE_LOST;
    }
    const auto &code = e.code();
    if (code == sycl::errc::memory_allocation) {
        return XK_ERR_DEVICE_MEMORY;
    }
    if (code == sycl::errc::build) {
        return XK_ERR_BUILD;
    }
    if (code == sycl::errc::feature_not_supported) {
        return XK_ERR_UNSUPPORTED;
    }
    return XK_ERR_DEVICE;
}

xk_status caught(const char *call) noexcept {
    try {
        throw;
    } catch (const Error &e) {
        return leave(call, e.status, e.what());
    } catch (const std::bad_alloc &) {
        return leave(call, XK_ERR_HOST_MEMORY, "out of host memory");
    } catch (const sycl::exception &e) {
        return leave(call, status_of(e), e.what());
    } catch (const std::exception &e) {
        return leave(call, XK_ERR_INTERNAL, e.what());
    } catch (...) {
        return leave(call, XK_ERR_INTERNAL, "an exception of unknown type");
    }
}

} // namespace xk

xk_status xk_abi_version(uint32_t *major, uint32_t *minor) {
    return xk::guard("xk_abi_version", [&] {
        xk::require(major, "major");
        xk::require(minor, "minor");
        *major = XK_ABI_MAJOR;
        *minor = XK_ABI_MINOR;
    });
}

size_t xk_last_error(char *buf, size_t cap) {
    const std::string &text = xk::last_error;
    if (buf != nullptr && cap > 0) {
        const size_t bytes = text.size() < cap - 1 ? text.size() : cap - 1;
        std::memcpy(buf, text.data(), bytes);
        buf[bytes] = '\0';
    }
    return text.size();
}
