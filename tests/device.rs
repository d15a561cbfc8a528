//! The runtime behind `include/xk.h`, on the CPU device.

#[path = "support/canary.rs"]
mod canary;
#[path = "support/device.rs"]
mod device_choice;

use bankshot::device::kernels::{self, ModuleCode};
use bankshot::device::{self, Arena, Card, MemoryKind, Module, Part, Queue, Status, sys};
use canary::{Canary, module};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn card() -> Card {
    Card::open(device_choice::test_device().index).expect("a card")
}

#[test]
fn devices_are_listed_once_and_described() {
    let devices = device::devices().expect("devices");
    assert_eq!(devices.iter().filter(|d| d.is_cpu).count(), 1, "{devices:?}");
    for (index, device) in devices.iter().enumerate() {
        assert_eq!(device.index as usize, index);
        assert!(!device.name.is_empty() && !device.driver.is_empty() && !device.vendor.is_empty(), "{device:?}");
        assert!(["opencl", "level_zero", "cuda"].contains(&device.backend.as_str()), "{device:?}");
        assert!(device.compute_units > 0 && device.global_bytes > 0, "{device:?}");
        assert!(device.max_alloc_bytes > 0 && device.max_alloc_bytes <= device.global_bytes, "{device:?}");
        assert!(device.sub_group_sizes.iter().any(|n| [16, 32].contains(n)), "{device:?}");
    }
}

#[test]
fn bytes_survive_a_round_trip() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let sent: Vec<u8> = (0..100_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    for kind in [MemoryKind::Device, MemoryKind::Host] {
        let arena = Arena::new(&card, 300_000, kind).expect("an arena");
        assert_eq!(arena.whole().ptr() as usize % 64, 0);
        let [first, second] = [7, 150_001].map(|at| arena.span(at, 100_000).expect("a span"));
        queue.fill(&arena.whole(), 0xA5).expect("a fill");
        queue.upload(&first, &sent).expect("an upload");
        queue.copy(&second, &first).expect("a copy");
        let mut all = vec![0; 300_000];
        queue.download(&mut all, &arena.whole()).expect("a download");
        assert_eq!(all[7..100_007], sent);
        assert_eq!(all[150_001..250_001], sent);
        assert!(all[..7].iter().chain(&all[100_007..150_001]).chain(&all[250_001..]).all(|b| *b == 0xA5));
    }
}

#[test]
fn canary_has_the_bits_of_rust() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let module = module(&card);
    let canary = Canary::new(&card, &queue, 65_536, 1);
    canary.enqueue(&queue, &module);
    canary.check(&queue);
}

#[test]
fn a_graph_replays_and_keeps_what_it_uses() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let canary = Canary::new(&card, &queue, 4096, 2);
    queue.begin_graph().expect("a recording");
    {
        let module = module(&card);
        canary.enqueue(&queue, &module);
    }
    let scratch = Arena::new(&card, 4096 * 4, MemoryKind::Device).expect("an arena").whole();
    queue.copy(&scratch, &canary.a).expect("a copy");
    queue.copy(&canary.a, &canary.b).expect("a copy");
    queue.copy(&canary.b, &scratch).expect("a copy");
    drop(scratch);
    let state = queue.wait().expect_err("no wait while recording");
    assert_eq!(state.status, Status::STATE, "{state}");
    let graph = queue.end_graph().expect("a graph");

    // Nothing has run yet; each replay computes and then swaps the inputs.
    queue.fill(&canary.out, 0).expect("a fill");
    queue.launch(&graph).expect("a replay");
    canary.check(&queue);
    queue.launch(&graph).expect("a replay");
    queue.launch(&graph).expect("a replay");
    canary.check(&queue);
    queue.launch(&graph).expect("a replay");
    let swapped = Canary { values: [canary.values[1].clone(), canary.values[0].clone()], ..canary };
    swapped.check(&queue);
}

