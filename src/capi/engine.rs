//! Engines of the header: opened on a thread of their own, waited for, asked, closed.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::borrow::{Buffer, Handle, List, Out, Struct};
use super::guard::{Broken, Guarded, call, call_on, caught};
use super::status::{
    BANKSHOT_ERR_MEMORY, BANKSHOT_ERR_STATE, BANKSHOT_ERR_TIMEOUT, BANKSHOT_ERR_UNSUPPORTED, Failure, bankshot_status,
};
use super::structs::*;
use crate::device;
use crate::load::Progress;
use crate::model::KvType;
use crate::plan::Split;
use crate::session::{OpenOptions, SharedEngine};
use crate::text::{Detokenizer, Message, RenderOptions};

/// A loaded model. Sessions keep what they need of it alive.
pub struct bankshot_engine {
    inner: Arc<Inner>,
    loader: Mutex<Option<JoinHandle<()>>>,
    broken: Broken,
}

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    phase: Phase,
    progress: bankshot_progress,
    /// The engine is closed as soon as it is there.
    closing: bool,
}

enum Phase {
    Loading,
    Ready(SharedEngine),
    Failed(Failure),
    Closed,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, progress: Progress) {
        let shown = &mut self.lock().progress;
        shown.stage = BANKSHOT_STAGE_LOADING;
        match progress {
            Progress::Kernels { done, total } => {
                (shown.kernels_done, shown.kernels_total) = (done as u64, total as u64);
            }
            Progress::Weights { done, total, read_bytes } => {
                (shown.weight_bytes_done, shown.weight_bytes_total, shown.read_bytes) = (done, total, read_bytes);
            }
            Progress::Sums { .. } => {}
        }
    }

    /// Opens the engine, on a thread of its own.
    fn load(&self, path: Option<PathBuf>, options: OpenOptions) {
        let result = caught(|| {
            let mut show = |progress| self.show(progress);
            Ok(match &path {
                Some(path) => SharedEngine::open(path, options, &mut show)?,
                None => SharedEngine::open_static(crate::demo::MODEL, options, &mut show)?,
            })
        });
        let mut state = self.lock();
        (state.phase, state.progress.stage) = match result {
            // What nobody can use any more is freed here.
            Ok(_) if state.closing => (Phase::Closed, BANKSHOT_STAGE_CLOSED),
            Ok(engine) => (Phase::Ready(engine), BANKSHOT_STAGE_READY),
            Err(failure) => (Phase::Failed(failure), BANKSHOT_STAGE_FAILED),
        };
        self.changed.notify_all();
    }

    /// Waits while the engine is being opened. Without an end in time it is an error.
    fn wait(&self, limit: Option<Duration>) -> Result<MutexGuard<'_, State>, Failure> {
        let loading = |state: &mut State| matches!(state.phase, Phase::Loading);
        let state = self.lock();
        let Some(limit) = limit else {
            return Ok(self.changed.wait_while(state, loading).unwrap_or_else(PoisonError::into_inner));
        };
        let (state, result) =
            self.changed.wait_timeout_while(state, limit, loading).unwrap_or_else(PoisonError::into_inner);
        match result.timed_out() {
            true => {
                let text = format!("the engine is still loading after {} ms", limit.as_millis());
                Err(Failure::new(BANKSHOT_ERR_TIMEOUT, text))
            }
            false => Ok(state),
        }
    }
}

impl State {
    fn ready(&self) -> Result<SharedEngine, Failure> {
        match &self.phase {
            Phase::Ready(engine) => Ok(engine.clone()),
            Phase::Loading => Err(Failure::new(BANKSHOT_ERR_STATE, "the engine is still loading")),
            Phase::Failed(failure) => Err(failure.clone()),
            Phase::Closed => Err(Failure::new(BANKSHOT_ERR_STATE, "the engine is closed")),
        }
    }
}

impl Guarded for bankshot_engine {
    const NAME: &str = "engine";

    fn broken(&self) -> &Broken {
        &self.broken
    }
}

impl bankshot_engine {
    /// The engine, if it is ready.
    pub(super) fn ready(&self) -> Result<SharedEngine, Failure> {
        self.inner.lock().ready()
    }
}

/// Milliseconds of the header as a time.
fn limit(ms: u64) -> Option<Duration> {
    (ms != BANKSHOT_NONE).then(|| Duration::from_millis(ms))
}

/// Flags of which all are known.
pub(super) fn check_flags(flags: u32, known: u32) -> Result<(), Failure> {
    match flags & !known {
        0 => Ok(()),
        other => Err(Failure::new(
            BANKSHOT_ERR_UNSUPPORTED,
            format!("flags: expected bits of {known:#x}, got {other:#x} too"),
        )),
    }
}

