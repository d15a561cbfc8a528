//! Opening a model on a device, with progress on standard error.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::Done;
use super::args::{BuildKernelsArgs, EngineArgs, PlanOptions};
use super::cards::{choose_device, named, names};
use crate::device::{Card, DeviceInfo, Module, cache, kernels};
use crate::exec::{Engine, expert_identity};
use crate::load::{Model, Progress, check_sums};
use crate::plan::{Misses, Options, Plan, Split};
use crate::residency::{TraceError, TraceWriter};
pub use crate::session::CONTEXT;
use crate::session::SpareBank;
use crate::session::{Error, OpenOptions, Prepared};

/// Opens a model file.
pub fn open_model(path: &Path) -> Result<Model> {
    let model = Model::open(path)?;
    for warning in &model.bound().warnings {
        eprintln!("warning: {}: {warning}", path.display());
    }
    Ok(model)
}

/// An engine at work, and what is stored when the work is done.
pub struct Opened {
    pub engine: Engine,
    /// From the start until the engine was ready.
    pub load: Duration,
    pub records: Records,
}

/// Loads a model onto the cards that the arguments name.
pub fn open_engine(model: Model, args: &EngineArgs, context: usize) -> Result<Opened> {
    open_engine_with(model, args, context, SpareBank::No)
}

/// The same, with memory for snapshots where there is some to spare.
pub fn open_engine_with(model: Model, args: &EngineArgs, context: usize, spare: SpareBank) -> Result<Opened> {
    let begin = Instant::now();
    if let Some(list) = &args.check_sums {
        let mut reporter = Reporter::new(String::new());
        check_sums(model.file(), list, &mut |progress| reporter.show(progress)).context("--check-sums")?;
        reporter.done();
    }
    let prepared = Prepared::new(model, &open_options(args, context), spare).map_err(|error| match error {
        Error::Cards(error) => named(error),
        Error::NoExperts => anyhow!("--expert-profile: expected a model with routed experts"),
        error => error.into(),
    })?;
    let (cards, plan) = (&prepared.cards, &prepared.plan);
    let mut reporter = Reporter::new(names(cards));
    if args.save_expert_profile.is_some() && plan.spec.experts.is_none() {
        bail!("--save-expert-profile: expected a model with routed experts");
    }
    if args.save_expert_profile.is_some() && plan.misses == Misses::None {
        bail!("--save-expert-profile: expected experts that are not all resident, as with a small --expert-budget");
    }
    let builders = Builders::start(cards[0].info(), plan);
    let mut engine = prepared.open(&mut |progress| reporter.show(progress))?;
    drop(builders);
    reporter.done();
    if let (count @ 1.., bytes) = engine.plan().narrowed() {
        eprintln!("{count} matrices hold BF16 values in F32: kept as BF16, {bytes} bytes less");
    }
    let records = Records::begin(&mut engine, args)?;
    Ok(Opened { engine, load: begin.elapsed(), records })
}

/// What an engine's work leaves behind beside its output.
pub struct Records {
    profile: Option<PathBuf>,
    trace: Option<Arc<Mutex<Result<TraceWriter, TraceError>>>>,
}

impl Records {
    fn begin(engine: &mut Engine, args: &EngineArgs) -> Result<Records> {
        let mut trace = None;
        if let Some(path) = &args.routing_trace {
            let Some(shape) = engine.expert_shape() else {
                bail!("--routing-trace: expected a model with routed experts");
            };
            let writer = Arc::new(Mutex::new(Ok(TraceWriter::create(path, &expert_identity(engine.model()), &shape)?)));
            trace = Some(Arc::clone(&writer));
            engine.record_routing(Box::new(move |position, tokens, layers| {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                // The first failure is kept and reported at the end.
                if let Ok(trace) = &mut *writer
                    && let Err(error) = trace.step(position, tokens, layers)
                {
                    *writer = Err(error);
                }
            }));
        }
        Ok(Records { profile: args.save_expert_profile.clone(), trace })
    }

    /// Stores everything, and closes the engine.
    pub fn finish(self, engine: Engine) -> Result<()> {
        // One that fails leaves the others to be done; the first error counts.
        let profile = match (&self.profile, engine.expert_profile()) {
            (Some(path), Some(profile)) => profile.save(path),
            _ => Ok(()),
        };
        let closed = engine.close(CLOSE_DEADLINE);
        // The engine held the only other reference.
        let trace = self.trace.and_then(Arc::into_inner).map(Mutex::into_inner);
        let trace = trace.map_or(Ok(()), |trace| trace.unwrap_or_else(PoisonError::into_inner)?.finish());
        profile?;
        closed?;
        Ok(trace?)
    }
}

