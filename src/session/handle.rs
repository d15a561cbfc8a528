//! One sequence on a shared engine.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::shared::Turn;
use super::{Base, Error, Keeper, SharedEngine};
use crate::exec::{EngineError, argmax};
use crate::load::Model;
use crate::state::Saved;
use crate::text::{Detokenizer, Tokenizer};

/// Chunks for each card that computes layers of its own, after which a prompt looks whether it was cancelled: with fewer, cards would wait for each
/// other too often.
const CHUNKS_PER_STAGE: usize = 4;

/// How a session answers.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Most tokens of an answer; without it as many as the context holds.
    pub max_tokens: Option<usize>,
    /// Whether each event has the logits that its token was chosen from.
    pub logits: bool,
    /// Whether an answer goes on behind a token that ends the model's turn.
    pub ignore_stop: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model chose a token that ends its turn.
    Stop,
    /// As many tokens as were asked for.
    Length,
    /// The context is full. The last token is part of the answer, and has no place in the context.
    Context,
}

impl Finish {
    /// `stop`, `length` or `context`.
    pub const fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Context => "context",
        }
    }
}

/// A token that was chosen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The most likely token; of equally likely ones the lowest id.
    pub id: u32,
    /// Text that is complete with this token; a character's last byte completes it. A token that ends a turn has no text.
    pub text: String,
    /// Why the answer ends with this token, if it does.
    pub finish: Option<Finish>,
    /// What the token was chosen from, if [`SessionOptions::logits`] asks for that.
    pub logits: Option<Vec<f32>>,
}

/// What a session has needed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionStats {
    /// Tokens that were computed, some of them perhaps more than once.
    pub computed_tokens: u64,
    /// Tokens that were not computed, because their state was known.
    pub recalled_tokens: u64,
    /// Tokens that were chosen.
    pub chosen_tokens: u64,
    /// How often the session had to make the engine its own.
    pub switches: u64,
}

/// How a session is saved.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SaveOptions<'a> {
    /// Bytes of the program, which [`Session::restore`] gives back.
    pub notes: Option<&'a [u8]>,
    /// Whether the file is compressed.
    pub compress: bool,
    /// Whether the file may be a delta of the one that the session was last saved to or restored from, if that is in the same folder.
    pub delta: bool,
}

/// Stops a session's running call from any thread, or the next one if none is running.
///
/// ```
/// # use bankshot::session::{Error, OpenOptions, SessionOptions, SharedEngine};
/// # let mut options = OpenOptions::default();
/// # options.context = Some(64);
/// # options.device = Some("cpu".to_owned());
/// # let engine = SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?;
/// let mut session = engine.session(SessionOptions::default());
/// let canceller = session.canceller();
/// std::thread::spawn(move || canceller.cancel()).join().unwrap();
/// assert!(matches!(session.feed_text("Once upon a time"), Err(Error::Cancelled { .. })));
/// // Nothing is lost: the next call goes on.
/// assert_eq!(session.next()?.map(|event| event.text), Some(" there".to_owned()));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Lets the call end with [`Error::Cancelled`] before its next step or chunk.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether a call is to end; it does so once.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// A model's tokenizer.
#[derive(Clone)]
struct OfModel(Arc<Model>);

impl Deref for OfModel {
    type Target = Tokenizer;

    fn deref(&self) -> &Tokenizer {
        self.0.tokenizer()
    }
}

/// A sequence of tokens, and the answers to it.
///
/// The tokens are the session's own. Their state is on the engine, in its bank, or computed again when it is needed: that changes no result. Tokens
/// are fed, then [`next`](Session::next) chooses one at a time, always the most likely one.
///
/// An error changes no token of the session, unless its text says so: a call can be repeated, and goes on where it was. After a failure of a device
/// every call that computes gives an error, and the tokens stay readable.
pub struct Session {
    shared: SharedEngine,
    number: u64,
    options: SessionOptions,
    ids: Vec<u32>,
    /// Tokens up to which the last call knew the state.
    computed: usize,
    detokenizer: Detokenizer<OfModel>,
    /// Tokens of the answer.
    answered: usize,
    finish: Option<Finish>,
    canceller: Canceller,
    /// Where the session was last saved or restored, and what a later file can be a delta of.
    base: Option<(PathBuf, Base)>,
    stats: SessionStats,
}