fn choice<T>(what: &str, number: u32, of: &[T]) -> Result<Option<T>, Failure>
where
    T: Copy,
{
    match number {
        0 => Ok(None),
        number => of.get(number as usize - 1).copied().map(Some).ok_or_else(|| {
            Failure::new(BANKSHOT_ERR_UNSUPPORTED, format!("{what}: expected 0 to {}, got {number}", of.len()))
        }),
    }
}

fn size(what: &str, number: u64) -> Result<usize, Failure> {
    usize::try_from(number).map_err(|_| Failure::value(what, "a number of this machine's size", number))
}

/// Options as the engine takes them, and the path of the model, if it is not the library's own.
///
/// # Safety
/// The pointers are null, or to as many bytes as the lengths say.
unsafe fn read_options(given: &bankshot_engine_options) -> Result<(Option<PathBuf>, OpenOptions), Failure> {
    // SAFETY: promised by the caller.
    let (path, device) =
        unsafe { (List::text(given.model_path, given.model_path_bytes), List::text(given.device, given.device_bytes)) };
    // SAFETY: promised by the caller.
    let (ngrams, profile) = unsafe {
        (
            List::text(given.ngram_path, given.ngram_path_bytes),
            List::text(given.expert_profile_path, given.expert_profile_path_bytes),
        )
    };
    check_flags(given.flags, BANKSHOT_ENGINE_DEMO)?;
    let path = match (given.flags & BANKSHOT_ENGINE_DEMO != 0, path.optional("model_path")?) {
        (false, path) => Some(path.ok_or_else(|| Failure::null("model_path"))?),
        (true, None) => None,
        (true, Some(path)) => return Err(Failure::value("model_path", "null with BANKSHOT_ENGINE_DEMO", path)),
    };
    let mut options = OpenOptions::default();
    options.device = device.optional("device")?.map(str::to_owned);
    options.ngram_file = ngrams.optional("ngram_path")?.map(PathBuf::from);
    options.expert_profile = profile.optional("expert_profile_path")?.map(PathBuf::from);
    let given_or = |number: u64, default: u64| match number {
        0 => default,
        BANKSHOT_NONE => 0,
        number => number,
    };
    if given.context != 0 {
        options.context = Some(size("context", given.context)?);
    }
    if given.chunk != 0 {
        options.chunk = size("chunk", given.chunk)?;
    }
    options.kv = choice("kv", given.kv, &[KvType::F16, KvType::F32])?.unwrap_or(options.kv);
    options.split = choice("split", given.split, &[Split::Layer, Split::Tensor])?;
    options.expert_bytes = Some(given.expert_bytes).filter(|bytes| *bytes != 0);
    options.host_expert_bytes = Some(given.host_expert_bytes).filter(|bytes| *bytes != 0);
    options.bank_bytes = Some(given_or(given.bank_bytes, 0)).filter(|bytes| *bytes != 0);
    options.host_bank_bytes = Some(given.host_bank_bytes).filter(|bytes| *bytes != 0).map(|bytes| given_or(bytes, 0));
    options.bank_every = size("bank_every", given_or(given.bank_every, options.bank_every as u64))?;
    options.ngram_cache_bytes = given_or(given.ngram_cache_bytes, options.ngram_cache_bytes);
    Ok((path.map(PathBuf::from), options))
}

/// Begins to open an engine and returns: a thread of the library builds kernels and loads weights meanwhile. Wrong
/// options are an error of this call, all else is one of bankshot_engine_wait. The first call of a process lists the
/// devices on the calling thread. Before that it sets OCL_ICD_FILENAMES in the environment, if neither that nor
/// OCL_ICD_VENDORS is set; the SYCL runtime sets ZES_ENABLE_SYSMAN. While kernels are built, the OpenCL CPU driver has
/// handlers for signals; before the engine is ready, the program's own are put back.
/// Ownership: options are read during the call; *out is the caller's, who destroys it. Threads: any, but no other
/// thread may use the environment during the first call of a process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_open(
    options: *const bankshot_engine_options,
    out: *mut *mut bankshot_engine,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (options, out) = unsafe { (Struct::new(options.cast_mut()), Out::new(out)) };
    call("bankshot_engine_open", || {
        out.check("out")?;
        let given: bankshot_engine_options = options.read("options")?;
        // SAFETY: the caller keeps to the header, by which the pointers are valid during the call.
        let (path, options) = unsafe { read_options(&given) }?;
        // Here, so that the environment is only changed on the caller's thread.
        device::devices().map_err(crate::exec::EngineError::from)?;
        let progress = bankshot_progress::default();
        let state = Mutex::new(State { phase: Phase::Loading, progress, closing: false });
        let inner = Arc::new(Inner { state, changed: Condvar::new() });
        let loader = Arc::clone(&inner);
        let thread = std::thread::Builder::new().name("bankshot-load".to_owned());
        let loader = thread
            .spawn(move || loader.load(path, options))
            .map_err(|error| Failure::new(BANKSHOT_ERR_MEMORY, format!("no thread to load on: {error}")))?;
        let engine = bankshot_engine { inner, loader: Mutex::new(Some(loader)), broken: Broken::default() };
        out.write("out", Box::into_raw(Box::new(engine)))
    })
}

