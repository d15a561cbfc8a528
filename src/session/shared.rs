//! An engine that several sessions share.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::open::{OpenOptions, Prepared, SpareBank};
use super::{Error, Keeper, Session, SessionOptions};
use crate::device::KeptHandlers;
use crate::exec::{Engine, EngineError};
use crate::load::{Model, Progress, RowCounters};
use crate::plan::Plan;
use crate::residency::Counters;
use crate::state::{BankCounters, Identity, Layout, Store};
use crate::text::{ChatTemplate, Message, RenderOptions, TextError, Tokenizer};

/// A loaded model that any number of [`Session`]s compute on, from any thread. Clones are the same engine.
///
/// Sessions take turns, in the order in which they ask: one step, or one chunk of a prompt, at a time. When another session's turn comes, the state
/// of the one before is kept as a snapshot in the bank, so that nothing has to be computed again. Without memory for snapshots
/// ([`OpenOptions::host_bank_bytes`] of 0) or when it is full, what was displaced is computed again from the nearest one: the same results, later.
///
/// ```
/// use bankshot::session::{OpenOptions, SessionOptions, SharedEngine};
///
/// let mut options = OpenOptions::default();
/// options.device = Some("cpu".to_owned());
/// options.context = Some(128);
/// let engine = SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?;
/// let mut session = engine.session(SessionOptions::default());
/// session.feed_text("Once upon a time")?;
/// let text: String = session.tokens(3).map(|event| event.map(|event| event.text)).collect::<Result<_, _>>()?;
/// assert_eq!(text, " there was a");
/// # Ok::<(), bankshot::session::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedEngine(Arc<Shared>);

struct Shared {
    slot: Mutex<Slot>,
    /// Tickets of the calls that wait, that of the one at work in front.
    queue: Mutex<VecDeque<u64>>,
    changed: Condvar,
    numbers: AtomicU64,
    closing: AtomicBool,
    model: Arc<Model>,
    plan: Arc<Plan>,
    layout: Layout,
    template: Result<Option<ChatTemplate>, TextError>,
    /// Why the template must not be used any more.
    template_stuck: OnceLock<TextError>,
    identity: OnceLock<Identity>,
}

struct Slot {
    engine: Option<Engine>,
    /// The session whose sequence the engine's is.
    live: Option<u64>,
    /// A call ended by a panic.
    broken: bool,
}

/// What an engine has counted.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EngineCounters {
    /// Rows of the n-gram table, if the model has one.
    pub ngram_rows: Option<RowCounters>,
    /// Experts, if not all always are resident.
    pub experts: Option<Counters>,
    /// Snapshots of sequences, if there is memory for them.
    pub bank: Option<BankCounters>,
}

impl SharedEngine {
    /// Opens a model's file on the cards that the options name, and loads it. `progress` is called on this thread.
    ///
    /// # Errors
    /// When the file cannot be used, the options do not suit it, its plan does not fit the cards, or a device fails.
    pub fn open(path: &Path, options: OpenOptions, progress: &mut dyn FnMut(Progress)) -> Result<SharedEngine, Error> {
        SharedEngine::load(Model::open(path)?, options, progress)
    }

    /// The same with a file that is part of the program, as [`crate::demo::MODEL`] is.
    ///
    /// # Errors
    /// As [`SharedEngine::open`].
    pub fn open_static(
        bytes: &'static [u8],
        options: OpenOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<SharedEngine, Error> {
        SharedEngine::load(Model::from_static(bytes)?, options, progress)
    }

    fn load(model: Model, options: OpenOptions, progress: &mut dyn FnMut(Progress)) -> Result<SharedEngine, Error> {
        let _handlers = KeptHandlers::begin();
        Ok(SharedEngine::new(Prepared::new(model, &options, SpareBank::Yes)?.open(progress)?))
    }

    /// Shares an engine that is open already.
    pub fn new(engine: Engine) -> SharedEngine {
        let (model, plan) = (engine.shared_model(), engine.shared_plan());
        tracing::info!(context = plan.options.context, cards = plan.cards.len(), "the engine is open");
        SharedEngine(Arc::new(Shared {
            layout: engine.layout().clone(),
            template: model.chat_template(),
            slot: Mutex::new(Slot { engine: Some(engine), live: None, broken: false }),
            queue: Mutex::new(VecDeque::new()),
            changed: Condvar::new(),
            numbers: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            model,
            plan,
            template_stuck: OnceLock::new(),
            identity: OnceLock::new(),
        }))
    }

    /// Begins a session without tokens.
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::new(self.clone(), self.number(), options)
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.0.model
    }

