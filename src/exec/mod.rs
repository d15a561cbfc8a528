//! Running a plan: one sequence, fed in chunks or token by token, on one card or several.

mod breakdown;
mod card;
mod exchange;
mod experts;
mod inputs;
mod inventory;
mod launch;
mod state;
mod walk;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::device::{Card, DeviceError};
use crate::load::{LoadError, Model, Progress, RowCounters, RowError, Sources, Tables};
use crate::plan::{LOGIT_ROWS, Misses, Options, Plan, PlanError, StateKind};
use crate::residency::{Counters, Profile, Shape};
use crate::rope::RopeTable;
use crate::state::{Bank, Layout};
pub use breakdown::{Breakdown, OpTime};
use card::CardRun;
use exchange::Link;
use inputs::Inputs;
pub use inventory::{inventory, measured};
use launch::Window;
use walk::Part;

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
    #[error("card {card}: {problem}")]
    Card { card: usize, problem: DeviceError },
    #[error("operation {op}{} on card {card}: {problem}", .layer.map(|layer| format!(" of layer {layer}")).unwrap_or_default())]
    Step { op: &'static str, layer: Option<usize>, card: usize, problem: DeviceError },
    #[error("the plan is for {plan} cards, and {cards} were given")]
    Cards { plan: usize, cards: usize },
    #[error("{place}: the plan allocates {needed_bytes} bytes, and {free_bytes} are free now")]
    Admission { place: String, needed_bytes: u64, free_bytes: u64 },
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
    #[error("the sequence has {position} tokens: expected at least {from}, from which on its state was asked for")]
    Beginning { from: usize, position: usize },
    #[error("the sequence's state takes {needed_bytes} bytes of host memory, and {free_bytes} are free now")]
    ImageMemory { needed_bytes: u64, free_bytes: u64 },
    #[error("the image is not a whole one of this model's state: expected other pieces, or other sizes of them")]
    Image,
    #[error("card {card} did not come to rest within {seconds} s; its memory is left as it is")]
    Restless { card: usize, seconds: f64 },
    #[error("the engine stopped working after an earlier error: {0}")]
    Poisoned(String),
}

/// A loaded model and one sequence on it.
///
/// Results do not depend on how tokens are divided over calls and chunks, nor on cards and resident experts.
pub struct Engine {
    model: Arc<Model>,
    tables: Tables,
    plan: Arc<Plan>,
    cards: Vec<CardRun>,
    /// How each card but the first gets what the card before it hands over.
    links: Vec<Link>,
    /// Of the chunks under way, and of the one that comes next.
    inputs: Vec<Inputs>,
    /// Logits of the last rows computed, [LOGIT_ROWS][vocab].
    logits: Vec<f32>,
    /// A card's columns of them, where cards divide the head.
    logit_part: Vec<f32>,
    ids: Vec<u32>,
    /// Whether the first row of `logits` is that after the last token.
    logits_known: bool,
    layout: Layout,
    bank: Option<Bank>,
    /// Where experts are read from while the engine runs.
    sources: Option<Sources>,
    routing: Option<RoutingSink>,
    poisoned: Option<String>,
}

/// Takes what the routers of one chunk chose: the position of its first token, its tokens, and for each expert layer the
/// ids, [tokens][used].
pub type RoutingSink = Box<dyn FnMut(usize, usize, &[&[u32]]) + Send>;

/// Which rows of logits a call wants.
enum Want<'a> {
    None,
    Last,
    All(&'a mut dyn FnMut(usize, &[f32])),
}

impl Engine {
    /// Plans a model for cards. The inventory has no rates, so that several cards share the work in the way that is usual for the
    /// model's kind unless the options say how; [`measured`] gives rates.
    ///
    /// # Errors
    /// When the options do not suit the model, or the plan does not fit the cards.
    pub fn plan_for(model: &Model, cards: &[Card], options: Options) -> Result<Plan, PlanError> {
        Plan::fit(model.bound(), options, &inventory(cards))
    }

