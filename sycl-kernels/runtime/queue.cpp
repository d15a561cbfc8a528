// Queues, events, graphs and launches.
#include "objects.hpp"

using namespace xk;

xk::Error xk_queue::failed(const char *op, xk_status status, const char *why) {
    const std::string text = std::string(op) + " (operation " + std::to_string(submitted) + " of the queue): " + why;
    poison->set(status, text);
    return xk::Error(status, text);
}

void xk_queue::not_recording(const char *what) const {
    if (recording) {
        fail(XK_ERR_STATE, what, "a queue that is not recording a graph", "one that is");
    }
}

void xk_queue::wait() {
    not_recording("queue");
    poison->check();
    try {
        queue.wait_and_throw();
        fault_check_lost();
    } catch (const sycl::exception &e) {
        const std::string text =
            "found at a wait after operation " + std::to_string(submitted) + " (" + last_op + "): " + e.what();
        poison->set(status_of(e), text);
    }
    poison->check();
}

namespace xk {

static bool within(size_t a, size_t b, size_t most) { return a != 0 && b != 0 && a <= most / b; }

void launch_args(xk_queue &queue, xk_kernel &kernel, size_t groups, size_t local, const Arg *args, size_t count) {
    // The CPU runtime indexes a launch by 64 bits, the GPUs by groups of 32 bits.
    if (!within(groups, local, size_t(1) << 40) || groups > UINT32_MAX) {
        fail(XK_ERR_VALUE, kernel.name.c_str(), "1 to 2^32-1 groups of at least 1 work-item",
             std::to_string(groups) + " groups of " + std::to_string(local));
    }
    if (local > kernel.max_local) {
        fail(XK_ERR_VALUE, kernel.name.c_str(), "at most " + std::to_string(kernel.max_local) + " work-items a group",
             local);
    }
    if (kernel.arguments && count != *kernel.arguments) {
        fail(XK_ERR_VALUE, kernel.name.c_str(), std::to_string(*kernel.arguments) + " arguments", count);
    }
    if (kernel.card != queue.card.get()) {
        fail(XK_ERR_VALUE, kernel.name.c_str(), "a kernel of the queue's card", "one of another card");
    }
    queue.submit(kernel.name.c_str(), Operation::launch, [&] {
        ex::submit(queue.queue, [&](sycl::handler &h) {
            for (size_t i = 0; i < count; ++i) {
                if (args[i].is_pointer) {
                    void *pointer = nullptr;
                    std::memcpy(&pointer, args[i].data, sizeof(pointer));
                    h.set_arg(static_cast<int>(i), pointer);
                } else {
                    h.set_arg(static_cast<int>(i), ex::raw_kernel_arg(args[i].data, args[i].bytes));
                }
            }
            h.parallel_for(sycl::nd_range<1>(groups * local, local), kernel.kernel);
        });
    });
}

} // namespace xk

xk_status xk_queue_create(xk_card *card, uint32_t flags, xk_queue **out) {
    return guard("xk_queue_create", [&] {
        require(card, "card");
        require(out, "out");
        if ((flags & ~XK_QUEUE_PROFILING) != 0) {
            fail(XK_ERR_UNSUPPORTED, "flags", "known flags", flags);
        }
        const bool profiling = (flags & XK_QUEUE_PROFILING) != 0;
        auto poison = std::make_shared<Poison>();
        const auto on_error = [poison](sycl::exception_list list) {
            for (const auto &entry : list) {
                try {
                    std::rethrow_exception(entry);
                } catch (const sycl::exception &e) {
                    poison->set(status_of(e), e.what());
                } catch (const std::exception &e) {
                    poison->set(XK_ERR_INTERNAL, e.what());
                }
            }
        };
        namespace property = sycl::property::queue;
        const auto properties = profiling ? sycl::property_list{property::in_order(), property::enable_profiling()}
                                          : sycl::property_list{property::in_order()};
        auto &c = *card->card;
        sycl::queue queue(c.context, c.device, on_error, properties);
        std::lock_guard lock(c.queues_mutex);
        const auto registered = c.queues.insert(c.queues.end(), queue);
        auto *handle = new (std::nothrow) xk_queue{card->card, poison, registered, queue, profiling, 0, {}, {}};
        if (handle == nullptr) {
            c.queues.erase(registered);
            throw std::bad_alloc();
        }
        *out = handle;
    });
}

void xk_queue_destroy(xk_queue *queue) {
    if (queue == nullptr) {
        return;
    }
    guard("xk_queue_destroy", [&] {
        if (queue->recording) {
            queue->recording->end_recording(queue->queue);
            queue->recording.reset();
        }
        queue->queue.wait();
    });
    {
        std::lock_guard lock(queue->card->queues_mutex);
        queue->card->queues.erase(queue->registered);
    }
    delete queue;
}

xk_status xk_queue_wait(xk_queue *queue) {
    return guard("xk_queue_wait", [&] {
        require(queue, "queue");
        queue->wait();
    });
}

xk_status xk_queue_idle(xk_queue *queue, uint32_t *idle) {
    return guard("xk_queue_idle", [&] {
        require(queue, "queue");
        require(idle, "idle");
        if (fault_hits(Operation::idle)) {
            fault_fail();
        }
        *idle = queue->queue.ext_oneapi_empty() && !fault_stalls() ? 1 : 0;
    });
}