/// What opening the engine has done so far; it can be asked again and again.
/// Ownership: none changes. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_progress(
    engine: *const bankshot_engine,
    progress: *mut bankshot_progress,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, progress) = unsafe { (Handle::new(engine), Struct::new(progress)) };
    call_on("bankshot_engine_progress", engine, |engine| {
        let shown = engine.inner.lock().progress;
        progress.write("progress", shown)
    })
}

/// Waits until the engine is ready. BANKSHOT_ERR_TIMEOUT: it is not, and can be waited for again. Any other error is
/// why it could not be opened.
/// Ownership: none changes. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_wait(engine: *const bankshot_engine, timeout_ms: u64) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let engine = unsafe { Handle::new(engine) };
    call_on("bankshot_engine_wait", engine, |engine| engine.inner.wait(limit(timeout_ms))?.ready().map(drop))
}

/// Sizes of the engine.
/// Ownership: none changes. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_info(
    engine: *const bankshot_engine,
    info: *mut bankshot_info,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, info) = unsafe { (Handle::new(engine), Struct::new(info)) };
    call_on("bankshot_engine_info", engine, |engine| {
        let shared = engine.ready()?;
        let plan = shared.plan();
        let value = bankshot_info {
            struct_size: 0,
            cards: plan.cards.len() as u32,
            context: plan.options.context as u64,
            vocabulary: plan.spec.vocab as u64,
            chunk: plan.options.chunk as u64,
        };
        info.write("info", value)
    })
}

/// The plan by which the engine runs, as JSON; `bankshot plan --json` prints the same.
/// Ownership: the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_plan(
    engine: *const bankshot_engine,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, buffer) = unsafe { (Handle::new(engine), Buffer::text(buffer, cap, needed)) };
    call_on("bankshot_engine_plan", engine, |engine| {
        buffer.check()?;
        buffer.fill(engine.ready()?.plan().to_json().to_string().as_bytes())
    })
}

/// Counters of the engine as JSON: rows of the n-gram table, experts, snapshots; null where the model or the engine has
/// none. They go on counting between two calls. Waits for the running step or chunk.
/// Ownership: the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_counters(
    engine: *const bankshot_engine,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, buffer) = unsafe { (Handle::new(engine), Buffer::text(buffer, cap, needed)) };
    call_on("bankshot_engine_counters", engine, |engine| {
        buffer.check()?;
        let counters = engine.ready()?.counters()?;
        buffer.fill(serde_json::json!(counters).to_string().as_bytes())
    })
}

/// Token ids of a text; flags are those of BANKSHOT_TOKENIZE.
/// Ownership: the text is read during the call, the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_tokenize(
    engine: *const bankshot_engine,
    text: *const c_char,
    text_bytes: u64,
    flags: u32,
    ids: *mut u32,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, text, buffer) =
        unsafe { (Handle::new(engine), List::text(text, text_bytes), Buffer::new(ids, cap, needed)) };
    call_on("bankshot_engine_tokenize", engine, |engine| {
        buffer.check()?;
        check_flags(flags, BANKSHOT_TOKENIZE_BEGIN | BANKSHOT_TOKENIZE_SPECIAL)?;
        let shared = engine.ready()?;
        let tokenizer = shared.tokenizer();
        let begins = flags & BANKSHOT_TOKENIZE_BEGIN != 0 && tokenizer.add_bos();
        let mut ids: Vec<u32> = if begins { tokenizer.bos().into_iter().collect() } else { Vec::new() };
        let text = tokenizer.encode(text.utf8("text")?, flags & BANKSHOT_TOKENIZE_SPECIAL != 0);
        ids.extend(text?);
        buffer.fill(&ids)
    })
}