    /// What was planned; [`Plan::to_json`] is all of it, and its `Display` a text.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.0.model.tokenizer()
    }

    /// Tokens that a session can have.
    pub fn context(&self) -> usize {
        self.0.plan.options.context
    }

    /// The model's own text of a conversation.
    ///
    /// ```
    /// # use bankshot::session::{OpenOptions, SharedEngine};
    /// # use bankshot::text::{Message, RenderOptions};
    /// # let mut options = OpenOptions::default();
    /// # options.context = Some(64);
    /// # options.device = Some("cpu".to_owned());
    /// # let engine = SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?;
    /// let messages = [Message { role: "user".to_owned(), content: "Hello!".to_owned() }];
    /// let options = RenderOptions { add_generation_prompt: true, enable_thinking: Some(false) };
    /// assert!(engine.render(&messages, options)?.contains("Hello!"));
    /// # Ok::<(), bankshot::session::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the model has no template, or it fails. One that does not end in time is not used again.
    pub fn render(&self, messages: &[Message], options: RenderOptions) -> Result<String, Error> {
        if let Some(stuck) = self.0.template_stuck.get() {
            return Err(stuck.clone().into());
        }
        let template = self.0.template.as_ref().map_err(TextError::clone)?;
        let Some(template) = template else {
            return Err(Error::NoTemplate { path: self.0.model.file().path().display().to_string() });
        };
        Ok(template.render(messages, options).inspect_err(|error| {
            if matches!(error, TextError::TemplateTime { .. }) {
                // Who was first does not matter.
                let _ = self.0.template_stuck.set(error.clone());
            }
        })?)
    }

    /// What was counted so far. Waits for the running call.
    ///
    /// # Errors
    /// When the engine is closed.
    pub fn counters(&self) -> Result<EngineCounters, Error> {
        let mut turn = self.lock()?;
        let engine = turn.engine()?;
        Ok(EngineCounters {
            ngram_rows: engine.ngram_counters(),
            experts: engine.expert_counters(),
            bank: engine.bank_counters(),
        })
    }

    /// A folder of saved sessions, for [`Session::save`] and [`Session::restore`]. It is created if it is missing.
    ///
    /// # Errors
    /// When the folder cannot be created, or the model's files cannot be read.
    pub fn folder(&self, dir: &Path) -> Result<Keeper, Error> {
        let store = Store::open(dir)?;
        let identity = match self.0.identity.get() {
            Some(identity) => identity.clone(),
            None => {
                let made = Identity::of(&self.0.model, &self.0.plan)?;
                self.0.identity.get_or_init(|| made).clone()
            }
        };
        Ok(Keeper::with_identity(store, identity))
    }

    /// Waits for the running call, frees everything in order, and lets every later call of a session end with [`Error::Closed`]. Closing again is
    /// no error. Sessions stay readable.
    ///
    /// # Errors
    /// When the running call does not end before the deadline: calls that wait end with [`Error::Closed`] all the same, and `close` can be called
    /// again. When a device does not come to rest.
    pub fn close(&self, deadline: Duration) -> Result<(), Error> {
        let begin = Instant::now();
        self.0.closing.store(true, Ordering::SeqCst);
        let mut turn = self.turn(Some(deadline))?;
        let Some(engine) = turn.slot().engine.take() else { return Ok(()) };
        tracing::info!("the engine is closed");
        Ok(engine.close(deadline.saturating_sub(begin.elapsed()))?)
    }

    /// Whether [`SharedEngine::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.0.closing.load(Ordering::SeqCst)
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn number(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for this call's turn.
    fn turn(&self, deadline: Option<Duration>) -> Result<Turn<'_>, Error> {
        let shared = &*self.0;
        let ticket = self.number();
        let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(ticket);
        let waits = |queue: &mut VecDeque<u64>| queue.front() != Some(&ticket);
        queue = match deadline {
            None => shared.changed.wait_while(queue, waits).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let (mut queue, result) =
                    shared.changed.wait_timeout_while(queue, deadline, waits).unwrap_or_else(PoisonError::into_inner);
                if result.timed_out() {
                    queue.retain(|waiting| *waiting != ticket);
                    shared.changed.notify_all();
                    return Err(Error::Busy { seconds: deadline.as_secs_f64() });
                }
                queue
            }
        };
        drop(queue);
        let slot = shared.slot.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Turn { shared, slot: Some(slot), ticket })
    }

    /// Waits for this call's turn, and for an engine that is open.
    fn lock(&self) -> Result<Turn<'_>, Error> {
        let turn = self.turn(None)?;
        if self.is_closed() { Err(Error::Closed) } else { Ok(turn) }
    }

    /// Waits for a session's turn and makes the engine its own. What another session has in the engine alone is kept, if there is room for it. Says
    /// whether the session had the engine before.
    pub(super) fn enter(&self, session: u64) -> Result<(Turn<'_>, bool), Error> {
        let mut turn = self.lock()?;
        let live = turn.slot().live;
        if live != Some(session) {
            if live.is_some() {
                turn.engine()?.snapshot()?;
            }
            turn.slot().live = Some(session);
        }
        Ok((turn, live == Some(session)))
    }

    /// A session that is gone needs no snapshot.
    pub(super) fn leave(&self, session: u64) {
        // Who is at work has made the engine its own.
        if let Ok(mut slot) = self.0.slot.try_lock()
            && slot.live == Some(session)
        {
            slot.live = None;
        }
    }
}

impl std::fmt::Debug for SharedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedEngine").field("model", &self.0.model.file().path()).finish_non_exhaustive()
    }
}

/// One call's use of the engine.
pub(super) struct Turn<'a> {
    shared: &'a Shared,
    /// Given back before the next call's turn.
    slot: Option<MutexGuard<'a, Slot>>,
    ticket: u64,
}

impl Turn<'_> {
    fn slot(&mut self) -> &mut Slot {
        self.slot.as_mut().expect("it is given back at the end")
    }

    /// # Errors
    /// When it is closed, or a call ended by a panic.
    pub(super) fn engine(&mut self) -> Result<&mut Engine, Error> {
        let slot = self.slot();
        if slot.broken {
            return Err(EngineError::Poisoned("it was interrupted by a panic".to_owned()).into());
        }
        slot.engine.as_mut().ok_or(Error::Closed)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.slot().broken = true;
        }
        self.slot = None;
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.retain(|waiting| *waiting != self.ticket);
        self.shared.changed.notify_all();
    }
}