impl Session {
    pub(super) fn new(shared: SharedEngine, number: u64, options: SessionOptions) -> Session {
        let detokenizer = Detokenizer::new(OfModel(Arc::clone(shared.model())), false);
        Session {
            shared,
            number,
            options,
            ids: Vec::new(),
            computed: 0,
            detokenizer,
            answered: 0,
            finish: None,
            canceller: Canceller::default(),
            base: None,
            stats: SessionStats::default(),
        }
    }

    /// The engine that the session computes on.
    pub fn engine(&self) -> &SharedEngine {
        &self.shared
    }

    /// All tokens: those that were fed, and those that were chosen.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// What the session has needed so far.
    pub fn stats(&self) -> SessionStats {
        self.stats
    }

    /// Why the answer has ended, if it has.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// How the session answers.
    pub fn options(&self) -> SessionOptions {
        self.options
    }

    /// Begins a new answer behind all tokens that there are.
    pub fn set_options(&mut self, options: SessionOptions) {
        self.options = options;
        self.begin_answer();
    }

    /// For another thread that may have to stop this session.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Appends tokens and computes them. A new answer begins behind them.
    ///
    /// # Errors
    /// When there are none, an id is not in the vocabulary or the context cannot hold them; nothing is appended then. When the call is cancelled or a
    /// row of a table cannot be read: all are appended then, and those that are not computed are computed by the next call. When a device fails.
    pub fn feed(&mut self, ids: &[u32]) -> Result<(), Error> {
        self.check(self.ids.len(), ids)?;
        self.ids.extend_from_slice(ids);
        self.begin_answer();
        let shared = self.shared.clone();
        self.compute(&shared).map(drop)
    }

    /// Appends a text and computes it. If it is the first one, the model's beginning-of-sequence token goes before it where the model asks for that.
    /// Names of special tokens are read as these tokens.
    ///
    /// # Errors
    /// When the text has a byte that no token spells, and as [`Session::feed`].
    pub fn feed_text(&mut self, text: &str) -> Result<(), Error> {
        let ids = match self.ids.is_empty() {
            true => self.shared.tokenizer().encode_prompt(text)?,
            false => self.shared.tokenizer().encode(text, true)?,
        };
        self.feed(&ids)
    }