    /// Loads a model as planned: builds the kernels that the plan uses and uploads the weights meanwhile. The rows of
    /// `tables`, which are the model's, are read while the engine runs. Experts that `profile` says are used most begin
    /// as the resident ones.
    ///
    /// # Errors
    /// When there are not as many cards as the plan has, or a device fails.
    pub fn open(
        model: Arc<Model>,
        tables: Tables,
        cards: Vec<Card>,
        plan: Plan,
        profile: Option<&Profile>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Engine, EngineError> {
        if cards.len() != plan.cards.len() {
            return Err(EngineError::Cards { plan: plan.cards.len(), cards: cards.len() });
        }
        inventory::admit(&plan, &cards)?;
        let plan = Arc::new(plan);
        let cards = card::open(&model, &plan, cards, profile, progress)?;
        let rope = RopeTable::new(plan.spec.rope_dims, plan.spec.rope_base).rows(0..plan.options.context);
        for (run, card) in cards.iter().zip(&plan.cards) {
            run.put(card.buffers.rope, bytes_of(&rope))?;
        }
        let sources = (plan.misses == Misses::File).then(|| Sources::open(model.file())).transpose()?;
        let links = exchange::links(&plan, &cards)?;
        let (vocab, chunk) = (plan.spec.vocab, plan.options.chunk);
        let rows = LOGIT_ROWS.min(chunk);
        let part = plan.cards.iter().map(|card| card.logit_range.len()).filter(|columns| *columns < vocab).max();
        let mut engine = Engine {
            inputs: (0..=plan.stages().len()).map(|_| Inputs::new(&plan)).collect(),
            logits: vec![0.0; rows * vocab],
            logit_part: vec![0.0; rows * part.unwrap_or(0)],
            ids: Vec::with_capacity(plan.options.context),
            logits_known: false,
            layout: Layout::of(&plan),
            bank: state::bank(&plan),
            model,
            tables,
            plan,
            cards,
            links,
            sources,
            routing: None,
            poisoned: None,
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

    /// The plan, to be held beside the engine.
    pub fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    pub fn cards(&self) -> impl Iterator<Item = &Card> {
        self.cards.iter().map(|run| run.card())
    }

    /// How cards hand each other what they computed, in words; `None` with one card.
    pub fn exchange_route(&self) -> Option<&'static str> {
        exchange::route(&self.plan, &self.links)
    }

    /// What the n-gram table has been asked for, if the model has one.
    pub fn ngram_counters(&self) -> Option<RowCounters> {
        self.tables.ngrams.as_ref().map(|table| table.counters())
    }

    /// How often chosen experts were resident, over all cards; `None` if all always are.
    pub fn expert_counters(&self) -> Option<Counters> {
        let mut all: Option<Counters> = None;
        for counters in self.cards.iter().filter_map(|run| run.experts.as_ref()?.counters()) {
            all.get_or_insert_default().add(counters);
        }
        all
    }

    /// How often each expert has been used, with what the engine began with, to be given to [`Engine::open`] another time.
    ///
    /// `None` if all experts always are resident, so that nothing is counted.
    pub fn expert_profile(&self) -> Option<Profile> {
        experts::profile(&self.model, &self.plan, &self.cards)
    }

    /// Sizes of the model's experts, as a routing trace records them; `None` if it has none.
    pub fn expert_shape(&self) -> Option<Shape> {
        experts::model_shape(&self.plan)
    }

    /// From here on, every chunk's routing goes to `sink`.
    pub fn record_routing(&mut self, sink: RoutingSink) {
        self.routing = Some(sink);
    }

    /// The sequence so far. It is known on the host, and stays so when a device fails.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Tokens in the sequence.
    pub fn position(&self) -> usize {
        self.ids.len()
    }

    /// Starts an empty sequence.
    ///
    /// # Errors
    /// When a device fails.
    pub fn reset(&mut self) -> Result<(), EngineError> {
        self.logits_known = false;
        self.guarded(|engine| {
            for (run, card) in engine.cards.iter().zip(&engine.plan.cards) {
                for item in card.state.iter().filter(|item| !matches!(item.kind, StateKind::Keys | StateKind::Values)) {
                    run.fill(item.region)?;
                }
                run.wait()?;
            }
            engine.ids.clear();
            Ok(())
        })
    }

    /// Waits for all work and frees everything in order. A device that does not come to rest before `deadline` is left
    /// alone, with the memory that it may still write.
    ///
    /// # Errors
    /// When a device did not come to rest, or cannot say whether it did.
    pub fn close(mut self, deadline: Duration) -> Result<(), EngineError> {
        card::close(&mut self.cards, deadline)
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

    /// Chunks go from stage to stage: while one works on a chunk, the one before it works on the next chunk.
    fn append(
        &mut self,
        ids: &[u32],
        mut want: Want<'_>,
        mut breakdown: Option<&mut Breakdown>,
    ) -> Result<(), EngineError> {
        let position = self.ids.len();
        self.check_ids(position, ids)?;
        self.logits_known = false;
        let chunk = self.plan.options.chunk;
        let chunks = ids.len().div_ceil(chunk);
        let range = |index: usize| index * chunk..ids.len().min((index + 1) * chunk);
        let stages = self.plan.stages();
        let measured = breakdown.is_some();
        // The chunks under way at a time, each with its stage. Operations that are timed run alone.
        let under_way = |tick: usize| -> Vec<(usize, usize)> {
            match measured {
                true => vec![(tick / stages.len(), tick % stages.len())],
                false => (0..stages.len()).rev().filter_map(|stage| Some((tick.checked_sub(stage)?, stage))).collect(),
            }
        };
        self.gather(position, ids, range(0), 0, breakdown.as_deref_mut())?;
        let mut ready = 1;
        let mut failed = None;
        for tick in 0.. {
            let mut active = under_way(tick);
            active.retain(|(chunk, _)| *chunk < ready);
            if active.is_empty() {
                break;
            }
            let reads_next = active.contains(&(ready - 1, 0)) && ready < chunks;
            self.guarded(|engine| {
                for (chunk, stage) in &active {
                    let logits = *chunk + 1 == chunks && matches!(want, Want::Last);
                    engine.start(*stage, *chunk, logits, breakdown.as_deref_mut())?;
                }
                // The host reads the next chunk's rows while the devices compute.
                if reads_next {
                    match engine.gather(position, ids, range(ready), ready, breakdown.as_deref_mut()) {
                        Ok(()) => ready += 1,
                        Err(error) => failed = Some(error),
                    }
                }
                for (chunk, stage) in &active {
                    let leaves = *stage + 1 == stages.len();
                    let want = match &mut want {
                        Want::All(each) if leaves => Want::All(*each),
                        Want::Last if leaves && *chunk + 1 == chunks => Want::Last,
                        _ => Want::None,
                    };
                    engine.finish(*stage, *chunk, want)?;
                    if leaves {
                        engine.ids.extend_from_slice(&ids[range(*chunk)]);
                    }
                }
                for (chunk, stage) in &active {
                    engine.hand_over(*stage, *chunk)?;
                }
                engine.between_steps(&active)
            })?;
        }
        self.logits_known = failed.is_none() && matches!(want, Want::Last);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Whether tokens can follow the first `position` ones.
    fn check_ids(&self, position: usize, ids: &[u32]) -> Result<(), EngineError> {
        let (vocab, context) = (self.plan.spec.vocab, self.plan.options.context);
        if ids.is_empty() {
            return Err(EngineError::NoTokens);
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
            return Err(EngineError::Token { id: *id, vocab });
        }
        if ids.len() > context - position {
            return Err(EngineError::ContextFull { position, more: ids.len(), context });
        }
        Ok(())
    }

    /// Runs device work; after a failure the sequence's state is not known, so that the engine refuses all further work.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Engine) -> Result<T, EngineError>) -> Result<T, EngineError> {
        if let Some(text) = &self.poisoned {
            return Err(EngineError::Poisoned(text.clone()));
        }
        // A panic that somebody catches leaves the state unknown, too.
        self.poisoned = Some("it was interrupted by a panic".to_owned());
        let result = work(self);
        self.poisoned = result.as_ref().err().map(EngineError::to_string);
        result
    }

    /// Reads and decodes the rows of chunk `chunk`, `ids[range]`, where `ids` follow the sequence's first `start` tokens.
    fn gather(
        &mut self,
        start: usize,
        ids: &[u32],
        range: Range<usize>,
        chunk: usize,
        breakdown: Option<&mut Breakdown>,
    ) -> Result<(), RowError> {
        let mut unasked = Breakdown::default();
        let times = breakdown.unwrap_or(&mut unasked);
        let places = self.inputs.len();
        let inputs = &mut self.inputs[chunk % places];
        inputs.position = start + range.start;
        inputs.count = range.len();
        inputs.read(&self.plan.spec, &mut self.tables, &self.ids[..start], ids, range, times)
    }

    fn input(&self, chunk: usize) -> &Inputs {
        &self.inputs[chunk % self.inputs.len()]
    }

    /// Starts a stage's work on a chunk, up to the logits of its last token if they are wanted.
    fn start(
        &mut self,
        stage: usize,
        chunk: usize,
        logits: bool,
        mut breakdown: Option<&mut Breakdown>,
    ) -> Result<(), EngineError> {
        let cards = self.plan.stages()[stage].clone();
        let count = self.input(chunk).count;
        let upload = |engine: &Engine| cards.clone().try_for_each(|card| engine.upload_inputs(card, chunk));
        match breakdown.as_deref_mut() {
            Some(breakdown) => breakdown.host("upload", || upload(self))?,
            None => upload(self)?,
        }
        let has_head = self.plan.cards[cards.start].buffers.logits.is_some();
        let recordable = cards.len() == 1 && self.plan.misses != Misses::File;
        if count == 1 && breakdown.is_none() && recordable && (logits || !has_head) {
            self.launch_recorded(cards.start)?;
        } else {
            self.walk(cards.clone(), Part::Layers, Window { first: 0, count }, breakdown.as_deref_mut(), chunk)?;
            if has_head && logits {
                let last = Window { first: count - 1, count: 1 };
                self.walk(cards.clone(), Part::Head, last, breakdown, chunk)?;
            }
        }
        self.stage_out(stage, count)
    }

    /// Waits for a stage's work on a chunk and fetches the logits that are wanted.
    fn finish(&mut self, stage: usize, chunk: usize, want: Want<'_>) -> Result<(), EngineError> {
        let cards = self.plan.stages()[stage].clone();
        let count = self.input(chunk).count;
        match want {
            Want::None => cards.into_iter().try_for_each(|card| self.cards[card].wait()),
            Want::Last => self.download_logits(cards, 1),
            Want::All(each) => {
                let (vocab, position) = (self.plan.spec.vocab, self.input(chunk).position);
                for first in (0..count).step_by(LOGIT_ROWS) {
                    let rows = LOGIT_ROWS.min(count - first);
                    self.walk(cards.clone(), Part::Head, Window { first, count: rows }, None, chunk)?;
                    self.download_logits(cards.clone(), rows)?;
                    for (row, logits) in self.logits.chunks_exact(vocab).take(rows).enumerate() {
                        each(position + first + row, logits);
                    }
                }
                Ok(())
            }
        }
    }

    /// Position, embeddings and n-gram rows of a chunk, to a card that reads them.
    fn upload_inputs(&self, card: usize, chunk: usize) -> Result<(), EngineError> {
        let (run, buffers) = (&self.cards[card], &self.plan.cards[card].buffers);
        let inputs = self.input(chunk);
        run.put(buffers.start, &(inputs.position as i32).to_le_bytes())?;
        if let Some(to) = buffers.embedded {
            run.put(to.region, bytes_of(inputs.embedded()))?;
        }
        if let Some(to) = buffers.ngrams {
            run.put(to.region, bytes_of(inputs.ngrams()))?;
        }
        Ok(())
    }

    /// The first `rows` rows of logits, from the cards that have columns of them.
    fn download_logits(&mut self, cards: Range<usize>, rows: usize) -> Result<(), EngineError> {
        let vocab = self.plan.spec.vocab;
        for card in cards {
            let (run, plan) = (&self.cards[card], &self.plan.cards[card]);
            let Some(buffer) = plan.buffers.logits else { continue };
            let columns = plan.logit_range.clone();
            let values = rows * columns.len();
            if columns.len() == vocab {
                run.get(bytes_of_mut(&mut self.logits[..values]), buffer.region)?;
                continue;
            }
            run.get(bytes_of_mut(&mut self.logit_part[..values]), buffer.region)?;
            for (row, part) in self.logit_part[..values].chunks_exact(columns.len()).enumerate() {
                self.logits[row * vocab..][columns.clone()].copy_from_slice(part);
            }
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Who wants to know whether it came to rest calls `close`.
        let _ = card::close(&mut self.cards, CLOSE_DEADLINE);
    }
}

/// What profiles and routing traces say that they are of.
pub fn expert_identity(model: &Model) -> String {
    let bound = model.bound();
    format!(
        "{} {} {}",
        bound.spec.arch.name(),
        bound.layers.len(),
        model.file().metadata().str("general.name").ok().flatten().unwrap_or("-")
    )
}

/// How long a dropped engine waits for its devices.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

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
