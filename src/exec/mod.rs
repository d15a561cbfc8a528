//! Running a plan: one sequence, fed in chunks or token by token.

mod breakdown;
mod inputs;
mod launch;
mod traffic;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::device::kernels::{self, ModuleCode};
use crate::device::{self, Arena, Card, DeviceError, Graph, MemoryKind, Module, Queue, Span};
use crate::load::{self, LoadError, Model, Progress, RowCounters, RowError, Tables};
use crate::plan::{LOGIT_ROWS, Options, Plan, PlanError, Region, StateKind};
use crate::rope::RopeTable;
pub use breakdown::{Breakdown, OpTime};
use launch::{Kernels, Launcher, Window};

/// Memory that stays free on a device beside a plan.
const RESERVE_BYTES: u64 = 256 << 20;

/// What keeps a model from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("operation {op}{}: {problem}", .layer.map(|layer| format!(" of layer {layer}")).unwrap_or_default())]
    Step { op: &'static str, layer: Option<usize>, problem: DeviceError },
    #[error("kernel {kernel} of module {module} is not in this build")]
    Kernel { module: String, kernel: &'static str },
    /// A row of a table could not be read. The tokens of earlier chunks are in the sequence; the engine goes on working.
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("token id: expected less than {vocab}, got {id}")]
    Token { id: u32, vocab: usize },
    #[error("no tokens to compute: expected at least one")]
    NoTokens,
    #[error("context is full: {position} tokens are in it, {more} more were asked for, and it holds {context}")]
    ContextFull { position: usize, more: usize, context: usize },
    #[error("the engine stopped working after an earlier device error: {0}")]
    Poisoned(String),
}

/// A loaded model and one sequence on it.
///
/// Results do not depend on how tokens are divided over calls and chunks.
pub struct Engine {
    model: Arc<Model>,
    tables: Tables,
    plan: Plan,
    kernels: Kernels,
    queue: Queue,
    arenas: Vec<Arena>,
    addresses: Vec<u64>,
    /// A step of one token with its logits, recorded once.
    decode: Option<Graph>,
    /// Embeddings of the chunk that comes next, [chunk][hidden].
    embedded: Vec<f32>,
    /// N-gram rows of the chunk that comes next, [chunk][heads][row_dim].
    ngrams: Vec<f32>,
    /// Logits of the last rows computed, [LOGIT_ROWS][vocab].
    logits: Vec<f32>,
    ids: Vec<u32>,
    poisoned: Option<String>,
    card: Card,
}

/// Which rows of logits a call wants.
enum Want<'a> {
    None,
    Last,
    All(&'a mut dyn FnMut(usize, &[f32])),
}

impl Engine {
    /// Plans a model for a device.
    ///
    /// # Errors
    /// When the options do not suit the model, or the plan does not fit the device.
    pub fn plan_for(model: &Model, card: &Card, options: Options) -> Result<Plan, PlanError> {
        Plan::fit(model.bound(), options, card.info().global_bytes, RESERVE_BYTES)
    }