#[test]
fn events_order_two_queues() {
    let card = card();
    let (first, second) = (Queue::with_profiling(&card).expect("a queue"), Queue::new(&card).expect("a queue"));
    let arena = Arena::new(&card, 2 << 20, MemoryKind::Device).expect("an arena");
    let [a, b] = [0, 1 << 20].map(|at| arena.span(at, 1 << 20).expect("a span"));
    for round in 0..20 {
        let before = first.record().expect("an event");
        first.fill(&a, round).expect("a fill");
        let filled = first.record().expect("an event");
        second.wait_event(&filled).expect("a wait");
        second.copy(&b, &a).expect("a copy");
        let copied = second.record().expect("an event");
        copied.wait().expect("a wait");
        assert!(filled.is_done().expect("an answer"));
        filled.elapsed_ns_since(&before).expect("a time");
        let untimed = copied.elapsed_ns_since(&before).expect_err("one queue takes no times");
        assert_eq!(untimed.status, Status::STATE, "{untimed}");
        let mut bytes = vec![0; 1 << 20];
        second.download(&mut bytes, &b).expect("a download");
        assert!(bytes.iter().all(|x| *x == round));
    }
}

#[test]
fn free_memory_is_part_of_all() {
    let card = card();
    let info = card.info();
    assert!(info.free_bytes.is_none_or(|free| free > 0 && free <= info.global_bytes), "{info:?}");
    let free = card.free_bytes();
    assert!(free > 0 && free <= info.global_bytes, "{free} of {}", info.global_bytes);
    if info.is_cpu {
        assert_eq!(info.free_bytes, None, "OpenCL does not say");
        assert!(device::host_free_bytes().is_some(), "Linux says it");
    }
}

#[test]
fn an_older_caller_gets_the_facts_it_knows() {
    let first = std::mem::offset_of!(sys::xk_device_info, free_bytes);
    let mut info = sys::xk_device_info { free_bytes: 77, ..Default::default() };
    for (bytes, status, free) in [(first - 1, Status::STRUCT, 77), (first, Status::OK, 77)] {
        info.struct_size = bytes as u32;
        // SAFETY: the struct is at least as large as it says.
        let got = unsafe { sys::xk_device_info_get(card().info().index, &mut info) };
        assert_eq!((Status(got), info.free_bytes, info.struct_size), (status, free, bytes as u32));
    }
    assert_eq!(info.compute_units, card().info().compute_units);
}

#[test]
fn parts_of_one_processor_have_the_same_bits() {
    let whole = card().info().clone();
    for count in [1, 2, 4, whole.compute_units + 1] {
        let parts: Vec<Card> = (0..count)
            .map(|index| Card::open_part(whole.index, Part { index, count }).expect("a part of a processor"))
            .collect();
        // All at once: parts that share a unit have contexts of their own.
        let work = parts.iter().enumerate().map(|(index, card)| {
            let queue = Queue::new(card).expect("a queue");
            let canary = Canary::new(card, &queue, 8192, index as u32);
            let module = module(card);
            canary.enqueue(&queue, &module);
            (queue, canary, module)
        });
        for (queue, canary, _module) in work.collect::<Vec<_>>() {
            canary.check(&queue);
        }
        for (index, card) in parts.iter().enumerate() {
            assert!(parts[..index].iter().all(|other| !other.is(card)));
        }
    }
    let bad = Card::open_part(whole.index, Part { index: 4, count: 4 }).expect_err("there are four");
    assert_eq!(bad.status, Status::VALUE, "{bad}");
}

#[test]
fn a_queue_is_idle_when_its_work_is_done() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    assert!(queue.drain(Duration::ZERO).expect("an answer"), "nothing was enqueued");
    let arena = Arena::new(&card, 256 << 20, MemoryKind::Device).expect("an arena");
    let [a, b] = [0, 128 << 20].map(|at| arena.span(at, 128 << 20).expect("a span"));
    queue.fill(&arena.whole(), 1).expect("a fill");
    queue.wait().expect("a wait");
    queue.begin_graph().expect("a recording");
    queue.copy(&b, &a).expect("a copy");
    assert!(queue.drain(Duration::ZERO).expect("an answer"), "what is recorded does not run");
    let graph = queue.end_graph().expect("a graph");
    // Copies of 2.5 GB take longer than it takes to ask.
    for _ in 0..20 {
        queue.copy(&b, &a).expect("a copy");
    }
    queue.launch(&graph).expect("a launch");
    assert!(!queue.drain(Duration::ZERO).expect("an answer"), "the copies cannot be done yet");
    queue.begin_graph().expect("a recording");
    assert!(!queue.drain(Duration::ZERO).expect("an answer"), "a recording changes nothing about that");
    queue.end_graph().expect("a graph");
    let mark = queue.record().expect("an event");
    assert!(queue.drain(Duration::from_secs(60)).expect("an answer"), "they are done in a minute");
    assert!(mark.is_done().expect("an answer"));
}

