//! In-order queues and events.

use super::status::check;
use super::{Arena, Card, DeviceError, Graph, Kernel, Module, Span, Status, sys};
use std::cell::RefCell;
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

/// How often [`Queue::drain`] looks.
const POLL: Duration = Duration::from_micros(200);

/// What a recorded graph uses, and therefore keeps.
#[derive(Debug, Default)]
pub(super) struct Kept {
    arenas: Vec<Arena>,
    modules: Vec<Module>,
}

/// An in-order queue of a card.
///
/// Calls enqueue and return. The first operation that fails poisons the queue: every later call gives its error.
#[derive(Debug)]
pub struct Queue {
    raw: NonNull<sys::xk_queue>,
    card: Card,
    /// While a graph is being recorded.
    recording: RefCell<Option<Kept>>,
    /// Arenas of other cards that work in flight may use: their destruction does not wait for this queue.
    foreign: RefCell<Vec<Arena>>,
}

// SAFETY: the ABI ties no queue to a thread; it asks for one call at a time, which `!Sync` gives.
unsafe impl Send for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more; the call waits for the work in flight.
        unsafe { sys::xk_queue_destroy(self.raw.as_ptr()) };
    }
}

impl Queue {
    pub fn new(card: &Card) -> Result<Self, DeviceError> {
        Self::with_flags(card, 0)
    }

    /// A queue whose events carry times.
    pub fn with_profiling(card: &Card) -> Result<Self, DeviceError> {
        Self::with_flags(card, sys::XK_QUEUE_PROFILING)
    }

    fn with_flags(card: &Card, flags: u32) -> Result<Self, DeviceError> {
        let mut raw = null_mut();
        // SAFETY: the card is live and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_queue_create(card.raw(), flags, &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_queue_create gives a queue with XK_OK");
        Ok(Self { raw, card: card.clone(), recording: RefCell::new(None), foreign: RefCell::default() })
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    /// For op calls. The caller keeps to the rules of `xk.h`.
    pub fn raw(&self) -> *mut sys::xk_queue {
        self.raw.as_ptr()
    }

    pub fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: the queue is live, and `!Sync` makes this its only call.
        check(unsafe { sys::xk_queue_wait(self.raw()) })?;
        self.foreign.borrow_mut().clear();
        Ok(())
    }

