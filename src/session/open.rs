//! From a model's file to an engine: what the command line and the library have in common.

use std::path::PathBuf;
use std::sync::Arc;

use super::Error;
use crate::device::choose::choose_cards;
use crate::device::{Card, host_free_bytes};
use crate::exec::{self, Engine, EngineError, expert_identity};
use crate::load::{Model, Progress, TableOptions, Tables};
use crate::model::KvType;
use crate::plan::{DEFAULT_CHUNK, Options, Plan, Split};
use crate::residency::Profile;

/// Tokens of context without a wish, if the model has as many.
pub const CONTEXT: usize = 8192;
/// Tokens of a prompt between two snapshots without a wish.
pub const BANK_EVERY: usize = 2048;

/// Most memory for snapshots without a wish, and the part of the host's free memory that it may be.
const BANK_BYTES: u64 = 1 << 30;
const BANK_PART: u64 = 4;

/// Where and how a model runs. The default suits a program that talks with a model on the first GPU, else on the CPU.
///
/// ```
/// let mut options = bankshot::session::OpenOptions::default();
/// options.device = Some("cpu".to_owned());
/// options.context = Some(512);
/// assert_eq!(options.host_bank_bytes, None);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Cards, as the option `--device` names them: numbers of devices, `cpu` or `gpu`, with commas between them; `gpu:2` are the first two GPUs.
    /// Without it the first GPU, else the CPU.
    pub device: Option<String>,
    /// Tokens of context; without it the model's own, at most [`CONTEXT`].
    pub context: Option<usize>,
    /// Most tokens that are computed together. Results do not depend on it.
    pub chunk: usize,
    /// Type of cached keys and values.
    pub kv: KvType,
    /// How several cards share the work; without it the plan's own estimate decides.
    pub split: Option<Split>,
    /// Most bytes of each card for routed experts; without it all that is left.
    pub expert_bytes: Option<u64>,
    /// Most bytes of host memory for routed experts; without it all that is free.
    pub host_expert_bytes: Option<u64>,
    /// Bytes of each card for snapshots of sequences.
    pub bank_bytes: Option<u64>,
    /// Bytes of host memory for snapshots of sequences. If neither this nor the one above is given: a quarter of what is free, at most 1 GiB, and
    /// nothing where something else would have to give way.
    pub host_bank_bytes: Option<u64>,
    /// Tokens of a prompt after which a snapshot is taken, beside those behind turns; 0 for none.
    pub bank_every: usize,
    /// A GGUF file whose n-gram table is read instead of the model's.
    pub ngram_file: Option<PathBuf>,
    /// Most bytes of the n-gram table's rows to keep in memory.
    pub ngram_cache_bytes: u64,
    /// Experts that this profile says are used most begin as the resident ones.
    pub expert_profile: Option<PathBuf>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        let tables = TableOptions::default();
        OpenOptions {
            device: None,
            context: None,
            chunk: DEFAULT_CHUNK,
            kv: KvType::F16,
            split: None,
            expert_bytes: None,
            host_expert_bytes: None,
            bank_bytes: None,
            host_bank_bytes: None,
            bank_every: BANK_EVERY,
            ngram_file: tables.ngram_file,
            ngram_cache_bytes: tables.ngram_cache_bytes,
            expert_profile: None,
        }
    }
}

impl OpenOptions {
    /// What a plan is asked for.
    pub(crate) fn plan_options(&self, context: usize) -> Options {
        Options {
            split: self.split,
            expert_bytes: self.expert_bytes,
            host_expert_bytes: self.host_expert_bytes,
            bank_bytes: self.bank_bytes.unwrap_or(0),
            host_bank_bytes: self.host_bank_bytes.unwrap_or(0),
            bank_every: self.bank_every,
            ..Options::new(context, self.chunk.min(context), self.kv)
        }
    }
}

/// Whether snapshots get memory that nobody asked for: up to 1 GiB of the host's, and at most a quarter of what is free, if nothing else has to
/// give way for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpareBank {
    Yes,
    No,
}

/// All that an engine is opened from, before anything is loaded.
pub(crate) struct Prepared {
    pub model: Arc<Model>,
    pub cards: Vec<Card>,
    pub plan: Plan,
    tables: Tables,
    profile: Option<Profile>,
}

impl Prepared {
    /// Opens the cards and plans the model for them.
    pub fn new(model: Model, options: &OpenOptions, spare: SpareBank) -> Result<Prepared, Error> {
        let model = Arc::new(model.narrowed()?);
        let tables =
            TableOptions { ngram_file: options.ngram_file.clone(), ngram_cache_bytes: options.ngram_cache_bytes };
        let tables = Tables::open(model.file(), model.bound(), &tables)?;
        let cards = choose_cards(options.device.as_deref())?;
        let mut inventory = exec::inventory(&cards);
        if cards.len() > 1 && options.split.is_none() {
            // The plan's estimate chooses the split, as `plan` prints it.
            inventory = exec::measured(inventory, &cards).map_err(EngineError::from)?;
        }
        let context = options.context.unwrap_or(model.bound().spec.context_length.min(CONTEXT));
        let asked = options.plan_options(context);
        let mut plan = Plan::fit(model.bound(), asked, &inventory)?;
        if spare == SpareBank::Yes && options.bank_bytes.or(options.host_bank_bytes).is_none() {
            let host_bank_bytes = BANK_BYTES.min(host_free_bytes().unwrap_or(0) / BANK_PART);
            match Plan::fit(model.bound(), Options { host_bank_bytes, ..asked }, &inventory) {
                Ok(with) if (with.split, with.misses) == (plan.split, plan.misses) => plan = with,
                _ => {}
            }
        }
        let profile = match (&options.expert_profile, &plan.spec.experts) {
            (None, _) => None,
            (Some(_), None) => return Err(Error::NoExperts),
            (Some(path), Some(experts)) => {
                Some(Profile::load(path, &expert_identity(&model), plan.spec.layers, experts.count)?)
            }
        };
        Ok(Prepared { model, cards, plan, tables, profile })
    }

    /// Builds the kernels and loads the weights.
    pub fn open(self, progress: &mut dyn FnMut(Progress)) -> Result<Engine, EngineError> {
        let Prepared { model, cards, plan, tables, profile } = self;
        Engine::open(model, tables, cards, plan, profile.as_ref(), progress)
    }
}