#[test]
fn bytes_come_from_another_card() {
    let info = card().info().clone();
    let [to, from] = [0, 1].map(|index| {
        let card = Card::open_part(info.index, Part { index, count: 2 }).expect("a part");
        (Queue::new(&card).expect("a queue"), Arena::new(&card, 4096, MemoryKind::Device).expect("an arena").whole())
    });
    if info.is_cpu {
        assert!(device::peer_works(&to.0, &from.0).expect("an answer"));
        assert!(device::peer_works(&to.0, &to.0).expect("an answer"));
    } else if !device::peer_works(&to.0, &from.0).expect("an answer") {
        let error = to.0.copy_from_peer(&to.1, &from.1).expect_err("no way");
        assert_eq!(error.status, Status::UNSUPPORTED, "{error}");
        return;
    }
    let sent: Vec<u8> = (0..4096u32).map(|i| ((i * 37) >> 2) as u8).collect();
    from.0.upload(&from.1, &sent).expect("an upload");
    to.0.fill(&to.1, 0).expect("a fill");
    // The source's last owner goes before the copy may have begun.
    let (src, own) = (from.1.span(3, 4000).expect("a span"), from.1.span(0, 4000).expect("a span"));
    drop(from.1);
    to.0.copy_from_peer(&to.1.span(90, 4000).expect("a span"), &src).expect("a copy");
    for (dst, src, part) in [(&to.1, &src, "4096"), (&own, &src, "card")] {
        let error = to.0.copy_from_peer(dst, src).expect_err("a mistake");
        assert_eq!(error.status, Status::VALUE, "{error}");
        assert!(error.text.contains("copy_from_peer") && error.text.contains(part), "{error}");
    }
    drop((src, own));
    let mut got = vec![0; 4096];
    to.0.download(&mut got, &to.1).expect("a download");
    assert_eq!(got[90..4090], sent[3..4003]);
    assert!(got[..90].iter().chain(&got[4090..]).all(|byte| *byte == 0));
}

