// What stands behind the handles of xk.h. Only for the runtime's own files.
#pragma once

#include "fault.hpp"
#include "runtime.hpp"

#include <sycl/sycl.hpp>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace xk {

namespace ex = sycl::ext::oneapi::experimental;

// The usable devices, in the order of xk_device_count.
const std::vector<sycl::device> &devices();

// A folder with a closing slash, where libsycl and its siblings lie; empty if unknown.
const std::string &library_folder();

struct Card {
    sycl::device device;
    sycl::context context;
    std::string name;
    std::string driver;
    sycl::backend backend;

    explicit Card(const sycl::device &d);

    // Frees happen only after this: memory must outlive the kernels that use it.
    void wait_all() noexcept;

    std::mutex queues_mutex;
    std::list<sycl::queue> queues;
};

// The first failure of a queue, which all its later calls repeat.
struct Poison {
    std::atomic<xk_status> status{XK_OK};
    std::mutex mutex;
    std::string text;

    void set(xk_status s, const std::string &t) {
        std::lock_guard lock(mutex);
        if (status.load() == XK_OK) {
            text = t;
            status.store(s);
        }
    }
    void check() {
        if (status.load(std::memory_order_relaxed) != XK_OK) {
            std::lock_guard lock(mutex);
            throw Error(status.load(), text);
        }
    }
};

// The status that fits a SYCL exception.
xk_status status_of(const sycl::exception &e) noexcept;

using Recording = ex::command_graph<ex::graph_state::modifiable>;
using Executable = ex::command_graph<ex::graph_state::executable>;

struct Module {
    std::shared_ptr<Card> card;
    std::string name;
    bool from_cache = false;
    std::map<std::string, std::unique_ptr<xk_kernel>, std::less<>> kernels;
};

} // namespace xk

struct xk_card {
    std::shared_ptr<xk::Card> card;
    xk::Live live{xk::figures.cards};
};

struct xk_arena {
    std::shared_ptr<xk::Card> card;
    void *base;
    xk::Live live_bytes;
    xk::Live live{xk::figures.arenas};
};

struct xk_queue {
    std::shared_ptr<xk::Card> card;
    std::shared_ptr<xk::Poison> poison;
    std::list<sycl::queue>::iterator registered;
    sycl::queue queue;
    bool profiling = false;
    uint64_t submitted = 0;
    std::string last_op;
    std::optional<xk::Recording> recording;
    xk::Live live{xk::figures.queues};

    // Runs one submission; what it throws poisons the queue with the op's name and number.
    template <class F> void submit(const char *op, xk::Operation operation, F &&body) {
        poison->check();
        ++submitted;
        try {
            if (xk::fault_hits(operation)) {
                xk::fault_fail();
            }
            body();
        } catch (const sycl::exception &e) {
            throw failed(op, xk::status_of(e), e.what());
        } catch (const std::exception &e) {
            throw failed(op, XK_ERR_INTERNAL, e.what());
        }
        last_op = op;
    }
    void wait();
    void not_recording(const char *what) const;

  private:
    xk::Error failed(const char *op, xk_status status, const char *why);
};

struct xk_event {
    std::shared_ptr<xk::Card> card;
    std::shared_ptr<xk::Poison> poison;
    sycl::event event;
    bool profiling;
    xk::Live live{xk::figures.events};
};

struct xk_kernel {
    sycl::kernel kernel;
    const xk::Card *card;
    std::string name;
    std::optional<uint32_t> arguments; // unknown to the CUDA backend
    size_t max_local;
};

struct xk_module {
    xk::Module module;
    xk::Live live{xk::figures.modules};
};

struct xk_graph {
    std::shared_ptr<xk::Card> card;
    xk::Executable graph;
    xk::Live live{xk::figures.graphs};
};