/// How long a command waits for its cards to come to rest.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

/// What the arguments ask of a plan.
pub fn options(args: &PlanOptions, context: usize) -> Options {
    plan_options(args).plan_options(context)
}

fn open_options(args: &EngineArgs, context: usize) -> OpenOptions {
    OpenOptions {
        device: args.device.clone(),
        context: Some(context),
        ngram_file: args.ngram_table.clone(),
        ngram_cache_bytes: args.ngram_cache,
        expert_profile: args.expert_profile.clone(),
        ..plan_options(&args.plan)
    }
}

fn plan_options(args: &PlanOptions) -> OpenOptions {
    OpenOptions {
        chunk: args.chunk,
        kv: args.kv.into(),
        split: args.split.map(Split::from),
        expert_bytes: args.expert_budget,
        host_expert_bytes: args.host_expert_budget,
        bank_bytes: args.bank_budget,
        host_bank_bytes: args.host_bank_budget,
        bank_every: args.bank_every,
        ..OpenOptions::default()
    }
}

/// Processes that build kernel modules into the cache folder beside this one, where the device's compiler takes one at a time in a process.
/// They only save time: what they do not deliver is built here.
struct Builders(Vec<Child>);

impl Builders {
    fn start(device: &DeviceInfo, plan: &Plan) -> Builders {
        let Some(folder) = cache::folder().filter(|_| device.backend == "opencl") else { return Builders(Vec::new()) };
        let modules: BTreeSet<&String> = plan.cards.iter().flat_map(|card| &card.modules).collect();
        let missing = modules
            .into_iter()
            .filter(|name| kernels::find(name).is_some_and(|code| !cache::module_path(&folder, device, code).exists()));
        let missing: Vec<&String> = missing.collect();
        let processes = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
        let spawn = |i: usize| {
            let mut names = missing.clone();
            names.rotate_left(i * missing.len() / processes);
            let mut command = std::process::Command::new(std::env::current_exe().ok()?);
            command.arg("build-kernels").arg("--device").arg(device.index.to_string()).args(names);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        Builders((1..processes).filter_map(spawn).collect())
    }
}

impl Drop for Builders {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already cannot be killed, and needs not be.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Builds modules into the cache folder.
pub fn build_kernels(args: &BuildKernelsArgs) -> Result<Done> {
    let device = choose_device(args.device.as_deref())?;
    let card = Card::open(device.index)?;
    for name in &args.modules {
        let Some(code) = kernels::find(name) else { bail!("kernel module `{name}` is not in this build") };
        Module::new(&card, code, cache::folder().as_deref())?;
    }
    Ok(Done::Finished)
}

/// Says what the program waits for: on a terminal in one changing line, else only when it takes long.
struct Reporter {
    device: String,
    begin: Instant,
    shown: Option<Instant>,
    terminal: bool,
    kernels: (usize, usize),
    weights: (u64, u64),
    read_bytes: u64,
    /// Bytes hashed, if that is what goes on.
    sums: Option<(u64, u64)>,
}

impl Reporter {
    fn new(device: String) -> Reporter {
        let terminal = std::io::stderr().is_terminal();
        Reporter {
            device,
            begin: Instant::now(),
            shown: None,
            terminal,
            kernels: (0, 0),
            weights: (0, 0),
            read_bytes: 0,
            sums: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Kernels { done, total } => self.kernels = (done, total),
            Progress::Weights { done, total, read_bytes } => {
                (self.weights, self.read_bytes) = ((done, total), read_bytes);
            }
            Progress::Sums { done, total } => (self.sums, self.read_bytes) = (Some((done, total)), done),
        }
        let wait = if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
        if self.shown.unwrap_or(self.begin).elapsed() < wait {
            return;
        }
        self.shown = Some(Instant::now());
        let (kernels, weights) = (self.kernels, self.weights);
        let rate = self.read_bytes as f64 / self.begin.elapsed().as_secs_f64() / f64::from(1 << 20);
        let text = match self.sums {
            Some((done, total)) => format!("checking sums: {}/{} MiB, {rate:.0} MiB/s", done >> 20, total >> 20),
            None => format!(
                "loading onto {}: kernel modules {}/{} (built once, then kept), weights {}/{} MiB, {rate:.0} MiB/s",
                self.device,
                kernels.0,
                kernels.1,
                weights.0 >> 20,
                weights.1 >> 20
            ),
        };
        if self.terminal {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    fn done(&self) {
        if self.terminal && self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