/// The only file below a cache folder.
fn cache_file(folder: &Path) -> PathBuf {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_module_comes_from_its_cache_only_when_that_is_whole() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let code = kernels::find("selftest").expect("the selftest module");
    let folder = tempfile::tempdir().expect("a folder");
    let build = || {
        let module = Module::new(&card, code, Some(folder.path())).expect("a module");
        let canary = Canary::new(&card, &queue, 256, 4);
        canary.enqueue(&queue, &module);
        canary.check(&queue);
        module.is_from_cache()
    };
    assert!(!build(), "the cache was empty");
    assert!(build(), "the first build wrote the cache");
    let file = cache_file(folder.path());
    let whole = std::fs::read(&file).expect("the cache file");

    let mut damaged: Vec<Vec<u8>> = vec![Vec::new(), b"short".to_vec(), vec![0; 64], vec![0xff; whole.len()]];
    for at in [0, 7, 8, 11, 12, 19, 20, 30, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        damaged.push(flipped);
    }
    damaged.extend([1, 19, 20, 21, whole.len() / 2, whole.len() - 1].map(|n| whole[..n].to_vec()));
    damaged.push([&whole[..], b"x"].concat());
    for (case, bytes) in damaged.iter().enumerate() {
        std::fs::write(&file, bytes).expect("written");
        assert!(!build(), "case {case} was trusted");
        assert_eq!(cache_file(folder.path()), file, "case {case} left a file behind");
        assert!(build(), "case {case} was not replaced");
    }

    // A file in its right place, but of other code: what a copied or renamed cache looks like.
    let other = ModuleCode { hash: "0123456789abcdef", ..*code };
    let path = device::cache::module_path(folder.path(), card.info(), &other);
    std::fs::copy(&file, &path).expect("copied");
    let module = Module::new(&card, &other, Some(folder.path())).expect("a module");
    assert!(!module.is_from_cache(), "a binary of other code was trusted");
    let module = Module::new(&card, &other, Some(folder.path())).expect("a module");
    assert!(module.is_from_cache());
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let card = card();
    let code = kernels::find("selftest").expect("the selftest module");
    let folder = tempfile::tempdir().expect("a folder");
    // A file where a folder should be stops every user, root included.
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("written");
    for base in [file.as_path(), Path::new("/proc/no-such-folder"), Path::new("/dev/full")] {
        let module = Module::new(&card, code, Some(base)).expect("a module");
        assert!(!module.is_from_cache());
        module.kernel("canary").expect("the kernel");
    }
    // A folder in the file's place.
    let path = device::cache::module_path(folder.path(), card.info(), code);
    std::fs::create_dir_all(&path).expect("a folder");
    Module::new(&card, code, Some(folder.path())).expect("a module");
    let left: Vec<_> = std::fs::read_dir(path.parent().expect("a parent")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn modules_build_side_by_side() {
    let card = card();
    let code = kernels::find("selftest").expect("the selftest module");
    let folder = tempfile::tempdir().expect("a folder");
    for from_cache in [false, true] {
        let codes = ["one", "two", "three", "four"].map(|hash| ModuleCode { hash, ..*code });
        let modules = Module::new_all(&card, &codes.each_ref(), Some(folder.path()), 4).expect("modules");
        assert_eq!(modules.len(), 4);
        let queue = Queue::new(&card).expect("a queue");
        for module in modules {
            assert_eq!(module.is_from_cache(), from_cache);
            let canary = Canary::new(&card, &queue, 128, 5);
            canary.enqueue(&queue, &module);
            canary.check(&queue);
        }
    }
}

#[test]
fn mistakes_are_named() {
    let card = card();
    let expect = |error: device::DeviceError, status: Status, parts: &[&str]| {
        assert_eq!(error.status, status, "{error}");
        for part in parts {
            assert!(error.text.contains(part), "{error} does not say {part}");
        }
    };
    let huge = card.info().global_bytes * 16;
    let got = huge.to_string();
    let error = Arena::new(&card, huge, MemoryKind::Device).expect_err("too much");
    expect(error, Status::DEVICE_MEMORY, &["xk_arena_create", "bytes", &got]);
    expect(Arena::new(&card, 0, MemoryKind::Host).expect_err("nothing"), Status::VALUE, &["bytes", "got 0"]);
    expect(Card::open(4000).expect_err("no such device"), Status::NOT_FOUND, &["device index", "4000"]);

    let module = module(&card);
    expect(module.kernel("kanary").expect_err("no such kernel"), Status::NOT_FOUND, &["canary", "kanary", "selftest"]);
    let code = kernels::find("selftest").expect("the selftest module");
    for spirv in [&code.spirv[4..], &code.spirv[..16], &code.spirv[..code.spirv.len() - 1], b""] {
        let bad = ModuleCode { spirv, ..*code };
        expect(Module::new(&card, &bad, None).expect_err("no SPIR-V"), Status::VALUE, &["selftest", "SPIR-V"]);
    }
    let bad = ModuleCode { kernels: &["canary", "nobody"], ..*code };
    expect(Module::new(&card, &bad, None).expect_err("a kernel too many"), Status::BUILD, &["selftest"]);

    let arena = Arena::new(&card, 4096, MemoryKind::Device).expect("an arena");
    expect(arena.span(4000, 97).expect_err("past the end"), Status::VALUE, &["4096", "97"]);
    expect(arena.span(u64::MAX, 2).expect_err("past the end"), Status::VALUE, &["4096"]);
    assert!(arena.whole().host_ptr().is_none());

    let queue = Queue::new(&card).expect("a queue");
    expect(queue.end_graph().expect_err("no recording"), Status::STATE, &["recording"]);
    let kernel = module.kernel("canary").expect("the kernel");
    let span = arena.span(0, 256).expect("a span");
    let out = arena.span(256, 1536).expect("a span");
    let error = device::canary(&queue, &kernel, 63, &span, &span, &out).expect_err("63 is no multiple of 64");
    expect(error, Status::VALUE, &["xk_op_canary", "n", "63"]);
    let error = device::canary(&queue, &kernel, 128, &span, &span, &out).expect_err("a short span");
    expect(error, Status::VALUE, &["a", "512", "256"]);
    let other = Queue::new(&self::card()).expect("a queue");
    let error = device::canary(&other, &kernel, 64, &span, &span, &out).expect_err("another card's kernel");
    expect(error, Status::VALUE, &["canary", "card"]);

    // The caller's mistakes leave the queue as it was.
    device::canary(&queue, &kernel, 64, &span, &span, &out).expect("a launch");
    queue.wait().expect("a wait");
}

#[test]
fn the_first_failing_operation_poisons_its_queue() {
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let kernel = module(&card).kernel("add_wide").expect("the kernel");
    let arena = Arena::new(&card, 4096, MemoryKind::Device).expect("an arena");
    let (span, out) = (arena.span(0, 256).expect("a span"), arena.span(256, 1536).expect("a span"));
    queue.fill(&span, 0).expect("a fill");
    let first = device::canary(&queue, &kernel, 64, &span, &span, &out).expect_err("a wrong argument size");
    assert_eq!(first.status, Status::DEVICE, "{first}");
    assert!(first.text.contains("add_wide (operation 2 of the queue)"), "{first}");
    let text = |error: device::DeviceError| error.text.split_once(": ").expect("a call's name").1.to_owned();
    let again = queue.fill(&span, 0).expect_err("a poisoned queue");
    assert_eq!(again.status, first.status);
    let first = text(first);
    assert_eq!(text(again), first);
    assert_eq!(text(queue.wait().expect_err("a poisoned queue")), first);
    assert_eq!(text(queue.begin_graph().expect_err("a poisoned queue")), first);
    Queue::new(&card).expect("a queue").fill(&span, 0).expect("another queue is not affected");
}

#[test]
fn null_pointers_are_refused_and_nothing_is_written() {
    use std::ptr::{null, null_mut};
    let card = card();
    let queue = Queue::new(&card).expect("a queue");
    let mut arena = null_mut();
    let mut module = null_mut();
    let mut opened = null_mut();
    let desc = sys::xk_card_desc { struct_size: 3, device_index: 0, part_count: 0, part_index: 0 };
    let mut args = sys::xk_canary_args {
        struct_size: size_of::<sys::xk_canary_args>() as u32,
        n: 64,
        kernel: null_mut(),
        a: null(),
        b: null(),
        out: null_mut(),
    };
    // SAFETY: every call is given a null pointer, or a size that is not a struct's, and refuses it before any use.
    let statuses = unsafe {
        [
            sys::xk_abi_version(null_mut(), null_mut()),
            sys::xk_device_count(null_mut()),
            sys::xk_device_info_get(0, null_mut()),
            sys::xk_card_create(null(), &mut opened),
            sys::xk_arena_create(null_mut(), 64, sys::XK_MEMORY_DEVICE, &mut arena),
            sys::xk_arena_base(null(), null_mut()),
            sys::xk_queue_create(null_mut(), 0, null_mut()),
            sys::xk_queue_wait(null_mut()),
            sys::xk_queue_idle(queue.raw(), null_mut()),
            sys::xk_queue_copy_peer(queue.raw(), null_mut(), null(), 1),
            sys::xk_card_peer(null_mut(), null_mut(), null_mut()),
            sys::xk_fault_count(sys::XK_FAULT_COPY, null_mut()),
            sys::xk_live_objects(null_mut()),
            sys::xk_queue_copy(queue.raw(), null_mut(), null(), 1),
            sys::xk_queue_fill(queue.raw(), null_mut(), 0, 1),
            sys::xk_queue_wait_event(queue.raw(), null()),
            sys::xk_event_record(queue.raw(), null_mut()),
            sys::xk_event_wait(null_mut()),
            sys::xk_event_done(null_mut(), null_mut()),
            sys::xk_event_elapsed_ns(null(), null(), null_mut()),
            sys::xk_module_create(null_mut(), null(), &mut module),
            sys::xk_module_from_cache(null(), null_mut()),
            sys::xk_module_kernel(null(), null(), null_mut()),
            sys::xk_graph_begin(null_mut()),
            sys::xk_graph_end(null_mut(), null_mut()),
            sys::xk_graph_launch(queue.raw(), null_mut()),
            sys::xk_op_canary(queue.raw(), null()),
            sys::xk_op_canary(queue.raw(), &args),
        ]
    };
    for (index, status) in statuses.into_iter().enumerate() {
        assert_eq!(Status(status), Status::NULL, "call {index}");
    }
    args.struct_size -= 8;
    // SAFETY: as above.
    let statuses = unsafe { [sys::xk_card_create(&desc, &mut opened), sys::xk_op_canary(queue.raw(), &args)] };
    assert_eq!(statuses.map(Status), [Status::STRUCT; 2]);
    assert!(arena.is_null() && module.is_null() && opened.is_null());
    // SAFETY: destroying nothing does nothing.
    unsafe {
        sys::xk_card_destroy(null_mut());
        sys::xk_arena_destroy(null_mut());
        sys::xk_queue_destroy(null_mut());
        sys::xk_event_destroy(null_mut());
        sys::xk_module_destroy(null_mut());
        sys::xk_graph_destroy(null_mut());
    }
}
