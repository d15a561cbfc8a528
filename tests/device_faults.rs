//! Operations of a device that fail, one after the other, on the CPU device.

#[path = "support/canary.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod canary;
#[path = "support/device.rs"]
mod device_choice;
#[path = "support/faults.rs"]
mod faults;

use bankshot::device::fault::{self, Fault, Live};
use bankshot::device::{self, Arena, Card, DeviceError, MemoryKind, Module, Part, PeerError, Queue, Span, Status};
use canary::module;
use faults::Turn;
use std::time::Duration;

const N: u32 = 256;
const NOTHING: Live = Live { cards: 0, arenas: 0, arena_bytes: 0, queues: 0, events: 0, modules: 0, graphs: 0 };

fn card() -> Card {
    Card::open(device_choice::test_device().index).expect("a card")
}

/// Some of every operation: 2 arenas, 3 copies and a fill of which one is recorded, 3 launches of which one is recorded
/// and one a graph's, 2 events.
fn work(card: &Card, module: &Module) -> Result<Vec<u8>, DeviceError> {
    let bytes = u64::from(N) * 4;
    let queue = Queue::new(card)?;
    let memory = Arena::new(card, bytes * 8, MemoryKind::Device)?;
    let pinned = Arena::new(card, bytes, MemoryKind::Host)?;
    let [a, b, out] = [(0, 1), (1, 1), (2, 6)].map(|(at, n)| memory.span(bytes * at, bytes * n).expect("a span"));
    queue.fill(&memory.whole(), 0x3f)?;
    queue.copy(&a, &pinned.whole())?;
    let kernel = module.kernel("canary")?;
    device::canary(&queue, &kernel, N, &a, &b, &out)?;
    let launched = queue.record()?;
    queue.begin_graph()?;
    queue.copy(&a, &b)?;
    device::canary(&queue, &kernel, N, &a, &b, &out)?;
    let graph = queue.end_graph()?;
    queue.wait_event(&launched)?;
    queue.launch(&graph)?;
    queue.record()?.wait()?;
    let mut result = vec![0; bytes as usize * 6];
    queue.download(&mut result, &out)?;
    Ok(result)
}

#[test]
fn each_operation_can_fail_and_leaves_nothing_behind() {
    let turn = Turn::take();
    {
        let card = card();
        let module = module(&card);
        let held = turn.live();
        let right = work(&card, &module).expect("work");
        let device = [Status::DEVICE];
        let memory = [Status::DEVICE_MEMORY, Status::HOST_MEMORY];
        for (kind, n, statuses, text) in [
            (Fault::Allocation, 2, &memory[..], "xk_arena_create"),
            (Fault::Launch, 3, &device, "(operation "),
            (Fault::Copy, 4, &device, "(operation "),
            (Fault::Lost, 3, &[Status::DEVICE_LOST], "DEVICE_LOST"),
        ] {
            let counted = turn.count(kind, || assert_eq!(work(&card, &module).expect("work"), right));
            assert_eq!(counted, n, "{kind:?}");
            let failed: Vec<Status> = (0..n)
                .map(|after| {
                    turn.set(kind, after);
                    let error = work(&card, &module).expect_err("a fault");
                    assert!(error.text.contains(text), "{kind:?} {after}: {error}");
                    assert_eq!(fault::count(kind), after + 1, "{kind:?} {after}: nothing goes on after it");
                    assert_eq!(turn.live(), held, "{kind:?} {after}");
                    error.status
                })
                .collect();
            assert!(failed.iter().all(|status| statuses.contains(status)), "{kind:?}: {failed:?}");
            assert!(statuses.iter().all(|status| failed.contains(status)), "{kind:?}: {failed:?}");
            turn.set(kind, n);
            assert_eq!(work(&card, &module).expect("a fault that is not reached"), right);
            turn.clear();
            assert_eq!(work(&card, &module).expect("no fault"), right);
            assert_eq!(fault::count(kind), 0, "nothing counts without a fault");
        }
    }
    assert_eq!(turn.live(), NOTHING);
}