    /// Waits at most `deadline` until everything enqueued is done, also on a poisoned queue. False when time is over.
    ///
    /// # Errors
    /// When the device does not answer, as a lost one.
    pub fn drain(&self, deadline: Duration) -> Result<bool, DeviceError> {
        let start = Instant::now();
        loop {
            let mut idle = 0;
            // SAFETY: the queue is live and the out-pointer is to a live number.
            check(unsafe { sys::xk_queue_idle(self.raw(), &mut idle) })?;
            if idle == 1 {
                self.foreign.borrow_mut().clear();
                return Ok(true);
            }
            let left = deadline.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Copies one span to another of the same length.
    pub fn copy(&self, dst: &Span, src: &Span) -> Result<(), DeviceError> {
        same_length("Queue::copy", dst.bytes(), src.bytes())?;
        self.keep(dst);
        self.keep(src);
        // SAFETY: both ranges are inside live arenas, whose destruction waits for this queue.
        check(unsafe { sys::xk_queue_copy(self.raw(), dst.ptr(), src.ptr(), dst.bytes()) })
    }

    /// Copies a span of a card to a span of the same length on this queue's card, if [`peer_works`] between them. The
    /// caller sees to it that the source is written before, and is not written until the copy is done: queues of two
    /// cards know nothing of each other.
    ///
    /// [`peer_works`]: super::peer_works
    pub fn copy_from_peer(&self, dst: &Span, src: &Span) -> Result<(), DeviceError> {
        const CALL: &str = "Queue::copy_from_peer";
        same_length(CALL, dst.bytes(), src.bytes())?;
        if !dst.arena().card().is(&self.card) {
            let text = format!("{CALL}: dst: expected memory of the queue's card, got memory of another card");
            return Err(DeviceError { status: Status::VALUE, text });
        }
        if !self.card.may_copy_from(src.arena().card())? {
            let text = format!(
                "{CALL}: src: expected memory that {} can read, got memory of {} ({})",
                self.card.info().name,
                src.arena().card().info().name,
                src.arena().card().info().backend
            );
            return Err(DeviceError { status: Status::UNSUPPORTED, text });
        }
        self.keep(dst);
        self.keep(src);
        // SAFETY: both ranges are inside live arenas; dst's destruction waits for this queue, and src is kept.
        check(unsafe { sys::xk_queue_copy_peer(self.raw(), dst.ptr(), src.ptr(), dst.bytes()) })
    }

    pub fn fill(&self, dst: &Span, value: u8) -> Result<(), DeviceError> {
        self.keep(dst);
        // SAFETY: the range is inside a live arena, whose destruction waits for this queue.
        check(unsafe { sys::xk_queue_fill(self.raw(), dst.ptr(), value, dst.bytes()) })
    }

    /// Copies host bytes to a span, and waits for it. A wait that fails means that the device is gone for good, and
    /// with it the reader of `src`.
    pub fn upload(&self, dst: &Span, src: &[u8]) -> Result<(), DeviceError> {
        same_length("Queue::upload", dst.bytes(), src.len() as u64)?;
        self.refuse_recording("Queue::upload")?;
        // SAFETY: the span is inside a live arena, and the slice outlives the wait below.
        check(unsafe { sys::xk_queue_copy(self.raw(), dst.ptr(), src.as_ptr().cast(), dst.bytes()) })?;
        self.wait()
    }

    /// Copies a span to host bytes, and waits for it.
    pub fn download(&self, dst: &mut [u8], src: &Span) -> Result<(), DeviceError> {
        same_length("Queue::download", dst.len() as u64, src.bytes())?;
        self.refuse_recording("Queue::download")?;
        // SAFETY: the span is inside a live arena, and the slice is ours alone until the wait below has returned.
        check(unsafe { sys::xk_queue_copy(self.raw(), dst.as_mut_ptr().cast(), src.ptr(), src.bytes()) })?;
        self.wait()
    }

    /// Marks the point that the queue has reached.
    pub fn record(&self) -> Result<Event, DeviceError> {
        let mut raw = null_mut();
        // SAFETY: the queue is live and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_event_record(self.raw(), &mut raw) })?;
        Ok(Event { raw: NonNull::new(raw).expect("xk_event_record gives an event with XK_OK") })
    }

    /// Makes later work wait for an event of any queue of the card.
    pub fn wait_event(&self, event: &Event) -> Result<(), DeviceError> {
        // SAFETY: both handles are live.
        check(unsafe { sys::xk_queue_wait_event(self.raw(), event.raw.as_ptr()) })
    }

    /// From here on, calls are recorded instead of run.
    pub fn begin_graph(&self) -> Result<(), DeviceError> {
        // SAFETY: the queue is live.
        check(unsafe { sys::xk_graph_begin(self.raw()) })?;
        *self.recording.borrow_mut() = Some(Kept::default());
        Ok(())
    }

    /// Ends the recording. The graph keeps every arena and module that was named to [`Queue::keep`] and
    /// [`Queue::keep_kernel`] meanwhile.
    pub fn end_graph(&self) -> Result<Graph, DeviceError> {
        let kept = self.recording.borrow_mut().take().unwrap_or_default();
        let mut raw = null_mut();
        // SAFETY: the queue is live and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_graph_end(self.raw(), &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_graph_end gives a graph with XK_OK");
        Ok(Graph::new(raw, kept))
    }

    pub fn launch(&self, graph: &Graph) -> Result<(), DeviceError> {
        // SAFETY: both handles are live, and the graph keeps what it uses; its destruction waits for this queue.
        check(unsafe { sys::xk_graph_launch(self.raw(), graph.raw()) })
    }

    /// Keeps a span's memory alive: for a recording until its graph is dropped, and memory of another card until a wait.
    /// Memory of the queue's card waits for the queue by itself. Op launches call it for every span.
    pub fn keep(&self, span: &Span) {
        let push = |arenas: &mut Vec<Arena>| {
            if !arenas.iter().any(|a| a.is(span.arena())) {
                arenas.push(span.arena().clone());
            }
        };
        if let Some(kept) = self.recording.borrow_mut().as_mut() {
            push(&mut kept.arenas);
        } else if !span.arena().card().is(&self.card) {
            push(&mut self.foreign.borrow_mut());
        }
    }

    /// The same for a kernel.
    pub fn keep_kernel(&self, kernel: &Kernel) {
        if let Some(kept) = self.recording.borrow_mut().as_mut()
            && !kept.modules.iter().any(|m| m.is(kernel.module()))
        {
            kept.modules.push(kernel.module().clone());
        }
    }

    fn refuse_recording(&self, call: &str) -> Result<(), DeviceError> {
        if self.recording.borrow().is_some() {
            let text = format!("{call}: expected a queue that is not recording a graph, got one that is");
            return Err(DeviceError { status: Status::STATE, text });
        }
        Ok(())
    }
}

fn same_length(call: &str, dst: u64, src: u64) -> Result<(), DeviceError> {
    if dst == src {
        return Ok(());
    }
    let text = format!("{call}: expected as many bytes to write as to read, got {dst} and {src}");
    Err(DeviceError { status: Status::VALUE, text })
}

/// A point in a queue's work.
#[derive(Debug)]
pub struct Event {
    raw: NonNull<sys::xk_event>,
}

// SAFETY: the ABI ties no event to a thread; it asks for one call at a time, which `!Sync` gives.
unsafe impl Send for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more.
        unsafe { sys::xk_event_destroy(self.raw.as_ptr()) };
    }
}

impl Event {
    pub fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: the event is live.
        check(unsafe { sys::xk_event_wait(self.raw.as_ptr()) })
    }

    pub fn is_done(&self) -> Result<bool, DeviceError> {
        let mut done = 0;
        // SAFETY: the event is live and the out-pointer is to a live number.
        check(unsafe { sys::xk_event_done(self.raw.as_ptr(), &mut done) })?;
        Ok(done == 1)
    }

    /// Nanoseconds from an earlier event to this one; both reached, and of queues with profiling.
    pub fn elapsed_ns_since(&self, earlier: &Event) -> Result<u64, DeviceError> {
        let mut nanoseconds = 0;
        // SAFETY: both events are live and the out-pointer is to a live number.
        check(unsafe { sys::xk_event_elapsed_ns(earlier.raw.as_ptr(), self.raw.as_ptr(), &mut nanoseconds) })?;
        Ok(nanoseconds)
    }
}