/// Text of token ids, in UTF-8 and without a closing zero; flags are those of BANKSHOT_DETOKENIZE. Bytes that are no
/// character become U+FFFD.
/// Ownership: the ids are read during the call, the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_detokenize(
    engine: *const bankshot_engine,
    ids: *const u32,
    count: u64,
    flags: u32,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, ids, buffer) =
        unsafe { (Handle::new(engine), List::new(ids, count), Buffer::text(buffer, cap, needed)) };
    call_on("bankshot_engine_detokenize", engine, |engine| {
        buffer.check()?;
        check_flags(flags, BANKSHOT_DETOKENIZE_SPECIAL)?;
        let shared = engine.ready()?;
        let vocab = shared.plan().spec.vocab;
        let ids = ids.get("ids")?;
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
            return Err(Failure::value("ids", &format!("less than {vocab}"), id));
        }
        let mut detokenizer = Detokenizer::new(shared.tokenizer(), flags & BANKSHOT_DETOKENIZE_SPECIAL != 0);
        let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
        text.push_str(&detokenizer.finish());
        buffer.fill(text.as_bytes())
    })
}

/// A conversation in the model's own form, in UTF-8 and without a closing zero, to be fed as text; flags are those of
/// BANKSHOT_RENDER.
/// Ownership: the messages are read during the call, the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_render(
    engine: *const bankshot_engine,
    messages: *const bankshot_message,
    count: u64,
    flags: u32,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, messages, buffer) =
        unsafe { (Handle::new(engine), List::new(messages, count), Buffer::text(buffer, cap, needed)) };
    call_on("bankshot_engine_render", engine, |engine| {
        buffer.check()?;
        check_flags(flags, BANKSHOT_RENDER_ANSWER | BANKSHOT_RENDER_THINK | BANKSHOT_RENDER_NO_THINK)?;
        let enable_thinking = match flags & (BANKSHOT_RENDER_THINK | BANKSHOT_RENDER_NO_THINK) {
            0 => None,
            BANKSHOT_RENDER_THINK => Some(true),
            BANKSHOT_RENDER_NO_THINK => Some(false),
            _ => return Err(Failure::value("flags", "one of BANKSHOT_RENDER_THINK and _NO_THINK", "both")),
        };
        let shared = engine.ready()?;
        let mut turns = Vec::new();
        for message in messages.get("messages")? {
            // SAFETY: the caller keeps to the header, by which messages lead to their texts.
            let (role, content) = unsafe {
                (List::text(message.role, message.role_bytes), List::text(message.content, message.content_bytes))
            };
            let (role, content) = (role.utf8("role")?.to_owned(), content.utf8("content")?.to_owned());
            turns.push(Message { role, content });
        }
        let add_generation_prompt = flags & BANKSHOT_RENDER_ANSWER != 0;
        let text = shared.render(&turns, RenderOptions { add_generation_prompt, enable_thinking })?;
        buffer.fill(text.as_bytes())
    })
}

/// Waits for the running step or chunk and frees everything in order; calls of sessions then give BANKSHOT_ERR_STATE.
/// BANKSHOT_ERR_TIMEOUT: the engine is still loading or at work, will take no further work, and can be closed again.
/// Closing what is closed is no error.
/// Ownership: the handle is still to be destroyed. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_close(engine: *const bankshot_engine, deadline_ms: u64) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let engine = unsafe { Handle::new(engine) };
    call_on("bankshot_engine_close", engine, |engine| {
        let begin = Instant::now();
        let inner = &engine.inner;
        inner.lock().closing = true;
        let limit = limit(deadline_ms);
        let shared = match &inner.wait(limit)?.phase {
            Phase::Ready(shared) => Some(shared.clone()),
            _ => None,
        };
        if let Some(shared) = shared {
            let rest = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(begin.elapsed()));
            shared.close(rest)?;
        }
        let mut state = inner.lock();
        (state.phase, state.progress.stage) = (Phase::Closed, BANKSHOT_STAGE_CLOSED);
        Ok(())
    })
}

/// Destroys a handle; null does nothing. Waits for the end of loading. What the engine has is freed when the last of
/// its sessions is destroyed, too, unless it was closed before.
/// Ownership: the handle is gone, and must not be used again: that cannot be noticed. Threads: any, while no other call
/// uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_engine_destroy(engine: *mut bankshot_engine) {
    if engine.is_null() {
        return;
    }
    call("bankshot_engine_destroy", || {
        // SAFETY: by the header it is a handle that bankshot_engine_open gave, and is used no more.
        let engine = unsafe { Box::from_raw(engine) };
        engine.inner.lock().closing = true;
        if let Some(loader) = engine.loader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Its panics are caught and kept.
            let _ = loader.join();
        }
        Ok(())
    });
}