#[test]
fn what_is_alive_is_counted() {
    let turn = Turn::take();
    assert_eq!(turn.live(), NOTHING);
    let card = card();
    let queues = [(); 2].map(|()| Queue::new(&card).expect("a queue"));
    let arenas = [100, 23].map(|bytes| Arena::new(&card, bytes, MemoryKind::Device).expect("an arena"));
    Arena::new(&card, 0, MemoryKind::Device).expect_err("no bytes");
    let module = module(&card);
    let events = [(); 3].map(|()| queues[0].record().expect("an event"));
    queues[1].begin_graph().expect("a recording");
    queues[1].fill(&arenas[0].whole(), 1).expect("a fill");
    let graph = queues[1].end_graph().expect("a graph");
    let all = Live { cards: 1, arenas: 2, arena_bytes: 123, queues: 2, events: 3, modules: 1, graphs: 1 };
    assert_eq!(turn.live(), all);
    let [kept, dropped] = arenas;
    drop((dropped, kept, events));
    assert_eq!(turn.live(), Live { arenas: 1, arena_bytes: 100, events: 0, ..all }, "the graph keeps one");
    drop((queues, card, module));
    assert_eq!(turn.live(), Live { cards: 1, queues: 0, modules: 0, arenas: 1, arena_bytes: 100, events: 0, ..all });
    drop(graph);
    assert_eq!(turn.live(), NOTHING);
}

#[test]
fn a_failing_operation_poisons_its_queue_alone() {
    let turn = Turn::take();
    let card = card();
    let (first, second) = (Queue::new(&card).expect("a queue"), Queue::new(&card).expect("a queue"));
    let span = Arena::new(&card, 4096, MemoryKind::Device).expect("an arena").whole();
    turn.set(Fault::Copy, 1);
    first.fill(&span, 1).expect("the fault comes second");
    let error = first.fill(&span, 2).expect_err("a fault");
    assert_eq!(error.status, Status::DEVICE);
    assert!(error.text.contains("fill (operation 2 of the queue)"), "{error}");
    assert_eq!(first.wait().expect_err("a poisoned queue").status, Status::DEVICE);
    assert!(first.drain(Duration::from_secs(60)).expect("an answer"), "a poisoned queue becomes idle");
    let mut got = vec![0; 4096];
    second.download(&mut got, &span).expect("another queue");
    assert!(got.iter().all(|byte| *byte == 1), "what failed was not done");
}

/// Launches the canary once.
fn launch(queue: &Queue, module: &Module, span: &Span) -> Result<(), DeviceError> {
    let part = |at: u64, n: u64| span.span(at * 1024, n * 1024).expect("a span");
    device::canary(queue, &module.kernel("canary")?, N, &part(0, 1), &part(1, 1), &part(2, 6))
}

#[test]
fn a_lost_device_is_lost_to_every_queue_and_event() {
    let turn = Turn::take();
    let card = card();
    let module = module(&card);
    let (first, second) = (Queue::new(&card).expect("a queue"), Queue::new(&card).expect("a queue"));
    let span = Arena::new(&card, 8192, MemoryKind::Device).expect("an arena").whole();
    first.fill(&span, 0).expect("a fill");
    let event = second.record().expect("an event");
    turn.set(Fault::Lost, 1);
    launch(&first, &module, &span).expect("the device is there");
    second.wait().expect("the device is there");
    assert!(event.is_done().expect("the device is there"));
    let lost = [
        launch(&first, &module, &span),
        first.wait(),
        second.fill(&span, 0),
        second.wait(),
        event.is_done().map(|_| ()),
        event.wait(),
        Queue::new(&card).expect("queues are the host's").wait(),
    ];
    for (index, result) in lost.into_iter().enumerate() {
        assert_eq!(result.expect_err("a lost device").status, Status::DEVICE_LOST, "call {index}");
    }
    let lost = second.drain(Duration::from_millis(5)).expect_err("a lost device does not answer");
    assert_eq!(lost.status, Status::DEVICE_LOST);
    turn.clear();
    assert!(second.drain(Duration::from_secs(60)).expect("an answer"), "it had nothing to do");
    assert_eq!(second.wait().expect_err("a poisoned queue").status, Status::DEVICE_LOST);
    Queue::new(&card).expect("a queue").wait().expect("a new queue");
}

