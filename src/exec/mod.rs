//! Running a plan: one sequence, fed in chunks or token by token.

mod inputs;
mod launch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device::{self, Arena, Card, DeviceError, Graph, MemoryKind, Queue};
use crate::load::{LoadError, Model, Progress, upload};
use crate::plan::{ArenaKind, LOGIT_ROWS, Options, Plan, PlanError, StateKind};
use crate::quant::QuantError;
use crate::rope::RopeTable;
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
    #[error("operation {op}{}: {source}", .layer.map(|layer| format!(" of layer {layer}")).unwrap_or_default())]
    Step { op: &'static str, layer: Option<usize>, source: DeviceError },
    #[error("kernel {kernel} of module {module} is not in this build")]
    Kernel { module: String, kernel: &'static str },
    #[error(transparent)]
    Row(#[from] QuantError),
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
    plan: Plan,
    kernels: Kernels,
    queue: Queue,
    arenas: Vec<Arena>,
    addresses: Vec<u64>,
    /// A step of one token with its logits, recorded once.
    decode: Option<Graph>,
    embedded: Vec<f32>,
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
    /// Loads a model onto a device: builds the kernels that the plan uses, in parallel, and uploads the weights meanwhile.
    ///
    /// # Errors
    /// When the options do not suit the model, the plan does not fit the device, or the device fails.
    pub fn open(model: Arc<Model>, card: Card, options: Options, progress: &mut dyn FnMut(Progress)) -> Result<Engine, EngineError> {
        let free = card.info().global_bytes;
        let plan = Plan::fit(model.bound(), options, free, RESERVE_BYTES)?;
        let queue = Queue::new(&card)?;
        let mut arenas = Vec::with_capacity(plan.ledger.arenas.len());
        for (_, bytes) in &plan.ledger.arenas {
            arenas.push(Arena::new(&card, *bytes, MemoryKind::Device)?);
        }
        let addresses: Vec<u64> = arenas.iter().map(Arena::address).collect();
        let kernels = load(&model, &plan, &card, &queue, &addresses, progress)?;
        let (vocab, chunk) = (plan.spec.vocab, plan.options.chunk);
        let mut engine = Engine {
            embedded: vec![0.0; chunk * plan.spec.hidden],
            ngrams: vec![0.0; plan.spec.ple.as_ref().map_or(0, |ple| chunk * ple.width())],
            logits: vec![0.0; LOGIT_ROWS.min(chunk) * vocab],
            ids: Vec::with_capacity(options.context),
            model,
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

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Tokens in the sequence.
    pub fn position(&self) -> usize {
        self.ids.len()
    }

    /// Starts an empty sequence.
    pub fn reset(&mut self) -> Result<(), EngineError> {
        self.guarded(|engine| {
            for item in engine.plan.state.iter().filter(|item| !matches!(item.kind, StateKind::Keys | StateKind::Values)) {
                let region = item.region;
                engine.queue.fill(&engine.arenas[region.arena], region.offset, region.bytes, 0)?;
            }
            engine.queue.wait()?;
            engine.ids.clear();
            Ok(())
        })
    }

    /// Appends tokens and returns the logits after the last one.
    ///
    /// # Errors
    /// When there are no tokens, an id is not in the vocabulary, the context cannot hold them (nothing is appended then), or the device fails.
    pub fn feed(&mut self, ids: &[u32]) -> Result<&[f32], EngineError> {
        self.append(ids, Want::Last)?;
        Ok(&self.logits[..self.plan.spec.vocab])
    }

    /// Appends tokens and hands the logits after each one, with its position, to `each`.
    ///
    /// # Errors
    /// As [`Engine::feed`].
    pub fn feed_each(&mut self, ids: &[u32], mut each: impl FnMut(usize, &[f32])) -> Result<(), EngineError> {
        self.append(ids, Want::All(&mut each))
    }

    fn append(&mut self, ids: &[u32], mut want: Want<'_>) -> Result<(), EngineError> {
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
        let chunks = ids.chunks(self.plan.options.chunk);
        let last = chunks.len() - 1;
        for (i, chunk) in chunks.enumerate() {
            let want = match &mut want {
                Want::All(each) => Want::All(*each),
                Want::Last if i == last => Want::Last,
                _ => Want::None,
            };
            self.guarded(|engine| engine.chunk(chunk, want))?;
        }
        Ok(())
    }

    /// Runs device work; after a failure the sequence's state is not known, so that the engine refuses all further work.
    fn guarded(&mut self, work: impl FnOnce(&mut Engine) -> Result<(), EngineError>) -> Result<(), EngineError> {
        if let Some(text) = &self.poisoned {
            return Err(EngineError::Poisoned(text.clone()));
        }
        work(self).inspect_err(|error| self.poisoned = Some(error.to_string()))
    }

    fn chunk(&mut self, ids: &[u32], want: Want<'_>) -> Result<(), EngineError> {
        self.upload_inputs(ids)?;
        let all = Window { first: 0, count: ids.len() };
        if let (1, Want::Last) = (ids.len(), &want) {
            if self.decode.is_none() {
                let graph = self.queue.record(|| {
                    let launcher = self.launcher();
                    layers(&launcher, all)?;
                    head(&launcher, all)
                })?;
                self.decode = Some(graph);
            }
            if let Some(graph) = &self.decode {
                self.queue.launch(graph)?;
            }
            self.download_logits(1)?;
        } else {
            layers(&self.launcher(), all)?;
            match want {
                Want::None => self.queue.wait()?,
                Want::Last => {
                    head(&self.launcher(), Window { first: ids.len() - 1, count: 1 })?;
                    self.download_logits(1)?;
                }
                Want::All(each) => {
                    let vocab = self.plan.spec.vocab;
                    for first in (0..ids.len()).step_by(LOGIT_ROWS) {
                        let count = LOGIT_ROWS.min(ids.len() - first);
                        head(&self.launcher(), Window { first, count })?;
                        self.download_logits(count)?;
                        for (row, logits) in self.logits.chunks_exact(vocab).take(count).enumerate() {
                            each(self.ids.len() + first + row, logits);
                        }
                    }
                }
            }
        }
        self.ids.extend_from_slice(ids);
        Ok(())
    }

    fn launcher(&self) -> Launcher<'_> {
        Launcher { plan: &self.plan, arenas: &self.addresses, kernels: &self.kernels, queue: &self.queue }
    }

    /// Embeddings, n-gram rows and the position; the copies read buffers that stay untouched until the chunk's wait.
    fn upload_inputs(&mut self, ids: &[u32]) -> Result<(), EngineError> {
        let (file, bound, spec) = (self.model.file(), self.model.bound(), &self.plan.spec);
        let buffers = &self.plan.buffers;
        let embedded = &mut self.embedded[..ids.len() * spec.hidden];
        inputs::embeddings(file, bound, ids, embedded)?;
        let start = [self.ids.len() as i32];
        self.queue.upload(&self.arenas[buffers.start.arena], buffers.start.offset, bytes_of(&start))?;
        let to = buffers.embedded.region;
        self.queue.upload(&self.arenas[to.arena], to.offset, bytes_of(embedded))?;
        if let (Some(ple), Some(table), Some(to)) = (&spec.ple, &bound.ple_table, buffers.ngrams) {
            let ngrams = &mut self.ngrams[..ids.len() * ple.width()];
            inputs::ngrams(file, table, ple, &self.ids, ids, ngrams)?;
            self.queue.upload(&self.arenas[to.region.arena], to.region.offset, bytes_of(ngrams))?;
        }
        Ok(())
    }

    fn download_logits(&mut self, rows: usize) -> Result<(), EngineError> {
        let from = self.plan.buffers.logits.region;
        let target = &mut self.logits[..rows * self.plan.spec.vocab];
        self.queue.download(&self.arenas[from.arena], from.offset, bytes_of_mut(target))?;
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
    addresses: &[u64],
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernels, EngineError> {
    todo_build(model, plan, card, queue, addresses, progress)
}