xk_status xk_queue_copy(xk_queue *queue, void *dst, const void *src, uint64_t bytes) {
    return guard("xk_queue_copy", [&] {
        require(queue, "queue");
        require(dst, "dst");
        require(src, "src");
        queue->submit("copy", Operation::copy, [&] { ex::memcpy(queue->queue, dst, const_cast<void *>(src), bytes); });
    });
}

xk_status xk_queue_copy_peer(xk_queue *queue, void *dst, const void *src, uint64_t bytes) {
    return guard("xk_queue_copy_peer", [&] {
        require(queue, "queue");
        require(dst, "dst");
        require(src, "src");
        queue->submit("peer copy", Operation::peer_copy, [&] {
            if (fault_spoils_peer_copies()) {
                ex::memset(queue->queue, dst, 0x5A, bytes);
            } else {
                ex::memcpy(queue->queue, dst, const_cast<void *>(src), bytes);
            }
        });
    });
}

xk_status xk_queue_fill(xk_queue *queue, void *dst, uint8_t value, uint64_t bytes) {
    return guard("xk_queue_fill", [&] {
        require(queue, "queue");
        require(dst, "dst");
        queue->submit("fill", Operation::copy, [&] { ex::memset(queue->queue, dst, value, bytes); });
    });
}

xk_status xk_event_record(xk_queue *queue, xk_event **out) {
    return guard("xk_event_record", [&] {
        require(queue, "queue");
        require(out, "out");
        queue->not_recording("queue");
        auto event = std::make_unique<xk_event>(xk_event{queue->card, queue->poison, {}, queue->profiling});
        queue->submit("event", Operation::other, [&] {
            event->event =
                queue->profiling ? ex::submit_profiling_tag(queue->queue) : queue->queue.ext_oneapi_submit_barrier();
        });
        *out = event.release();
    });
}

xk_status xk_event_wait(xk_event *event) {
    return guard("xk_event_wait", [&] {
        require(event, "event");
        event->poison->check();
        try {
            event->event.wait_and_throw();
            fault_check_lost();
        } catch (const sycl::exception &e) {
            event->poison->set(status_of(e), std::string("found at a wait for an event: ") + e.what());
        }
        event->poison->check();
    });
}

xk_status xk_event_done(xk_event *event, uint32_t *done) {
    return guard("xk_event_done", [&] {
        require(event, "event");
        require(done, "done");
        event->poison->check();
        fault_check_lost();
        const auto status = event->event.get_info<sycl::info::event::command_execution_status>();
        *done = status == sycl::info::event_command_status::complete && !fault_stalls() ? 1 : 0;
    });
}

xk_status xk_queue_wait_event(xk_queue *queue, const xk_event *event) {
    return guard("xk_queue_wait_event", [&] {
        require(queue, "queue");
        require(event, "event");
        queue->not_recording("queue");
        if (queue->card != event->card) {
            fail(XK_ERR_VALUE, "event", "one of the queue's card", "one of another card");
        }
        queue->submit("wait for an event", Operation::other,
                      [&] { queue->queue.ext_oneapi_submit_barrier({event->event}); });
    });
}

xk_status xk_event_elapsed_ns(const xk_event *first, const xk_event *second, uint64_t *nanoseconds) {
    return guard("xk_event_elapsed_ns", [&] {
        require(first, "first");
        require(second, "second");
        require(nanoseconds, "nanoseconds");
        if (!first->profiling || !second->profiling) {
            fail(XK_ERR_STATE, "events", "ones of queues with XK_QUEUE_PROFILING", "one without");
        }
        namespace profiling = sycl::info::event_profiling;
        const uint64_t from = first->event.get_profiling_info<profiling::command_end>();
        const uint64_t to = second->event.get_profiling_info<profiling::command_end>();
        *nanoseconds = to > from ? to - from : 0;
    });
}

void xk_event_destroy(xk_event *event) { delete event; }

xk_status xk_graph_begin(xk_queue *queue) {
    return guard("xk_graph_begin", [&] {
        require(queue, "queue");
        queue->not_recording("queue");
        queue->poison->check();
        Recording recording(queue->card->context, queue->card->device);
        recording.begin_recording(queue->queue);
        queue->recording.emplace(std::move(recording));
    });
}

xk_status xk_graph_end(xk_queue *queue, xk_graph **out) {
    return guard("xk_graph_end", [&] {
        require(queue, "queue");
        if (!queue->recording) {
            fail(XK_ERR_STATE, "queue", "a queue that is recording a graph", "one that is not");
        }
        Recording recording = *queue->recording;
        queue->recording.reset();
        recording.end_recording(queue->queue);
        require(out, "out");
        queue->poison->check();
        *out = new xk_graph{queue->card, recording.finalize()};
    });
}

xk_status xk_graph_launch(xk_queue *queue, xk_graph *graph) {
    return guard("xk_graph_launch", [&] {
        require(queue, "queue");
        require(graph, "graph");
        queue->not_recording("queue");
        if (queue->card != graph->card) {
            fail(XK_ERR_VALUE, "graph", "one of the queue's card", "one of another card");
        }
        queue->submit("graph", Operation::launch, [&] { ex::execute_graph(queue->queue, graph->graph); });
    });
}

void xk_graph_destroy(xk_graph *graph) {
    if (graph != nullptr) {
        graph->card->wait_all();
        delete graph;
    }
}