#[test]
fn a_stalled_device_never_becomes_idle() {
    let turn = Turn::take();
    let card = card();
    let module = module(&card);
    let (first, second) = (Queue::new(&card).expect("a queue"), Queue::new(&card).expect("a queue"));
    let span = Arena::new(&card, 8192, MemoryKind::Device).expect("an arena").whole();
    first.fill(&span, 0).expect("a fill");
    turn.set(Fault::Stall, 1);
    launch(&first, &module, &span).expect("a launch");
    assert!(first.drain(Duration::from_secs(60)).expect("an answer"), "the stall comes second");
    launch(&first, &module, &span).expect("a launch");
    let event = first.record().expect("an event");
    event.wait().expect("the work goes on");
    first.wait().expect("the work goes on");
    let start = std::time::Instant::now();
    assert!(
        !first.drain(Duration::from_millis(30)).expect("an answer")
            && !second.drain(Duration::ZERO).expect("an answer")
    );
    assert!(start.elapsed() >= Duration::from_millis(30), "time was not over");
    assert!(!event.is_done().expect("an answer"));
    turn.clear();
    assert!(first.drain(Duration::ZERO).expect("an answer") && event.is_done().expect("an answer"));
}

#[test]
fn copies_between_cards_are_not_believed() {
    let turn = Turn::take();
    let index = device_choice::test_device().index;
    let [to, from] = [0, 1].map(|part| {
        let card = Card::open_part(index, Part { index: part, count: 2 }).expect("a part");
        Queue::new(&card).expect("a queue")
    });
    let mut answer = false;
    let held = turn.live();
    let copies = turn.count(Fault::Peer, || answer = device::peer_works(&to, &from).expect("an answer"));
    if !answer {
        assert_eq!(copies, 0);
        return;
    }
    assert!(copies >= 6, "{copies} copies");
    for after in 0..copies {
        turn.set(Fault::Peer, after);
        assert!(!device::peer_works(&to, &from).expect("an answer"), "wrong bytes from copy {after} on were believed");
    }
    let count = turn.count(Fault::Copy, || assert!(device::peer_works(&to, &from).expect("an answer")));
    // For each copy two uploads, itself and a download.
    assert_eq!(count, copies * 4);
    for after in 0..count {
        turn.set(Fault::Copy, after);
        match device::peer_works(&to, &from) {
            Ok(works) => assert!(!works && after % 4 == 2, "operation {after}"),
            // The upload to the card that is copied from, or the other's upload and download.
            Err(PeerError::From(error)) => {
                assert!(error.status == Status::DEVICE && after % 4 == 0, "{after}: {error}")
            }
            Err(PeerError::To(error)) => assert!(error.status == Status::DEVICE && after % 2 == 1, "{after}: {error}"),
        }
    }
    for (kind, n) in [(Fault::Allocation, 2), (Fault::Lost, 0)] {
        assert_eq!(turn.count(kind, || assert!(device::peer_works(&to, &from).expect("an answer"))), n);
        for after in 0..n {
            turn.set(kind, after);
            let error = device::peer_works(&to, &from).expect_err("no memory");
            match error {
                PeerError::From(error) => assert_eq!((error.status, after), (Status::DEVICE_MEMORY, 0), "{error}"),
                PeerError::To(error) => assert_eq!((error.status, after), (Status::DEVICE_MEMORY, 1), "{error}"),
            }
        }
    }
    turn.clear();
    assert_eq!(turn.live(), held);
    to.wait().expect("the caller's queues are as they were");
    from.wait().expect("the caller's queues are as they were");
}