    /// Loads a model as planned: builds the kernels that the plan uses and uploads the weights meanwhile. The rows of
    /// `tables`, which are the model's, are read while the engine runs.
    ///
    /// # Errors
    /// When the device fails.
    pub fn open(
        model: Arc<Model>,
        tables: Tables,
        card: Card,
        plan: Plan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Engine, EngineError> {
        let options = plan.options;
        let queue = Queue::new(&card)?;
        let mut arenas = Vec::with_capacity(plan.ledger.arenas.len());
        for (_, bytes) in &plan.ledger.arenas {
            arenas.push(Arena::new(&card, *bytes, MemoryKind::Device)?);
        }
        let addresses: Vec<u64> = arenas.iter().map(|arena| arena.whole().ptr().expose_provenance() as u64).collect();
        let kernels = load(&model, &plan, &card, &queue, &arenas, progress)?;
        let rope = RopeTable::new(plan.spec.rope_dims, plan.spec.rope_base).rows(0..options.context);
        let to = plan.buffers.rope;
        queue.upload(&arenas[to.arena].span(to.offset, to.bytes)?, bytes_of(&rope))?;
        let (vocab, chunk) = (plan.spec.vocab, plan.options.chunk);
        let mut engine = Engine {
            embedded: vec![0.0; chunk * plan.spec.hidden],
            ngrams: vec![0.0; plan.spec.ple.as_ref().map_or(0, |ple| chunk * ple.width())],
            logits: vec![0.0; LOGIT_ROWS.min(chunk) * vocab],
            ids: Vec::with_capacity(options.context),
            model,
            tables,
            plan,
            kernels,
            queue,
            arenas,
            addresses,
            decode: None,
            poisoned: None,
            card,
        };
        engine.reset()?;
        Ok(engine)
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model, to be held beside the engine.
    pub fn shared_model(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    /// What the n-gram table has been asked for, if the model has one.
    pub fn ngram_counters(&self) -> Option<RowCounters> {
        self.tables.ngrams.as_ref().map(|table| table.counters())
    }

    /// The sequence so far.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Tokens in the sequence.
    pub fn position(&self) -> usize {
        self.ids.len()
    }

    /// Starts an empty sequence.
    pub fn reset(&mut self) -> Result<(), EngineError> {
        self.guarded(|engine| {
            for item in
                engine.plan.state.iter().filter(|item| !matches!(item.kind, StateKind::Keys | StateKind::Values))
            {
                engine.queue.fill(&engine.span(item.region, item.region.bytes)?, 0)?;
            }
            engine.queue.wait()?;
            engine.ids.clear();
            Ok(())
        })
    }

    /// Appends tokens and returns the logits after the last one.
    ///
    /// # Errors
    /// When there are no tokens, an id is not in the vocabulary or the context cannot hold them; nothing is appended then. When a row of a table
    /// cannot be read; [`ids`](Engine::ids) tells what was appended. When the device fails.
    pub fn feed(&mut self, ids: &[u32]) -> Result<&[f32], EngineError> {
        self.append(ids, Want::Last, None)?;
        Ok(&self.logits[..self.plan.spec.vocab])
    }

    /// As [`Engine::feed`], with every operation launched alone, waited for, and its time added to `breakdown`.
    ///
    /// # Errors
    /// As [`Engine::feed`].
    pub fn feed_measured(&mut self, ids: &[u32], breakdown: &mut Breakdown) -> Result<&[f32], EngineError> {
        self.append(ids, Want::Last, Some(breakdown))?;
        Ok(&self.logits[..self.plan.spec.vocab])
    }

    /// Appends tokens and hands the logits after each one, with its position, to `each`.
    ///
    /// # Errors
    /// As [`Engine::feed`].
    pub fn feed_each(&mut self, ids: &[u32], mut each: impl FnMut(usize, &[f32])) -> Result<(), EngineError> {
        self.append(ids, Want::All(&mut each), None)
    }

    fn append(
        &mut self,
        ids: &[u32],
        mut want: Want<'_>,
        mut breakdown: Option<&mut Breakdown>,
    ) -> Result<(), EngineError> {
        let (vocab, context) = (self.plan.spec.vocab, self.plan.options.context);
        if ids.is_empty() {
            return Err(EngineError::NoTokens);
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
            return Err(EngineError::Token { id: *id, vocab });
        }
        let position = self.ids.len();
        if ids.len() > context - position {
            return Err(EngineError::ContextFull { position, more: ids.len(), context });
        }
        let chunk = self.plan.options.chunk;
        let range = |first: usize| first..ids.len().min(first + chunk);
        self.gather(position, ids, range(0), breakdown.as_deref_mut())?;
        for first in (0..ids.len()).step_by(chunk) {
            let (range, next) = (range(first), range(first + chunk));
            let want = match &mut want {
                Want::All(each) => Want::All(*each),
                Want::Last if next.is_empty() => Want::Last,
                _ => Want::None,
            };
            let gathered = self.guarded(|engine| {
                match breakdown.as_deref_mut() {
                    Some(breakdown) => {
                        engine.chunk_measured(range.len(), matches!(want, Want::Last), breakdown)?;
                    }
                    None => {
                        engine.upload_inputs(range.len())?;
                        engine.launch(range.len(), &want)?;
                    }
                }
                // The host reads the next chunk's rows while the device computes this one.
                let gathered = match next.is_empty() {
                    true => Ok(()),
                    false => engine.gather(position, ids, next, breakdown.as_deref_mut()),
                };
                if breakdown.is_none() {
                    engine.finish(range.len(), want)?;
                }
                engine.ids.extend_from_slice(&ids[range]);
                Ok(gathered)
            })?;
            gathered?;
        }
        Ok(())
    }

    /// Runs device work; after a failure the sequence's state is not known, so that the engine refuses all further work.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Engine) -> Result<T, EngineError>) -> Result<T, EngineError> {
        if let Some(text) = &self.poisoned {
            return Err(EngineError::Poisoned(text.clone()));
        }
        work(self).inspect_err(|error| self.poisoned = Some(error.to_string()))
    }

    /// Reads and decodes the rows of `ids[range]`, where `ids` follow the sequence's first `start` tokens.
    fn gather(
        &mut self,
        start: usize,
        ids: &[u32],
        range: Range<usize>,
        breakdown: Option<&mut Breakdown>,
    ) -> Result<(), RowError> {
        let mut unasked = Breakdown::default();
        let times = breakdown.unwrap_or(&mut unasked);
        let spec = &self.plan.spec;
        let (count, tables) = (range.len(), &mut self.tables);
        let out = &mut self.embedded[..count * spec.hidden];
        times.host("embeddings", || inputs::embeddings(&mut tables.embedding, &ids[range.clone()], out))?;
        if let (Some(ple), Some(table)) = (&spec.ple, &mut tables.ngrams) {
            let out = &mut self.ngrams[..count * ple.width()];
            let before = &self.ids[..start];
            let row_bytes = (count * ple.heads()) as u64 * table.row_bytes() as u64;
            times.host_reading("n-gram rows", row_bytes, || inputs::ngrams(table, ple, before, ids, range, out))?;
        }
        Ok(())
    }

    /// Starts the computation of a chunk of `count` tokens.
    fn launch(&mut self, count: usize, want: &Want<'_>) -> Result<(), EngineError> {
        let all = Window { first: 0, count };
        if let (1, Want::Last) = (count, want) {
            if self.decode.is_none() {
                self.decode = Some(self.record_decode(all)?);
            }
            if let Some(graph) = &self.decode {
                self.queue.launch(graph)?;
            }
            return Ok(());
        }
        layers(&self.launcher(), all)?;
        if let Want::Last = want {
            head(&self.launcher(), Window { first: count - 1, count: 1 })?;
        }
        Ok(())
    }

    /// Waits for a chunk of `count` tokens and fetches the logits that are wanted.
    fn finish(&mut self, count: usize, want: Want<'_>) -> Result<(), EngineError> {
        match want {
            Want::None => Ok(self.queue.wait()?),
            Want::Last => self.download_logits(1),
            Want::All(each) => {
                let vocab = self.plan.spec.vocab;
                for first in (0..count).step_by(LOGIT_ROWS) {
                    let rows = LOGIT_ROWS.min(count - first);
                    head(&self.launcher(), Window { first, count: rows })?;
                    self.download_logits(rows)?;
                    for (row, logits) in self.logits.chunks_exact(vocab).take(rows).enumerate() {
                        each(self.ids.len() + first + row, logits);
                    }
                }
                Ok(())
            }
        }
    }

    fn launcher(&self) -> Launcher<'_> {
        Launcher { plan: &self.plan, arenas: &self.addresses, kernels: &self.kernels, queue: &self.queue }
    }

    /// Records a step of one token: everything that changes from one to the next lies in device memory.
    fn record_decode(&self, window: Window) -> Result<Graph, EngineError> {
        self.queue.begin_graph()?;
        for arena in &self.arenas {
            self.queue.keep(&arena.whole());
        }
        self.kernels.keep(&self.queue);
        let launcher = self.launcher();
        let recorded = layers(&launcher, window).and_then(|()| head(&launcher, window));
        let graph = self.queue.end_graph()?;
        recorded?;
        Ok(graph)
    }

    fn span(&self, region: Region, bytes: u64) -> Result<Span, DeviceError> {
        self.arenas[region.arena].span(region.offset, bytes)
    }

    fn put(&self, region: Region, values: &[u8]) -> Result<(), DeviceError> {
        self.queue.upload(&self.span(region, values.len() as u64)?, values)
    }

    /// Position, embeddings and n-gram rows of a chunk of `count` tokens.
    fn upload_inputs(&mut self, count: usize) -> Result<(), EngineError> {
        let (spec, buffers) = (&self.plan.spec, &self.plan.buffers);
        self.put(buffers.start, &(self.ids.len() as i32).to_le_bytes())?;
        self.put(buffers.embedded.region, bytes_of(&self.embedded[..count * spec.hidden]))?;
        if let (Some(ple), Some(to)) = (&spec.ple, buffers.ngrams) {
            self.put(to.region, bytes_of(&self.ngrams[..count * ple.width()]))?;
        }
        Ok(())
    }

    fn download_logits(&mut self, rows: usize) -> Result<(), EngineError> {
        let values = rows * self.plan.spec.vocab;
        let from = self.span(self.plan.buffers.logits.region, 4 * values as u64)?;
        self.queue.download(bytes_of_mut(&mut self.logits[..values]), &from)?;
        Ok(())
    }
}

/// From the embedding to the last layer's output.
fn layers(launcher: &Launcher<'_>, window: Window) -> Result<(), EngineError> {
    for step in &launcher.plan.start {
        launcher.step(step, None, window)?;
    }
    for layer in &launcher.plan.layers {
        for step in &layer.steps {
            launcher.step(step, Some(layer.index), window)?;
        }
    }
    Ok(())
}

/// From the last layer's output to logits.
fn head(launcher: &Launcher<'_>, window: Window) -> Result<(), EngineError> {
    launcher.plan.head.iter().try_for_each(|step| launcher.step(step, None, window))
}

/// Builds kernels on threads of their own while the weights are uploaded on this one.
fn load(
    model: &Model,
    plan: &Plan,
    card: &Card,
    queue: &Queue,
    arenas: &[Arena],
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernels, EngineError> {
    let codes = plan
        .modules
        .iter()
        .map(|name| kernels::find(name).ok_or_else(|| EngineError::Kernel { module: name.clone(), kernel: "any" }));
    let codes: Vec<&ModuleCode> = codes.collect::<Result<_, _>>()?;
    let cache = device::cache::folder();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let build = || -> Result<Vec<Module>, DeviceError> {
        let mut built = Vec::new();
        while let Some(code) = codes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let module = Module::new(card, code, cache.as_deref())?;
            tracing::debug!(
                module = code.name,
                from_cache = module.is_from_cache(),
                ms = begin.elapsed().as_millis() as u64,
                "kernel module is ready"
            );
            built.push(module);
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(built)
    };
    // The OpenCL CPU compiler takes one program at a time in a process.
    let serial = card.info().backend == "opencl";
    let threads = if serial { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(codes.len()) };
    let total = codes.len();
    let modules: Result<Vec<Vec<Module>>, EngineError> = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..threads).map(|_| scope.spawn(build)).collect();
        let mut report = |step: Progress| {
            progress(Progress::Kernels { done: done.load(Ordering::Relaxed), total });
            progress(step);
        };
        let uploaded: Result<(), EngineError> = load::upload(model, plan, arenas, queue, &mut report);
        while builders.iter().any(|builder| !builder.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
            progress(Progress::Kernels { done: done.load(Ordering::Relaxed), total });
        }
        let modules =
            builders.into_iter().map(|builder| Ok(builder.join().expect("building does not panic")?)).collect();
        uploaded?;
        modules
    });
    let mut kernels = Kernels::default();
    for module in modules?.into_iter().flatten() {
        let code = kernels::find(module.name()).expect("the module was built from this table");
        for name in code.kernels {
            kernels.insert(module.name(), name, module.kernel(name)?);
        }
    }
    Ok(kernels)
}

/// The greatest logit's id, ties to the lowest.
pub fn argmax(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, value) in logits.iter().enumerate() {
        if *value > logits[best] {
            best = i;
        }
    }
    best as u32
}

fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: every f32 is four initialised bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_of_mut(values: &mut [f32]) -> &mut [u8] {
    // SAFETY: as above, and every four bytes are an f32.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