    /// Makes `ids` the session's tokens and computes what is not known of them, as a conversation needs whose template changes earlier turns.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn prompt(&mut self, ids: &[u32]) -> Result<(), Error> {
        self.check(0, ids)?;
        let known = self.ids.iter().zip(ids).take_while(|(have, want)| have == want).count();
        self.computed = self.computed.min(known);
        self.ids.clear();
        self.feed(ids)
    }

    /// Keeps the first tokens alone. Nothing is computed before the next call.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn truncate(&mut self, tokens: usize) -> Result<(), Error> {
        if tokens > self.ids.len() {
            return Err(Error::Keep { tokens: self.ids.len(), keep: tokens });
        }
        self.ids.truncate(tokens);
        self.computed = self.computed.min(tokens);
        self.begin_answer();
        Ok(())
    }

    /// Chooses the next token, after computing all before it. `None` when the answer has ended; [`Session::feed`] begins another one.
    ///
    /// ```
    /// # use bankshot::session::{OpenOptions, SessionOptions, SharedEngine};
    /// # let mut options = OpenOptions::default();
    /// # options.context = Some(64);
    /// # options.device = Some("cpu".to_owned());
    /// # let engine = SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?;
    /// let mut options = SessionOptions::default();
    /// options.max_tokens = Some(2);
    /// let mut session = engine.session(options);
    /// session.feed_text("Once upon a time")?;
    /// while let Some(event) = session.next()? {
    ///     print!("{}", event.text);
    /// }
    /// assert_eq!(session.finish(), Some(bankshot::session::Finish::Length));
    /// # Ok::<(), bankshot::session::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are no tokens; and as [`Session::feed`].
    #[allow(clippy::should_implement_trait, reason = "an error does not end a session; `tokens` is the iterator")]
    pub fn next(&mut self) -> Result<Option<Event>, Error> {
        if self.finish.is_none() && self.options.max_tokens == Some(self.answered) {
            self.finish = Some(Finish::Length);
        }
        if self.finish.is_none() && self.ids.len() > self.shared.context() {
            self.finish = Some(Finish::Context);
        }
        if self.finish.is_some() {
            return Ok(None);
        }
        let shared = self.shared.clone();
        let mut turn = self.compute(&shared)?;
        let row = turn.engine()?.logits().unwrap_or_default();
        let id = argmax(row);
        let logits = self.options.logits.then(|| row.to_vec());
        drop(turn);
        self.ids.push(id);
        self.answered += 1;
        self.stats.chosen_tokens += 1;
        let stops = !self.options.ignore_stop && self.shared.tokenizer().stop_ids().contains(&id);
        let mut text = if stops { String::new() } else { self.detokenizer.push(id) };
        self.finish = match () {
            () if stops => Some(Finish::Stop),
            () if self.options.max_tokens == Some(self.answered) => Some(Finish::Length),
            () if self.ids.len() > self.shared.context() => Some(Finish::Context),
            () => None,
        };
        if self.finish.is_some() {
            text.push_str(&self.detokenizer.finish());
        }
        Ok(Some(Event { id, text, finish: self.finish, logits }))
    }

    /// At most `n` further events, until the answer ends or a call fails.
    pub fn tokens(&mut self, n: usize) -> Tokens<'_> {
        Tokens { session: self, left: n }
    }

    /// Saves the session under a name. All tokens are computed for that; a last one without a place in the context is not part of the file.
    ///
    /// ```
    /// # use bankshot::session::{OpenOptions, SaveOptions, SessionOptions, SharedEngine};
    /// # let mut options = OpenOptions::default();
    /// # options.context = Some(64);
    /// # options.device = Some("cpu".to_owned());
    /// # let engine = SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?;
    /// # let place = std::env::temp_dir().join(format!("bankshot-doc-{}", std::process::id()));
    /// let folder = engine.folder(&place)?;
    /// let mut first = engine.session(SessionOptions::default());
    /// first.feed_text("Once upon a time")?;
    /// first.save(&folder, "story", SaveOptions::default())?;
    /// let mut second = engine.session(SessionOptions::default());
    /// second.restore(&folder, "story")?;
    /// assert_eq!(first.next()?, second.next()?);
    /// # std::fs::remove_dir_all(place).unwrap();
    /// # Ok::<(), bankshot::session::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::feed`], when the state does not fit the host's memory, and when the folder cannot take the file.
    pub fn save(&mut self, folder: &Keeper, name: &str, options: SaveOptions<'_>) -> Result<Saved, Error> {
        folder.check_name(name)?;
        let shared = self.shared.clone();
        let mut turn = self.compute(&shared)?;
        let engine = turn.engine()?;
        // A file cannot be a delta of what it replaces.
        let replaced = folder.store().inspect(name, false).ok().map(|info| info.id);
        let base = self.base.as_ref().filter(|(dir, base)| {
            let grows = base.ids.len() < engine.ids().len() && engine.ids().starts_with(&base.ids);
            options.delta && dir == folder.store().dir() && Some(base.id) != replaced && grows
        });
        let base = base.map(|(_, base)| base);
        let image = engine.image(base.map_or(0, |base| base.ids.len()))?;
        // The disk is written while other sessions compute.
        drop(turn);
        let (model, layout) = (shared.model(), shared.layout());
        let saved = folder.write(model.tokenizer(), layout, &image, name, options.notes, options.compress, base)?;
        self.base = Some((folder.store().dir().to_owned(), Base { id: saved.id, ids: image.ids }));
        Ok(saved)
    }

    /// Makes a saved session this one, and gives back what the program that saved it added. Until all of it was verified, nothing changes.
    ///
    /// # Errors
    /// When it is missing, damaged, of another model or longer than the context, or a device fails.
    pub fn restore(&mut self, folder: &Keeper, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let shared = self.shared.clone();
        let loaded = folder.read(shared.layout(), shared.context(), name)?;
        let (mut turn, _) = shared.enter(self.number)?;
        turn.engine()?.restore(&loaded.image)?;
        drop(turn);
        self.ids = loaded.image.ids;
        self.computed = self.ids.len();
        self.base = Some((folder.store().dir().to_owned(), Base { id: loaded.id, ids: self.ids.clone() }));
        self.begin_answer();
        Ok(loaded.notes)
    }

    fn begin_answer(&mut self) {
        self.detokenizer.finish();
        (self.answered, self.finish) = (0, None);
    }

    /// Whether tokens can follow the first `position` ones.
    fn check(&self, position: usize, ids: &[u32]) -> Result<(), EngineError> {
        let (vocab, context) = (self.shared.plan().spec.vocab, self.shared.context());
        if ids.is_empty() {
            return Err(EngineError::NoTokens);
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
            return Err(EngineError::Token { id: *id, vocab });
        }
        if position > context || ids.len() > context - position {
            return Err(EngineError::ContextFull { position, more: ids.len(), context });
        }
        Ok(())
    }

    /// Makes the session's tokens the engine's sequence, as far as the context holds them, with logits after the last one. What is at work on the engine
    /// can change after every piece of a prompt.
    fn compute<'a>(&mut self, shared: &'a SharedEngine) -> Result<Turn<'a>, Error> {
        let target = &self.ids[..self.ids.len().min(shared.context())];
        if target.is_empty() {
            return Err(Error::Empty);
        }
        let stages = shared.plan().stages().len();
        let chunks = if stages == 1 { 1 } else { CHUNKS_PER_STAGE * stages };
        let piece = shared.plan().options.chunk * chunks;
        let mut begun = false;
        let mut is_prompt = false;
        loop {
            let (mut turn, had) = shared.enter(self.number)?;
            if self.canceller.take() {
                return Err(Error::Cancelled { computed: self.computed.min(target.len()), tokens: self.ids.len() });
            }
            let engine = turn.engine()?;
            self.stats.switches += u64::from(!had);
            let is_step = engine.position() + 1 == target.len() && target.starts_with(engine.ids());
            if !had || !begun && !is_step {
                let known = engine.recall(target)?;
                // Of a prompt that was displaced, only what was computed for it counts.
                self.stats.recalled_tokens += if begun { 0 } else { known as u64 };
            }
            begun = true;
            let begin = engine.position();
            self.computed = begin;
            if begin == target.len() {
                return Ok(turn);
            }
            let mark = engine.prompt_marks(target).into_iter().next();
            let end = target.len().min(begin + piece).min(mark.unwrap_or(usize::MAX));
            let before = begin;
            let result = match end == target.len() {
                true => engine.feed(&target[begin..]).map(drop),
                false => engine.feed_silently(&target[begin..end]),
            };
            self.computed = engine.position();
            self.stats.computed_tokens += (engine.position() - before) as u64;
            result?;
            is_prompt |= end - begin > 1;
            if end == target.len() {
                if is_prompt {
                    engine.snapshot()?;
                }
                return Ok(turn);
            }
            if mark == Some(end) {
                engine.snapshot()?;
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.leave(self.number);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("tokens", &self.ids.len()).field("finish", &self.finish).finish_non_exhaustive()
    }
}

/// Events of an answer, one after another; see [`Session::tokens`].
#[derive(Debug)]
pub struct Tokens<'a> {
    session: &'a mut Session,
    left: usize,
}

impl Iterator for Tokens<'_> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Result<Event, Error>> {
        self.left = self.left.checked_sub(1)?;
        let event = self.session.next().transpose()?;
        if event.is_err() {
            self.left = 0;
        }
        Some(event)
    }
}
